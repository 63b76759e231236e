//! All slots of the process, and the entries of its tr files.

use core::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use spec::buffer::{FileEntry, PAGE};
use spec::names::LWP_MASK;

use super::layout::slot_layout;
use super::quota;
use super::slot::Slot;
use crate::config::CONFIG;
use crate::process_state::{self, PROCESS};
use crate::sys::{Pool, Pooled};

/// The mapped header of the trbuf, with the file entries behind it.
static HEADER: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// The chunk of slots that was mapped last; each chunk holds the address of the one before it.
static CHUNKS: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Some of the trbuf is in anonymous memory.
static ANONYMOUS: AtomicBool = AtomicBool::new(false);

/// Slots that no thread has had yet.
// SAFETY: the only pool at this head.
pub static FRESH: Pool<Slot> = unsafe { Pool::at(&PROCESS.fresh_slots) };

/// Whether a crash would lose buffers, because they are not in a file.
pub fn is_anonymous() -> bool {
    ANONYMOUS.load(Relaxed)
}

/// Notes that some of the trbuf is in anonymous memory.
pub fn set_anonymous() {
    ANONYMOUS.store(true, Relaxed);
}

/// Publishes the mapped header of the trbuf.
pub fn set_header(base: *mut u8) {
    HEADER.store(base, Release);
}

/// The entries of all tr files; `None` without a trbuf.
pub fn file_entries() -> Option<&'static [FileEntry]> {
    let header = HEADER.load(Acquire);
    if header.is_null() {
        return None;
    }
    // SAFETY: the header is mapped, and its entries are atomics, valid for every pattern of bytes.
    Some(unsafe { core::slice::from_raw_parts(header.add(PAGE).cast(), LWP_MASK as usize + 1) })
}

/// The entry of the file that this LWP's records go to.
pub fn file_entry(lwp: u32) -> &'static FileEntry {
    /// For a forked child that returns into a record of its parent's.
    static NONE: FileEntry = FileEntry {
        inode: AtomicU64::new(0),
        device: AtomicU64::new(0),
        end: AtomicU64::new(0),
        users: AtomicU32::new(0),
        reserved: 0,
    };
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
    // ORDERING: Release, so that a slot that is claimed after its owner saw this gets the flush thresholds that go with
    // it.
    PROCESS.write_through.store(u32::from(on || CONFIG.get().unbuffered || quota::stopped().is_some()), Release);
    let on = process_state::writes_through();
    for_each_slot(|slot| slot.set_flush_thresholds(on));
}

/// Empties the table in a forked child, after calling `each` with the first slot of every chunk and how many there are
/// in it; returns the header of the parent's trbuf, or null.
pub fn forget(each: impl FnMut(Slot, usize)) -> *mut u8 {
    for_each_chunk(each);
    CHUNKS.store(null_mut(), Relaxed);
    ANONYMOUS.store(false, Relaxed);
    HEADER.swap(null_mut(), Relaxed)
}
