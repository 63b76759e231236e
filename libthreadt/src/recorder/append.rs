//! Appends records to the slot of the calling thread, and writes its regions to the file when they are full.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

use spec::buffer::REGIONS;
use spec::encode::UntimedRecord;

use super::{late_record, nesting, slot_adoption};
use crate::clock;
use crate::first_use::process_info;
use crate::process_state::PROCESS;
use crate::storage::{self, RESERVE, Slot, WriteRight, capacity, file_entry, slot_layout, stopped};
use crate::sys::stack::stack_pointer;
use crate::sys::{self, BlockedSignals, Errno, observable_step, seccomp};
use crate::trace_dir::follow_time_namespace;

/// Appends lines with one time, a reading of the clock. Nests: a signal handler may come at any instruction, record,
/// and even leave by `siglongjmp`.
#[inline(always)]
pub fn append<const N: usize>(slot: Slot, time: u64, lines: &[UntimedRecord; N]) {
    append_lines(slot, clock::since_epoch(time), lines);
}

/// As [`append`], for any number of lines that a record has.
pub fn append_all(slot: Slot, time: u64, lines: &[UntimedRecord]) {
    append_lines(slot, clock::since_epoch(time), lines);
}

/// As [`append`], with nanoseconds since the Epoch.
#[inline(always)]
fn append_lines(slot: Slot, time: u64, lines: &[UntimedRecord]) {
    let place = stack_pointer();
    if slot.in_progress[0].load(Relaxed) == 0 {
        append_at(slot, 0, place, time, lines);
    } else {
        append_nested(slot, place, time, lines);
    }
}

/// The thread has a record in progress, or has left one by a jump.
#[cold]
#[inline(never)]
fn append_nested(slot: Slot, place: usize, time: u64, lines: &[UntimedRecord]) {
    match nesting::free_depth(slot, place) {
        REGIONS.. => slot.lose(lines.len() as u32, Errno(libc::ENOBUFS), time),
        depth => append_at(slot, depth, place, time, lines),
    }
}

/// Appends to region `depth`, in which no record is in progress. `place` is where the caller's stack is.
#[inline(always)]
fn append_at(slot: Slot, depth: usize, place: usize, time: u64, lines: &[UntimedRecord]) {
    // ORDERING: plain stores, ordered for this thread's own signal handlers by the compiler fences: a handler
    // either comes before the record and leaves everything as it was, or it sees that it is in progress. The thread
    // that ends the process makes every thread pass a barrier (membarrier) between setting the flush thresholds and
    // reading `in_progress`: then either this thread sees the new threshold, or the other one sees that a record is
    // in progress.
    let in_progress = &slot.in_progress[depth & (REGIONS - 1)];
    observable_step();
    in_progress.store(place as u64, Relaxed);
    compiler_fence(SeqCst);
    observable_step();
    let end = slot.end_of(depth).load(Relaxed);
    if end >= slot.flush_thresholds[depth & (REGIONS - 1)].load(Relaxed) {
        append_slowly(slot, depth, time, lines);
    } else {
        // SAFETY: this thread owns the slot, its record is the one in this region, and below the threshold there is room.
        unsafe { slot.append_at(depth, end, time, lines) };
    }
    compiler_fence(SeqCst);
    observable_step();
    in_progress.store(0, Relaxed);
}

