//! Where the loaded objects have their unwind sections.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::elf::{LinkMap, objects};

/// The address of the last of the linker's entries that were there at the start; 0 if that is not known.
static LAST_AT_START: AtomicUsize = AtomicUsize::new(0);

/// Notes which objects are there at the start. The dynamic linker calls this when it relocates this library: it has mapped all that the
/// program needs, and no constructor has run, which may open and close further ones.
pub fn note_start() {
    // If this library is itself opened later, by the program, it is the last one.
    let last = objects().last().filter(|object| !object.is_ours());
    LAST_AT_START.store(last.map_or(0, |object| (&raw const *object).addr()), Relaxed);
}

/// Of each object that was loaded at the start: where it is mapped, and where its `.eh_frame_hdr` is. The linker never closes them.
pub fn of_objects_at_start() -> impl Iterator<Item = (Range<usize>, usize)> {
    let last = LAST_AT_START.load(Relaxed);
    let (mut objects, mut is_behind) = (objects(), last == 0);
    // New entries are put behind the last one. They are not looked at: another thread may close what they are of.
    let at_start = core::iter::from_fn(move || {
        let object = if is_behind { None } else { objects.next() }?;
        is_behind = (&raw const *object).addr() == last;
        Some(object)
    });
    at_start.filter_map(LinkMap::tables).filter_map(|object| {
        let headers = object.program_headers()?;
        let address = |offset: u64| object.base.wrapping_add(offset as usize);
        let segments = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = segments().map(|header| address(header.p_vaddr)).min()?;
        let end = segments().map(|header| address(header.p_vaddr + header.p_memsz)).max()?;
        let unwind = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?;
        Some((start..end, address(unwind.p_vaddr)))
    })
}
