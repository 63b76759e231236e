//! Where the loaded objects have their unwind sections.

use core::ops::Range;

use super::elf::{LinkMap, objects};

/// Of each object that is loaded now: where it is mapped, and where its `.eh_frame_hdr` is.
pub fn of_loaded_objects() -> impl Iterator<Item = (Range<usize>, usize)> {
    objects().filter_map(LinkMap::tables).filter_map(|object| {
        let headers = object.program_headers()?;
        let address = |offset: u64| object.base.wrapping_add(offset as usize);
        let segments = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = segments().map(|header| address(header.p_vaddr)).min()?;
        let end = segments().map(|header| address(header.p_vaddr + header.p_memsz)).max()?;
        let unwind = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?;
        Some((start..end, address(unwind.p_vaddr)))
    })
}