/// The region is nearly full (if it is a ring: its oldest records are in the way), or each record is written at once.
#[cold]
#[inline(never)]
fn append_slowly(slot: Slot, depth: usize, time: u64, lines: &[UntimedRecord]) {
    if PROCESS.final_flush_begun.load(Relaxed) != 0 {
        late_record::begin(slot);
    }
    if slot.is_stale() {
        return append_elsewhere(slot, time, lines);
    }
    if let Some(cause) = storage::refusal(time) {
        return slot.lose(lines.len() as u32, cause, time);
    }
    if depth == 0 && !storage::has_room_on_disk(slot) {
        return slot.lose(lines.len() as u32, Errno(libc::ENOSPC), time);
    }
    let region = &slot.regions[depth & (REGIONS - 1)];
    let threshold = &slot.flush_thresholds[depth & (REGIONS - 1)];
    if threshold.load(Relaxed) == 0 {
        storage::end_left_write_through();
    }
    if slot_layout().is_ring() && storage::give_up_oldest(region, threshold, slot_layout(), depth) {
        if storage::is_check_point(region) {
            let is_checked = clock::check();
            if !seccomp::has_new_filter() {
                storage::read_ahead(slot, depth);
                if !is_checked {
                    follow_time_namespace();
                }
            }
        }
        slot.append_loss_record(depth, time);
        // SAFETY: this thread owns the slot, nobody writes it out, and there is room now.
        return unsafe { slot.append(depth, time, lines) };
    }
    let (end, full) = (slot.end_of(depth).load(Relaxed), capacity(depth) - RESERVE);
    if depth == 0 && end <= full && threshold.load(Relaxed) != 0 {
        // SAFETY: this thread owns the slot, its record is the one in this region, and there is room.
        unsafe { slot.append(depth, time, lines) };
        if storage::is_flush_point(&slot, lines, end, full)
            && slot.become_writer(slot.lwp.load(Relaxed), 0) == WriteRight::Taken
        {
            if let Some(_begun) = begin_write(slot, depth, true, time) {
                write_full(slot, depth);
                slot.append_loss_record(depth, time);
                slot.left_writes.note_done();
            }
            slot.release_writer();
        }
        return;
    }
    append_or_write(slot, depth, time, lines);
}

/// Writes this thread's buffer to its file. A ring is not written: it keeps its records.
pub fn write_out(slot: Slot) {
    if slot_layout().is_ring() || slot.is_stale() {
        return;
    }
    slot.in_free_region(|depth| {
        if depth == 0 && slot.become_writer(slot.lwp.load(Relaxed), 0) == WriteRight::Taken {
            sys::close_abandoned(slot.lwp.load(Relaxed), Some(stack_pointer()));
            write_full(slot, depth);
            slot.release_writer();
        }
    });
}

/// Appends to another slot: the process has left the files of this one.
fn append_elsewhere(stale: Slot, time: u64, lines: &[UntimedRecord]) {
    match slot_adoption::replace_stale_slot() {
        Some(slot) => append_lines(slot, time, lines),
        None => stale.lose(lines.len() as u32, Errno(libc::ENOMEM), time),
    }
}

/// Appends as the slot's writer. Writes the region before if it is full, and after if each record is written at once.
fn append_or_write(slot: Slot, depth: usize, time: u64, lines: &[UntimedRecord]) {
    let records = lines.len() as u32;
    let lwp = slot.lwp.load(Relaxed);
    let right = slot.become_writer(lwp, depth as u8);
    let may_write = matches!(right, WriteRight::Taken | WriteRight::Nested);
    // A handler's region is written when it is half full: it can only append while the interrupted thread writes all.
    let enough = if depth == 0 { capacity(depth) - RESERVE } else { capacity(depth) / 2 };
    let nearly_full = !slot.has_room(depth) || slot.end_of(depth).load(Relaxed) > enough;
    // Also in a handler that seems to have interrupted a write: it may have been left.
    let begun = if may_write { begin_write(slot, depth, nearly_full, time) } else { None };
    if begun.is_some() && nearly_full && stopped().is_none() {
        write_full(slot, depth);
        if slot.is_disowned() {
            return;
        }
    }
    let mut is_written = false;
    if slot.is_stale() {
        append_elsewhere(slot, time, lines);
    } else if let Some(cause) = storage::refusal(time) {
        slot.lose(records, cause, time);
    } else if right == WriteRight::Refused || !slot.has_room(depth) {
        lose_or_append_deeper(slot, depth, right, time, lines);
    } else {
        if may_write {
            slot.append_loss_record(depth, time);
        }
        // SAFETY: this thread owns the slot, nobody else is its writer, and there is room.
        unsafe { slot.append(depth, time, lines) };
        // Once recording stops, only the process's end needs the records in the file.
        let at_once = begun.is_some() && (stopped().is_none() || PROCESS.final_flush_begun.load(Relaxed) != 0);
        if right == WriteRight::Taken && at_once && slot.flush_thresholds[depth & (REGIONS - 1)].load(Relaxed) == 0 {
            let written = slot.write(depth, Some(depth), file_entry(slot, lwp));
            if !slot.is_disowned() {
                storage::report_unwritten(slot, written);
            }
            is_written = written.is_ok() && !slot.is_disowned();
        }
    }
    if right == WriteRight::Taken {
        slot.release_writer();
    }
    if is_written {
        write_records_of_handlers(slot, depth);
    }
    if begun.is_some() {
        slot.left_writes.note_done();
    }
    if stopped().is_some() && slot.end_of(depth).load(Relaxed) > enough {
        storage::outlast();
    }
}

