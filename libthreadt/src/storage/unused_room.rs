//! What a process that ends in a sandbox leaves of its trbuf: the records, and not the room that it had for further ones.
//!
//! Where the process can reach its files no more, its trbuf stays, with all its records; a server that goes into a sandbox for
//! each connection leaves a file for each. So the process lets the file system have what is empty, as holes. Who needs such room after all
//! asks for it before.

use core::ops::Range;
use core::slice;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use spec::buffer::{PAGE, SLOTS_OFFSET};

use super::slot::Slot;
use super::slot_table::{FRESH, HEADERS};
use super::{RESERVE, capacity, slot_layout, thread_local};
use crate::sys;

/// Bytes behind the last record that the calling thread keeps, for what the end of the process itself may append once more.
const KEPT: usize = PAGE;
/// How many slots that nobody has had are emptied.
const SLOTS_MAX: usize = 64;

/// Makes holes of what this process's trbufs have without records, and of the room behind the calling thread's. Slots that had a thread
/// stay as they are. For the thread that ends the process, when it has written what it could, and records are written at once.
pub fn give_back() {
    for header in HEADERS.iter().map(|header| header.load(Acquire)).filter(|header| !header.is_null()) {
        give_back_entries(header);
    }
    // Whoever takes a slot out of the pool has it alone. A thread that finds none meanwhile gets memory of its own.
    let mut taken = [None; SLOTS_MAX];
    for place in &mut taken {
        *place = Slot::take_from(&FRESH);
    }
    for slot in taken.into_iter().flatten() {
        if slot.anonymous.load(Relaxed) == 0 {
            // The next owner makes it whole again.
            slot.is_hole.store(1, Relaxed);
            give_back_pages(slot.base.as_ptr(), 0..slot_layout().slot_size());
        }
        slot.put_into(&FRESH);
    }
    if let Some(slot) = thread_local::own().filter(|slot| slot.anonymous.load(Relaxed) == 0) {
        give_back_behind_records(slot);
    }
}

/// Whether this thread may append to the first region of its slot, from which room may have been given back: to touch a hole of a full
/// disk would raise SIGBUS. A program records after the final flush where it has handlers of its own for its end.
pub fn has_room_on_disk(slot: Slot) -> bool {
    if slot.is_hole.load(Relaxed) == 0 {
        return true;
    }
    let end = slot.end_of(0).load(Relaxed).min(capacity(0)) as usize;
    // The page where the text ends is there.
    let behind = end.next_multiple_of(PAGE)..(end + RESERVE as usize).min(slot_layout().region_size(0));
    let start = slot.region_text(0).wrapping_add(behind.start);
    // SAFETY: pages of this thread's region without text.
    behind.is_empty() || unsafe { sys::reserve_pages(start, behind.len()) }.is_ok()
}

/// Gives back the pages of a trbuf's table of files that have no entry. No further one is made: no file is.
fn give_back_entries(header: *mut u8) {
    for at in (PAGE..SLOTS_OFFSET).step_by(PAGE) {
        // SAFETY: the header is mapped for good, with the table behind it; every pattern of bytes is valid.
        let page = unsafe { slice::from_raw_parts(header.wrapping_add(at), PAGE) };
        if page.iter().all(|&byte| byte == 0) {
            give_back_pages(header, at..at + PAGE);
        }
    }
}

/// Gives back what is behind the records of the calling thread's slot, in the region that is large. Not in a ring that has wrapped.
fn give_back_behind_records(slot: Slot) {
    let region = &slot.regions[0];
    // What handlers record meanwhile goes to the other regions.
    slot.in_free_region(|depth| {
        let has_wrapped = region.wrap_count.load(Relaxed) != 0;
        let Range { start, end } = slot.range_in(0, region.write_position.load(Relaxed));
        if depth == 0 && !has_wrapped && start <= end && region.write_intent.load(Relaxed) == 0 {
            slot.is_hole.store(1, Relaxed);
            give_back_pages(slot.region_text(0), end as usize + KEPT..slot_layout().region_size(0));
        }
    });
}

/// Gives back the complete pages of a range of bytes behind `base`, a page of a trbuf's mapping. Where the file system has no holes they stay.
fn give_back_pages(base: *mut u8, range: Range<usize>) {
    let start = range.start.next_multiple_of(PAGE);
    if start < range.end {
        // SAFETY: in a mapping of this library's; by the callers nobody needs what is there.
        let _ = unsafe { sys::remove_pages(base.wrapping_add(start), range.end - start) };
    }
}
