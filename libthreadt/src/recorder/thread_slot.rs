//! The slot of the calling thread: it claims one at its first record.
//!
//! While another thread makes the process's files, the thread waits for it. A signal handler that has interrupted this work in
//! its own thread cannot wait, nor can a thread whose predecessor sleeps, perhaps until this one goes on. Their records are
//! kept meanwhile (`storage::kept_records`).

use core::sync::atomic::Ordering::Relaxed;

use spec::encode::UntimedRecord;
use spec::id;

use super::append::append;
use super::handler;
use super::keeping::{keep_all, keep_early};
use super::slot_adoption::{claim_slot, claim_slot_for, claim_slot_of, lwp_of_host};
use crate::clock;
use crate::control;
use crate::first_use::{initialise, is_being_initialised, prepare_files_for_record};
use crate::process_state::{self, PROCESS, WorkingProcess};
use crate::storage::kept_records::{Kept, has_some, move_first, take_back};
use crate::storage::{self, Slot, thread_local};
use crate::sys::{BlockedSignals, Errno, thread_exists, thread_id, thread_word};
use crate::trace_dir::sandbox_spares;

/// This thread's slot; it claims one if it has none. If that fails, `records`, whose time is a reading `time` of the
/// clock, are counted as lost, unless their `lines` can be kept.
///
/// One record without a line stands for the one that begins a child's trace, which whoever claims a slot first appends. If that
/// has been counted as lost, nobody does; and if the process's files are still being made, it is not lost yet.
#[inline(always)]
pub fn slot_or_claim(records: u32, time: u64, lines: &[UntimedRecord]) -> Option<Slot> {
    match thread_local::current() {
        Some(slot) if process_state::is_initialised() => Some(slot),
        _ => claim(records, time, lines),
    }
}

#[cold]
#[inline(never)]
fn claim(records: u32, time: u64, lines: &[UntimedRecord]) -> Option<Slot> {
    if thread_word::is_muted() {
        forget_begin(lines);
        return lose_muted(records);
    }
    // The handler's own calls, and records that only the handler gets.
    if thread_word::is_handling() || initialise() && handler::is_instead_of_trace() {
        return None;
    }
    if let Some(slot) = thread_local::own().filter(|_| process_state::is_initialised()) {
        return Some(slot);
    }
    if is_being_initialised() {
        keep_early(time, lines);
        return None;
    }
    count_early_losses();
    if thread_local::is_other_task() {
        forget_begin(lines);
        return lose_without_slot(records, Errno(libc::EAGAIN), time);
    }
    let is_initialised = initialise();
    let process = WorkingProcess::current();
    let is_guest = process_state::is_vfork_child();
    // A vfork child makes no files for its parent, as which it records: it may be killed, and its ID and its number are others.
    let guest_of = if is_guest && is_initialised { lwp_of_host() } else { None };
    let has_files = if is_guest {
        guest_of.is_some() && PROCESS.files.is_done()
    } else {
        is_initialised && prepare_files_for_record(clock::since_epoch(time))
    };
    if !process.is_caller() {
        return slot_of_caller();
    }
    if !has_files {
        let is_early = match guest_of {
            Some(_) => process_state::sandboxed().is_none() && PROCESS.recording_ended.load(Relaxed) == 0,
            // Somebody is at that work, or leaves it to later.
            None => !is_guest && (PROCESS.initialised.is_busy() || is_initialised && !PROCESS.files.has_failed()),
        };
        let lost = if is_early { keep_all(guest_of, time, lines) } else { records };
        if !is_early {
            forget_begin(lines);
        }
        return lose_without_slot(lost, Errno(libc::EAGAIN), time);
    }
    // Only now: the initialisation makes a forked child forget its parent's slot.
    if let Some(slot) = thread_local::own() {
        return Some(slot);
    }
    if let Some(cause) = storage::refusal(clock::since_epoch(time)) {
        forget_begin(lines);
        return lose_without_slot(records, cause, time);
    }
    let claimed = guest_of.map_or_else(claim_slot, claim_slot_of);
    if !process.is_current() {
        return slot_of_caller();
    }
    let Some(slot) = claimed else {
        storage::report_failure(Err(Errno(libc::ENOMEM)));
        forget_begin(lines);
        return lose_without_slot(records, Errno(libc::ENOMEM), time);
    };
    let blocked = block_signals_while_moving();
    take_over_losses(slot);
    append_kept(slot);
    let parent = PROCESS.unrecorded_parent.load(Relaxed);
    let is_untaken = parent != 0 && parent & TAKEN == 0;
    if is_untaken && PROCESS.unrecorded_parent.compare_exchange(parent, parent | TAKEN, Relaxed, Relaxed).is_ok() {
        append_begin(slot, time);
    }
    // The signals that have waited come here.
    drop(blocked);
    if process.is_current() { Some(slot) } else { slot_of_caller() }
}

/// The slot of this thread where it is that of a forked child which returns into its parent's work; `None` in one in which no hook has
/// been called: the record is its parent's.
fn slot_of_caller() -> Option<Slot> {
    thread_local::own().filter(|_| process_state::is_initialised())
}

/// The signals that wait while records and counts that stand elsewhere get into a slot, if there are any: a jump would leave one that is
/// in both places, and a handler that executes another program would write it once more.
fn block_signals_while_moving() -> Option<BlockedSignals> {
    let is_some = has_some() || has_losses_without_slot() || PROCESS.unrecorded_parent.load(Relaxed) != 0;
    is_some.then(BlockedSignals::new).flatten()
}

/// Whether records of threads without a slot were lost and stand in no slot's count.
fn has_losses_without_slot() -> bool {
    control::words().lost_without_slot.load(Relaxed) != 0
}