/// A write that this thread has begun.
struct BegunWrite {
    /// The signals that wait until this is dropped.
    _blocked: Option<BlockedSignals>,
}

/// Begins a write by the slot's writer, and closes what earlier ones have left open; `None` in the pause of writes that are left by
/// jumps again and again.
#[inline(always)]
fn begin_write(slot: Slot, depth: usize, is_nearly_full: bool, time: u64) -> Option<BegunWrite> {
    let lwp = slot.lwp.load(Relaxed);
    let begins = slot.left_writes.begins(lwp, time);
    // Where each record is written at once, a program that tries a call until it returns in time would try for ever: there signals wait
    // only if records would be lost, then in the pause, too.
    let is_at_once = slot.flush_thresholds[depth & (REGIONS - 1)].load(Relaxed) == 0;
    let may_block = if is_at_once { is_nearly_full } else { begins };
    let blocked = if may_block { slot.left_writes.block_signals() } else { None };
    if !begins && blocked.is_none() {
        return None;
    }
    sys::close_abandoned(lwp, Some(stack_pointer()));
    Some(BegunWrite { _blocked: blocked })
}

/// Writes what signal handlers have recorded in regions behind `depth` while this thread was the writer. Those that come when it is none
/// write their records themselves.
fn write_records_of_handlers(slot: Slot, depth: usize) {
    let lwp = slot.lwp.load(Relaxed);
    // Anew each time: while one region is written handlers may record in all.
    for _ in 0..REGIONS {
        let Some(unwritten) = (depth + 1..REGIONS).find(|other| slot.has_unwritten(*other)) else { return };
        if slot.become_writer(lwp, unwritten as u8) != WriteRight::Taken {
            return;
        }
        let written = slot.write(unwritten, Some(depth), file_entry(slot, lwp));
        if !slot.is_disowned() {
            storage::report_unwritten(slot, written);
        }
        slot.release_writer();
        if written.is_err() {
            return;
        }
    }
}

/// The region has no room, or another thread is the writer. Where this is a signal handler that has interrupted the region's write, and
/// handlers come faster than that goes on, a deeper region has room, or the handler may write that.
#[cold]
#[inline(never)]
fn lose_or_append_deeper(slot: Slot, depth: usize, right: WriteRight, time: u64, lines: &[UntimedRecord]) {
    let writer_depth = usize::from(slot.writer_depth.load(Relaxed));
    let is_free = |deeper: usize| slot.in_progress[deeper & (REGIONS - 1)].load(Relaxed) == 0;
    let is_usable = |deeper: &usize| is_free(*deeper) && (slot.has_room(*deeper) || *deeper > writer_depth);
    match (depth + 1..REGIONS).find(is_usable).filter(|_| right == WriteRight::Interrupted) {
        Some(deeper) => append_at(slot, deeper, stack_pointer(), time, lines),
        None => slot.lose(lines.len() as u32, Errno(libc::EBUSY), time),
    }
}

/// Writes a full region to its file; if that fails, drops its older half. Also makes the regular checks.
fn write_full(slot: Slot, depth: usize) {
    let written = slot.write(depth, Some(depth), file_entry(slot, slot.lwp.load(Relaxed)));
    if slot.is_disowned() {
        return;
    }
    if depth == 0 {
        storage::restart_count(&slot);
    }
    // The region is not filled once more.
    storage::outlast();
    if written.is_err() && storage::is_left_for_others(slot) {
        return;
    }
    storage::report_failure(written);
    process_info::write_at_flush();
    if !clock::check() {
        follow_time_namespace();
    }
    if let Err(errno) = written
        && stopped().is_none()
    {
        slot.drop_older_half(depth, errno);
    }
}
