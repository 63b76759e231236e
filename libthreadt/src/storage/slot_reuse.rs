//! Which slot a new thread gets, and what becomes of the slots of threads that have ended.
//!
//! A slot is reused once its thread has gone and its text is in the file. Rings are kept: the [`KEPT_RINGS`] last ones
//! of threads that have ended, and each further thread takes the one that has been dead longest.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::file_table::file_entry;
use super::growth::{grow, grow_in_memory};
use super::layout::slot_layout;
use super::slot::{ALL_REGIONS, Slot, WriteRight};
use super::slot_control::{SLOT_ENDED, SLOT_OWNED, SlotControl};
use super::slot_table::{FRESH, for_each_slot, header};
use crate::clock;
use crate::control;
use crate::process_state::{self, PROCESS, WorkingProcess};
use crate::sys::{Pool, reserve_pages, thread_exists, thread_id};

/// Slots of threads that have ended or are about to.
// SAFETY: the only pool at this head.
static ENDED: Pool<SlotControl> = unsafe { Pool::at(&PROCESS.ended_slots) };

/// How many slots of dead threads whose text cannot be written are kept for whoever reads the trbuf. A spare trbuf does not
/// grow: half of its slots are for threads that live.
fn unwritable_max() -> u32 {
    const MAX: u32 = 16;
    if process_state::sandboxed().is_some() { PROCESS.slots[0].load(Relaxed) / 2 } else { MAX }
}

/// How many rings of dead threads are kept, where the file can grow.
const KEPT_RINGS: u32 = 16;

/// A slot for a new owner, with nothing unwritten in it; the caller becomes its writer.
pub fn take_slot() -> Option<Slot> {
    let process = WorkingProcess::current();
    let take_dead = || if slot_layout().is_ring() { take_longest_dead_ring(KEPT_RINGS) } else { take_ended() };
    // Where the file cannot grow, no ring is kept that a thread needs.
    let take_kept = || slot_layout().is_ring().then(|| take_longest_dead_ring(1)).flatten();
    let slot = take_dead().or_else(take_fresh).or_else(|| {
        sweep();
        take_dead().or_else(|| grow(process)).or_else(take_kept).or_else(|| grow_in_memory(process))
    })?;
    // SAFETY: the memory of a slot that nobody uses.
    let is_there = || unsafe { reserve_pages(slot.base.as_ptr(), slot_layout().slot_size()) }.is_ok();
    if slot.is_hole.load(Relaxed) != 0 && !is_there() {
        return None;
    }
    slot.is_hole.store(0, Relaxed);
    // Nobody else uses a slot without an LWP.
    slot.writer.store(thread_id(), Relaxed);
    Some(slot)
}

/// A slot that no thread has had yet. Those of files that the process has left are not used any more.
fn take_fresh() -> Option<Slot> {
    core::iter::from_fn(|| Slot::take_from(&FRESH)).find(|slot| !slot.is_stale())
}

/// Makes the slot available to another thread as soon as its own, which is about to end, is gone.
pub fn release_slot(slot: Slot) {
    if slot.is_stale() {
        return;
    }
    if slot_layout().is_ring() {
        slot.death_order.store(PROCESS.ended_threads.fetch_add(1, Relaxed) + 1, Relaxed);
        PROCESS.dead_rings.fetch_add(1, Release);
    } else {
        slot.put_into(&ENDED);
    }
}

/// A slot whose thread is dead. A few are examined; those whose thread still exists are put back.
fn take_ended() -> Option<Slot> {
    let mut alive = [None; 4];
    let mut dead = None;
    for place in &mut alive {
        let taken = core::iter::from_fn(|| Slot::take_from(&ENDED)).find(|slot| !slot.is_stale());
        let Some(slot) = taken else { break };
        let lwp = slot.lwp.load(Relaxed);
        if thread_exists(process_state::id(), lwp) {
            *place = Some(slot);
        } else if write_out(slot, lwp) {
            dead = Some(slot);
            break;
        }
    }
    alive.into_iter().flatten().for_each(|slot| slot.put_into(&ENDED));
    dead
}

