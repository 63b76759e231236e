//! The final flush: at the process's end, what all threads have recorded goes to their files.
//!
//! Other threads run on while the process ends, and go on recording. First every flush threshold is set to 0, so that
//! each record is written at once from then on. Then all threads pass a barrier, after which a record that was begun
//! with an old threshold shows in its slot's word `in_progress`. When that record is finished, the slot is written out.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use spec::buffer::NOTE_ENDED;

use crate::first_use::{initialise_at_end, prepare_files_at_end, process_info};
use crate::process_state::{self, GENERATIONS, PROCESS, WorkingProcess};
use crate::storage::{self, ALL_REGIONS, RunsAfter, Slot, WriteRight, for_each_slot, slot_layout, thread_local};
use crate::sys::{self, Errno, observable_step, seccomp};
use crate::trace_dir::{has_keeper, names_owner, sandbox_spares};
use crate::{clock, recorder};

/// How long records in progress are waited for, all of them together: a thread may have been stopped, or have abandoned
/// one by a jump.
const PATIENCE_STEPS: u32 = 2000;
const PATIENCE_NS: i64 = 100_000;
/// How many steps the next flush of all slots waits at most. Each one that waits in vain leaves half of them for the next, so that a
/// program whose execs fail one after the other, as along `PATH`, does not wait for the same record each time.
static PATIENCE: AtomicU32 = AtomicU32::new(PATIENCE_STEPS);
const LEAST_STEPS: u32 = 8;
/// How long a release in flight is waited for. An older one was abandoned, or its thread does not get to run.
const RELEASE_PATIENCE_NS: u64 = 10_000_000;

/// Writes all that has been recorded; later records are written at once. `true` if every slot is empty now.
pub fn flush_all_slots() -> bool {
    storage::set_write_through(true);
    // ORDERING: every thread passes the barrier between this thread's stores to the flush thresholds and its loads of
    // `in_progress`.
    sys::barrier();
    let steps = PATIENCE.load(Relaxed);
    let (mut complete, mut patience) = (true, steps);
    // Stale slots are left as they are: this process may no longer write to their files.
    for_each_slot(|slot| complete &= slot.is_stale() || flush_slot(slot, &mut patience));
    let next = if patience == 0 { (steps / 2).max(LEAST_STEPS) } else { PATIENCE_STEPS };
    // Seldom another one: the kernel would copy its page for a forked child.
    if next != steps {
        PATIENCE.store(next, Relaxed);
    }
    complete
}

/// Writes what is left in the slots of files that the process has left for others. `true` if nothing is, and nobody writes
/// to these slots any more.
pub fn flush_stale_slots() -> bool {
    for_each_slot(|slot| {
        if slot.is_stale() {
            slot.set_flush_thresholds(true);
        }
    });
    // ORDERING: as in `flush_all_slots`. Later records find the threshold, and go to another slot.
    sys::barrier();
    let (mut complete, mut patience) = (true, PATIENCE_STEPS);
    for_each_slot(|slot| {
        if slot.is_stale() {
            complete &= flush_slot(slot, &mut patience) && !slot.has_record_in_progress();
        }
    });
    complete
}

/// Writes out one slot; `patience` is how many steps of [`PATIENCE_NS`] may still be waited.
fn flush_slot(slot: Slot, patience: &mut u32) -> bool {
    let lwp = slot.lwp.load(Relaxed);
    if lwp == 0
        || slot.is_empty()
            && (slot.is_idle() || slot.is_stale() && !slot.has_record_in_progress())
            && slot.lost.load(Relaxed) == 0
    {
        return true;
    }
    let ours = thread_local::own() == Some(slot);
    if !ours {
        let begun = clock::now_fenced();
        let is_releasing = || {
            let now = clock::now_fenced();
            // A release in a stale slot is recorded in the next one.
            !slot.is_stale() && slot.is_releasing(now.saturating_sub(RELEASE_PATIENCE_NS), begun)
        };
        while slot.has_record_in_progress() || is_releasing() {
            if slot.is_executing.load(SeqCst) != 0 {
                return false;
            }
            // If it takes too long, trace-cat finds the record in the trbuf.
            let Some(less) = patience.checked_sub(1) else { return false };
            *patience = less;
            sys::sleep(PATIENCE_NS);
        }
    }
    if slot.become_writer(sys::thread_id(), ALL_REGIONS) != WriteRight::Taken {
        return false;
    }
    if slot.lwp.load(Relaxed) != lwp {
        // Another thread has got it, which writes each record at once.
        slot.release_writer();
        return true;
    }
    let time = clock::since_epoch(clock::now_fenced());
    let (entry, append) = (storage::file_entry(slot, lwp), |depth| slot.append_loss_record(depth, time));
    let written = if ours {
        // A release that this thread has interrupted to call exec goes on if that fails; else the next program finds it.
        if PROCESS.final_flush_begun.load(Relaxed) != 0 {
            slot.in_free_region(|depth| slot.append_in_flight_record(depth));
        }
        slot.write_all_with_losses(entry, || slot.in_free_region(append))
    } else {
        if !slot.is_stale() {
            slot.append_in_flight_record(0);
        }
        slot.write_all_with_losses(entry, || append(0))
    };
    slot.release_writer();
    match slot.anonymous.load(Relaxed) {
        0 => storage::report_unwritten(slot, written),
        _ => storage::report_failure(written),
    }
    written.is_ok() && slot.is_empty()
}

/// Records the releases that are still in flight; `true` if there is none.
fn flush_releases() -> bool {
    let (mut idle, mut patience) = (true, PATIENCE_STEPS);
    for_each_slot(|slot| {
        // The pages of a slot without an owner may be a hole in the file, and the disk full.
        if slot.lwp.load(Relaxed) != 0 && !slot.is_stale() && !slot.is_idle() {
            flush_slot(slot, &mut patience);
            idle = false;
        }
    });
    idle
}

