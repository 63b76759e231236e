//! A thread ends: by returning, by `pthread_exit`, or by cancellation.

use core::sync::atomic::Ordering::Relaxed;

use spec::id;

use crate::config::detail;
use crate::process_state::{self, PROCESS};
use crate::recorder::records;
use crate::storage::{
    ALL_REGIONS, Slot, WriteRight, file_entry, release_slot, report_unwritten, slot_layout, thread_local,
};
use crate::sys::{close_abandoned, thread_id, user_dispatch};
use crate::{clock, recorder};

/// The thread's slot. What a child has that is not initialised is its parent's.
pub(super) fn own_slot() -> Option<Slot> {
    thread_local::own().filter(|_| process_state::is_initialised())
}

/// The thread's routine was left by unwinding.
pub fn end_by_unwinding() {
    /// `PTHREAD_CANCELED`.
    const CANCELED: u64 = u64::MAX;
    match own_slot() {
        // `record_thread_exit` has recorded it.
        Some(slot) if slot.exit_recorded.load(Relaxed) != 0 => write_out(),
        _ => record_thread_exit(CANCELED, 0),
    }
}

/// Records this thread's end and writes what it has recorded to its file. What it records afterwards, in cleanup
/// handlers and destructors, still belongs to it. `caller` is the return address of `pthread_exit` or `thrd_exit`; 0 if
/// the thread ends otherwise.
pub fn record_thread_exit(status: u64, caller: u64) {
    if let Some(slot) = own_slot() {
        slot.end_left_records(|| true);
    }
    if records(id::THR_EXIT) {
        recorder::put(&id::THR_EXIT_0, clock::now_fenced(), [status, 0, 0, 0, detail(caller)]);
    }
    if let Some(slot) = own_slot() {
        // ORDERING: Relaxed; only this thread reads it.
        slot.exit_recorded.store(1, Relaxed);
    }
    write_out();
}

/// Writes what this thread, which is about to end, has recorded to its file (unless that is a ring), and releases its
/// slot to another thread once this one is gone.
fn write_out() {
    let Some(slot) = own_slot() else {
        // It may have left whatever it has done to get one: by jumps, or as it was cancelled in the process's first record.
        if PROCESS.files.is_done() || PROCESS.files.is_busy() {
            close_abandoned(thread_id(), None);
        }
        return;
    };
    let lwp = slot.lwp.load(Relaxed);
    // A record that was in progress when the thread was cancelled will never be finished.
    slot.in_progress.iter().for_each(|word| word.store(0, Relaxed));
    close_abandoned(lwp, None);
    if slot.writer.load(Relaxed) == lwp {
        slot.release_writer();
    }
    recorder::record_abandoned_release(slot);
    let keeps_ring = slot_layout().is_ring() && !process_state::writes_through();
    if !keeps_ring && slot.become_writer(lwp, ALL_REGIONS) == WriteRight::Taken {
        let time = clock::since_epoch(clock::now_fenced());
        let append = || slot.in_free_region(|depth| slot.append_loss_record(depth, time));
        report_unwritten(slot, slot.write_all_with_losses(file_entry(slot, lwp), append));
        slot.release_writer();
    }
    user_dispatch::end();
    if slot.end() {
        release_slot(slot);
    }
}