/// Set in the parent's PID while a thread writes the record that begins a child's trace. Should a jump leave that, the end of the
/// process finds it.
const TAKEN: u32 = 1 << 31;

/// Appends the record that begins a child's trace, if it is recorded and not there yet. `time` is that of the record for which the
/// slot was claimed.
fn append_begin(slot: Slot, time: u64) {
    let parent = PROCESS.unrecorded_parent.load(Relaxed) & !TAKEN;
    if lacks_begin() {
        let line = UntimedRecord { kind: &id::PROC_BEGIN_0, arguments: [u64::from(parent), 0, 0, 0, 0] };
        // Before the record for which the slot is claimed, which a signal handler's fork may have interrupted, and before
        // those of other threads.
        append(slot, PROCESS.initialised_at.load(Relaxed).min(time), &[line]);
    }
    PROCESS.unrecorded_parent.store(0, Relaxed);
}

/// The record that begins a child's trace is about to be counted as lost, if `lines`, which have not been recorded, are none.
fn forget_begin(lines: &[UntimedRecord]) {
    if lines.is_empty() {
        PROCESS.unrecorded_parent.store(0, Relaxed);
    }
}

/// Counts what was lost while this process was initialised.
fn count_early_losses() {
    if PROCESS.lost_early.load(Relaxed) != 0 && process_state::is_initialised() {
        let since = PROCESS.lost_early_since.swap(0, Relaxed);
        lose_without_slot(PROCESS.lost_early.swap(0, Relaxed), Errno(libc::EAGAIN), since);
    }
}

/// Appends to the slot the records of its thread that were kept.
fn append_kept(slot: Slot) {
    let lwp = slot.lwp.load(Relaxed);
    while move_first(|other| other == lwp, |record| append(slot, record.time, &[record.line])).is_some() {}
}

/// Gives what was kept of threads that have made no record since, each a slot.
fn write_kept() {
    // This thread has left what it was moving. Where no signals could wait, a handler may have interrupted that instead; it is there twice
    // then if the handler's exec fails.
    take_back(|lwp| lwp == thread_id() || !thread_exists(process_state::id(), lwp));
    let write = |record: Kept| {
        let Some(slot) = claim_slot_for(record.lwp, record.tid) else {
            lose_without_slot(1, Errno(libc::ENOMEM), record.time);
            return;
        };
        append(slot, record.time, &[record.line]);
        append_kept(slot);
        slot.end();
        storage::release_slot(slot);
    };
    while move_first(|_| true, write).is_some() {}
}

/// Counts records whose thread has no slot; always `None`.
fn lose_without_slot(records: u32, cause: Errno, time: u64) -> Option<Slot> {
    if records == 0 {
        return None;
    }
    if let Some(hindrance) = process_state::sandboxed() {
        let cause = if PROCESS.files.is_done() { cause } else { hindrance };
        sandbox_spares::count_losses(records, cause, if time == 0 { 0 } else { clock::since_epoch(time) });
        return None;
    }
    let _ = PROCESS.without_slot_since.compare_exchange(0, time, Relaxed, Relaxed);
    control::count_lost_without_slot(records, cause);
    None
}

/// Counts records of a thread that may make no system calls, if it can in its slot, where they are found after its death;
/// always `None`.
fn lose_muted(records: u32) -> Option<Slot> {
    let cause = Errno(libc::EPERM);
    match thread_local::slot_of_any_thread() {
        // Its readings of the clock fail. The slot has the time since which it is muted.
        Some(slot) => slot.lose(records, cause, 0),
        None => return lose_without_slot(records, cause, 0),
    }
    None
}

/// Whether the files would have records, or losses, that are nowhere else yet.
pub fn has_records_without_slot() -> bool {
    !handler::is_instead_of_trace()
        && (has_some() || PROCESS.lost_early.load(Relaxed) != 0 || has_losses_without_slot() || has_left_begin())
}

/// Whether the record that begins a child's trace was to be written, and a jump has left that.
fn has_left_begin() -> bool {
    let is_busy = PROCESS.initialised.is_busy() || PROCESS.files.is_busy();
    let has_begun = is_busy || PROCESS.has_begun_trace.load(Relaxed) != 0;
    has_begun && lacks_begin()
}

/// Whether the record that begins a child's trace is not written yet.
fn lacks_begin() -> bool {
    PROCESS.unrecorded_parent.load(Relaxed) != 0 && control::records_now(id::PROC_BEGIN)
}

/// Writes what is kept of threads without a slot, and gives what such threads have lost to the thread that ends the process.
/// That may be one without a slot, too: the last one, after main has left by `pthread_exit`, if it began after recording had stopped.
pub fn take_over_last_losses() {
    count_early_losses();
    let _blocked = block_signals_while_moving();
    write_kept();
    let slot = thread_local::own();
    let has_more = has_losses_without_slot() || lacks_begin();
    let may_claim = slot.is_none() && has_more && !thread_word::is_muted();
    if let Some(slot) = if may_claim { claim_slot() } else { slot } {
        take_over_losses(slot);
    }
    if let Some(slot) = thread_local::own().filter(|_| !thread_word::is_muted()) {
        append_begin(slot, clock::now_fenced());
    }
}

/// Moves the count of records lost by threads without a slot to this thread's slot, whose loss record will report them.
fn take_over_losses(slot: Slot) {
    let (lost, cause) = control::take_lost_without_slot();
    if lost != 0 {
        let since = match PROCESS.without_slot_since.swap(0, Relaxed) {
            0 => 0,
            since => clock::since_epoch(since),
        };
        slot.lose(lost, cause, since);
    }
}
