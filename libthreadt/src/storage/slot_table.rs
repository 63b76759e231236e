//! All slots of the process, and the entries of its tr files.

use core::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use spec::buffer::{FileEntry, PAGE, SlotHeader};
use spec::names::LWP_MASK;

use super::layout::slot_layout;
use super::slot::Slot;
use crate::config::CONFIG;
use crate::process_state::{self, PROCESS};
use crate::sys::Pool;

/// The mapped header of the trbuf, with the file entries behind it.
pub static HEADER: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// The chunk of slots that was mapped last; each chunk holds the address of the one before it.
static CHUNKS: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Slots that no thread has had yet.
// SAFETY: the only pool at this head.
pub static FRESH: Pool<SlotHeader> = unsafe { Pool::at(&PROCESS.fresh_slots) };

/// The entries of all tr files; `None` without a trbuf.
pub fn file_entries() -> Option<&'static [FileEntry]> {
    let header = HEADER.load(Acquire);
    if header.is_null() {
        return None;
    }
    // SAFETY: the header is mapped, and its entries are atomics, valid for every pattern of bytes.
    Some(unsafe { core::slice::from_raw_parts(header.add(PAGE).cast(), LWP_MASK as usize + 1) })
}

pub fn file_entry(lwp: u32) -> &'static FileEntry {
    /// For a forked child that returns into a record of its parent's.
    // SAFETY: zeros are a valid entry.
    static NONE: FileEntry = unsafe { core::mem::zeroed() };
    file_entries().and_then(|entries| entries.get((lwp & LWP_MASK) as usize)).unwrap_or(&NONE)
}

/// Adds a chunk of mapped slots to the table, and passes each slot to `each`.
pub fn add_chunk(first: *mut u8, slots: usize, each: impl Fn(Slot)) {
    let Some(base) = NonNull::new(first) else { return };
    // SAFETY: freshly mapped slot memory, never unmapped.
    let head = unsafe { Slot::at(base) };
    head.chunk_slots.store(slots as u32, Relaxed);
    let mut next = CHUNKS.load(Relaxed);
    loop {
        head.next_chunk.store(next.expose_provenance(), Relaxed);
        // ORDERING: Release, so that whoever walks the list sees the chunk's size and the next chunk.
        match CHUNKS.compare_exchange_weak(next, first, Release, Relaxed) {
            Ok(_) => break,
            Err(changed) => next = changed,
        }
    }
    for_each_in_chunk(first, slots, each);
}

/// Calls `each` with every slot of the chunk that begins at `first`.
pub fn for_each_in_chunk(first: *mut u8, slots: usize, mut each: impl FnMut(Slot)) {
    for distance in 0..slots {
        if let Some(base) = NonNull::new(first.wrapping_add(distance * slot_layout().slot_size())) {
            // SAFETY: within the chunk.
            each(unsafe { Slot::at(base) });
        }
    }
}

/// Calls `each` with the first slot of every chunk and how many there are in it.
fn for_each_chunk(mut each: impl FnMut(Slot, usize)) {
    let mut next = CHUNKS.load(Acquire);
    while let Some(base) = NonNull::new(next) {
        // SAFETY: chunks are never unmapped.
        let first = unsafe { Slot::at(base) };
        // Read first: `each` may replace the memory.
        next = with_exposed_provenance_mut(first.next_chunk.load(Relaxed));
        each(first, first.chunk_slots.load(Relaxed) as usize);
    }
}

/// Calls `each` with every slot, whether a thread has it or not.
pub fn for_each_slot(mut each: impl FnMut(Slot)) {
    for_each_chunk(|first, slots| for_each_in_chunk(first.base().as_ptr(), slots, &mut each));
}

/// Makes every record of every slot go to its file at once, from now on; or ends that, if nothing else demands it.
pub fn set_write_through(on: bool) {
    // ORDERING: Release, so that a slot that is claimed after its owner saw this gets these thresholds.
    let stops = PROCESS.stop_time.load(Relaxed) != 0;
    PROCESS.write_through.store(u32::from(on || stops || CONFIG.get().unbuffered), Release);
    let on = process_state::writes_through();
    for_each_slot(|slot| slot.set_flush_thresholds(on));
}

/// Empties the table in a forked child, after calling `each` with the first slot of every chunk and how many there are
/// in it; returns the header of the parent's trbuf, or null.
pub fn forget(each: impl FnMut(Slot, usize)) -> *mut u8 {
    for_each_chunk(each);
    CHUNKS.store(null_mut(), Relaxed);
    HEADER.swap(null_mut(), Relaxed)
}