/// Lets other threads record no more, unless one has recorded since the final flush began; then the trbuf has to stay. Without
/// it the process might end between a release and its record, and after the record of the acquisition that followed.
pub fn begin_without_trbuf() -> bool {
    observable_step();
    // ORDERING: SeqCst here and in the recorder, which accesses the two words in the other order: either a record sees that
    // the process ends, or this sees the record.
    PROCESS.ending_lwp.store(sys::thread_id(), SeqCst);
    observable_step();
    let is_quiet = PROCESS.recorded_after_final_flush.load(SeqCst) == 0;
    if !is_quiet {
        PROCESS.ending_lwp.store(0, SeqCst);
    }
    is_quiet
}

/// Counts what could not be written and is lost with the process because it is in anonymous memory, and writes this
/// thread's loss record. Always `false`: the trbuf still holds something.
fn count_anonymous() -> bool {
    let mut lost: Option<(u32, u64, Errno)> = None;
    for_each_slot(|slot| {
        if slot.anonymous.load(Relaxed) != 0 && !slot.is_empty() {
            // Why it could not be written, if that is known.
            let cause = match slot.cause.load(Relaxed) {
                0 => libc::ENOMEM,
                errno => errno as i32,
            };
            let (before, before_since, _) = lost.unwrap_or((0, u64::MAX, Errno(0)));
            let (records, since) = slot.drop_all();
            lost = Some((before + records, before_since.min(since), Errno(cause)));
        }
    });
    if let (Some((records, since, cause)), Some(slot)) = (lost, thread_local::own()) {
        slot.lose(records, cause, since);
        flush_slot(slot, &mut 0);
    }
    false
}

/// Takes the sole right to change flush thresholds and to write other threads' slots; `false` if another thread keeps
/// it for more than a second, or this one has it already (a signal handler that ends the process).
#[inline(always)]
pub fn begin_alone() -> bool {
    for _ in 0..1000 {
        if PROCESS.flushing.take() {
            return true;
        }
        if PROCESS.flushing.holder().is_some_and(|holder| holder.lwp() == sys::thread_id()) {
            return false;
        }
        sys::sleep(1_000_000);
    }
    false
}

/// Gives up the right that [`begin_alone`] took.
pub fn end_alone() {
    PROCESS.flushing.release();
}

/// Whether rings have to stay in the trbuf: the program has put itself under a seccomp filter, which may kill it for a
/// system call that writes files, and until now none was made.
pub fn must_keep_rings() -> bool {
    slot_layout().is_ring() && seccomp::has_new_filter()
}

/// Lets readers know that this process was not killed.
fn note_end() {
    (0..GENERATIONS).for_each(|generation| storage::add_note(generation, NOTE_ENDED));
}

/// Ends a process whose trbuf has to stay, since nobody of the process can reach it. A system call more may be forbidden.
fn end_in_sandbox() {
    note_end();
    if !seccomp::has_new_filter() {
        storage::give_back_unused_room();
    }
}

/// Makes the files of a process that has only records without a slot: the thread that made the files has left that work by a jump, or
/// ends the process in a signal handler that has interrupted it. `true` if there are files now.
#[cold]
fn prepare_for_left_records() -> bool {
    sys::close_abandoned(sys::thread_id(), None);
    // Only now is known whether a handler has what was kept.
    initialise_at_end() && recorder::has_records_without_slot() && prepare_files_at_end()
}

/// The process is about to end: writes all that can be written.
///
/// The trbuf is removed, or left to the next child, if all of it was written and no thread has recorded since this began.
/// Otherwise a record may be on its way to its file when the process dies, and only the trbuf says which bytes belong there.
pub fn finish(after: RunsAfter) {
    // A process that has recorded nothing makes no system call: it may have forbidden itself any.
    let is_prepared = PROCESS.files.is_done();
    if !is_prepared && !recorder::has_records_without_slot()
        || process_state::is_vfork_child()
        || !is_prepared && !prepare_for_left_records()
    {
        return;
    }
    if must_keep_rings() {
        return note_end();
    }
    // A child that a signal handler forks from here on has a trbuf of its own, or none.
    let process = WorkingProcess::current();
    PROCESS.final_flush_begun.store(1, SeqCst);
    if !begin_alone() {
        return;
    }
    recorder::take_over_last_losses();
    let complete = flush_all_slots();
    if !process.is_current() {
        return;
    }
    if process_state::sandboxed().is_some() {
        // Everything stays in the trbuf.
        flush_releases();
        end_in_sandbox();
        return end_alone();
    }
    let complete = complete || count_anonymous();
    process_info::write_at_exit();
    let idle = flush_releases();
    if !process.is_current() {
        return;
    }
    if complete && idle && begin_without_trbuf() {
        process_info::remove_if_nothing_was_recorded();
        let is_blank = has_keeper() && storage::blank(process, after);
        if !process.is_current() {
            return;
        }
        // SAFETY: this thread alone ends the process, whose files are made.
        unsafe { names_owner::give_up_trbuf(is_blank) };
    } else if let Some(cause) = sandbox_spares::hindrance() {
        // No file is written any more, also where the program comes back.
        PROCESS.sandboxed.store(cause.0 as u32, Relaxed);
        end_in_sandbox();
    } else {
        note_end();
    }
    if process.is_current() {
        // SAFETY: as above.
        unsafe { names_owner::remove_spares() };
        sandbox_spares::remove_all();
        end_alone();
    }
}