/// Writes what the dead owner recorded last. If that leaves nothing, the caller is the slot's writer.
fn write_out(slot: Slot, lwp: u32) -> bool {
    if lwp == 0 {
        return true;
    }
    if !take_from_dead(slot, lwp) {
        return false;
    }
    let entry = file_entry(slot, lwp);
    slot.append_in_flight_record(0);
    let now = clock::since_epoch(clock::now_fenced());
    if let Err(errno) = slot.write_all_with_losses(entry, || slot.append_loss_record(0, now)) {
        // What cannot be written stays in the trbuf, but not of any number of threads.
        if PROCESS.unwritable_slots.fetch_add(1, Relaxed) < unwritable_max() {
            slot.release_writer();
            return false;
        }
        let (lost, since) = slot.drop_all();
        slot.lose(lost, errno, since);
    }
    entry.remove_user(slot, lwp);
    slot.set_lwp(0);
    true
}

/// Becomes the writer of a dead thread's slot.
fn take_from_dead(slot: Slot, lwp: u32) -> bool {
    // A thread that ended during a write does not continue it.
    let _ = slot.writer.compare_exchange(lwp, 0, Acquire, Relaxed);
    slot.become_writer(thread_id(), ALL_REGIONS) == WriteRight::Taken
}

/// Finds slots of threads whose end no hook has seen (`syscall(SYS_exit)`), each time the number of slots has doubled.
fn sweep() {
    let slots = PROCESS.slots[process_state::generation()].load(Relaxed);
    let due = PROCESS.next_sweep.load(Relaxed);
    if slots < due.max(16) || PROCESS.next_sweep.compare_exchange(due, 2 * slots, Relaxed, Relaxed).is_err() {
        return;
    }
    let process = WorkingProcess::current();
    for_each_slot(|slot| {
        let lwp = slot.lwp.load(Relaxed);
        let is_owned = lwp != 0 && slot.state.load(Relaxed) == SLOT_OWNED;
        // In a child that returns here all of its parent's threads are gone, and the slots are none of its own.
        if is_owned && !thread_exists(process.id(), lwp) && process.is_current() && slot.end() {
            release_slot(slot);
        }
    });
}

/// The ring of the thread that ended first, if there are so many of ended threads; the caller becomes its writer.
fn take_longest_dead_ring(least: u32) -> Option<Slot> {
    let pid = process_state::id();
    // Counted off first, so that two threads that begin at a time do not both take the one above the number to keep.
    let count_off = || {
        let more = |rings: u32| (rings >= least).then(|| rings - 1);
        PROCESS.dead_rings.fetch_update(AcqRel, Relaxed, more).is_ok()
    };
    let count_again = || PROCESS.dead_rings.fetch_add(1, Release);
    while !process_state::writes_through() && count_off() {
        let mut longest: Option<(u64, Slot)> = None;
        for_each_slot(|slot| {
            let death_order = slot.death_order.load(Relaxed);
            if slot.state.load(Relaxed) == SLOT_ENDED
                && !slot.is_stale()
                && longest.is_none_or(|(first, _)| death_order < first)
                && !thread_exists(pid, slot.lwp.load(Relaxed))
            {
                longest = Some((death_order, slot));
            }
        });
        let Some((death_order, slot)) = longest else {
            count_again();
            return None;
        };
        if slot.state.compare_exchange(SLOT_ENDED, SLOT_OWNED, AcqRel, Relaxed).is_err() {
            // Another thread was faster.
            count_again();
            continue;
        }
        let lwp = slot.lwp.load(Relaxed);
        if slot.death_order.load(Relaxed) != death_order || thread_exists(pid, lwp) {
            // Since the search it has had another owner, which has ended, perhaps as the last of all, or is about to.
            slot.state.store(SLOT_ENDED, Release);
            count_again();
            continue;
        }
        if !take_from_dead(slot, lwp) {
            slot.state.store(SLOT_ENDED, Relaxed);
            count_again();
            return None;
        }
        // OBSERVABLE: the dead thread's records are gone.
        slot.set_lwp(0);
        file_entry(slot, lwp).remove_user(slot, lwp);
        control::count_reused_ring(header(process_state::generation()).map(|header| &header.control));
        return Some(slot);
    }
    None
}
