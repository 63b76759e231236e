//! All slots of the process.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use spec::buffer::Header;

use super::slot::Slot;
use super::slot_control::SlotControl;
use crate::config::CONFIG;
use crate::process_state::{self, GENERATIONS, PROCESS, WorkingProcess, of_generation};
use crate::sys::Pool;

/// The mapped headers of the trbufs, by generation, with the file entries behind them.
#[unsafe(link_section = "inherited")]
pub static HEADERS: [AtomicPtr<u8>; GENERATIONS] = [const { AtomicPtr::new(null_mut()) }; GENERATIONS];
/// The first slot of the chunk that was mapped last; it has the address of that of the chunk before.
#[unsafe(link_section = "inherited")]
static CHUNKS: AtomicPtr<SlotControl> = AtomicPtr::new(null_mut());

/// Slots that no thread has had yet.
// SAFETY: the only pool at this head.
pub static FRESH: Pool<SlotControl> = unsafe { Pool::at(&PROCESS.fresh_slots) };

/// The header of this generation's trbuf.
pub fn header(generation: usize) -> Option<&'static Header> {
    let header = NonNull::new(of_generation(&HEADERS, generation).load(Acquire))?;
    // SAFETY: headers are mapped for good, and every pattern of bits is valid in what changes.
    Some(unsafe { header.cast::<Header>().as_ref() })
}

/// Adds a note for readers in the header of this generation's trbuf.
pub fn add_note(generation: usize, note: u32) {
    if let Some(header) = header(generation) {
        header.notes.fetch_or(note, Relaxed);
    }
}

/// Adds a chunk of mapped slots to the table, and passes each slot to `each`.
///
/// # Safety
/// `first` must be the first of so many controls that `new_controls` has made, and the slots must never be unmapped.
pub unsafe fn add_chunk(first: NonNull<SlotControl>, slots: usize, each: impl Fn(Slot)) {
    // SAFETY: the caller's.
    let head = unsafe { Slot::at(first) };
    head.chunk_slots.store(slots as u32, Relaxed);
    let mut next = CHUNKS.load(Relaxed);
    loop {
        head.next_chunk.store(next, Relaxed);
        // ORDERING: Release, so that whoever walks the list sees the chunk's size and the next chunk.
        match CHUNKS.compare_exchange_weak(next, first.as_ptr(), Release, Relaxed) {
            Ok(_) => break,
            Err(changed) => next = changed,
        }
    }
    for_each_in_chunk(first, slots, each);
}

/// Calls `each` with every slot of the chunk that begins with `first`.
pub fn for_each_in_chunk(first: NonNull<SlotControl>, slots: usize, mut each: impl FnMut(Slot)) {
    for distance in 0..slots {
        // SAFETY: the controls of a chunk stand one behind the other.
        each(unsafe { Slot::at(first.add(distance)) });
    }
}

/// Calls `each` with the first slot of every chunk and how many there are in it.
pub fn for_each_chunk(each: impl FnMut(Slot, usize)) {
    for_each_chunk_from(CHUNKS.load(Acquire), each);
}

fn for_each_chunk_from(mut next: *mut SlotControl, mut each: impl FnMut(Slot, usize)) {
    while let Some(control) = NonNull::new(next) {
        // SAFETY: chunks are never unmapped.
        let first = unsafe { Slot::at(control) };
        next = first.next_chunk.load(Relaxed);
        each(first, first.chunk_slots.load(Relaxed) as usize);
    }
}

/// Calls `each` with every slot, whether a thread has it or not.
pub fn for_each_slot(mut each: impl FnMut(Slot)) {
    for_each_chunk(|first, slots| for_each_in_chunk(first.control(), slots, &mut each));
}

/// Makes every record of every slot go to its file at once, from now on; or ends that, if nothing else demands it.
pub fn set_write_through(on: bool) {
    // ORDERING: Release, so that a slot that is claimed after its owner saw this gets these thresholds.
    let stops = PROCESS.stop_time.load(Relaxed) != 0;
    PROCESS.write_through.store(u32::from(on || stops || CONFIG.get().unbuffered), Release);
    let on = process_state::writes_through();
    // The owner of a stale slot must notice.
    for_each_slot(|slot| slot.set_flush_thresholds(on || slot.is_stale()));
}

/// Empties the table of a process whose files are not ready, so that no thread has a slot of it.
pub fn forget_unfinished(process: WorkingProcess) {
    let (chunks, header) = (CHUNKS.load(Relaxed), HEADERS[0].load(Relaxed));
    if header.is_null() && chunks.is_null() || !process.is_current() {
        return;
    }
    // Compared: a child that a signal handler forks here may have others when it returns.
    let _ = CHUNKS.compare_exchange(chunks, null_mut(), Relaxed, Relaxed);
    let _ = HEADERS[0].compare_exchange(header, null_mut(), Relaxed, Relaxed);
    if process.is_current() {
        PROCESS.slots[0].store(0, Relaxed);
        FRESH.forget_all();
    }
}

/// Empties the table in a forked child, after calling `each` with the first slot of every chunk and how many there are
/// in it; returns the headers of the parent's trbufs, or null.
pub fn forget(each: impl FnMut(Slot, usize)) -> [*mut u8; GENERATIONS] {
    // Taken first: a child of this child that a signal handler forks meanwhile has chunks and headers of its own when it returns here.
    let chunks = CHUNKS.swap(null_mut(), Relaxed);
    let headers = HEADERS.each_ref().map(|header| header.swap(null_mut(), Relaxed));
    for_each_chunk_from(chunks, each);
    headers
}
