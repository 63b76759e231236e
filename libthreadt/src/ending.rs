//! The process's end: what all threads have recorded goes to their files.
//!
//! Other threads run on while the process ends, and go on recording. First every slot's limit is set to 0, so that from
//! then on each record is written at once; then all threads pass a barrier, after which a record that was begun with
//! the old limit shows in its slot's `in_progress`. Once that is done, the slot is written out.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::process::{self, PROCESS};
use crate::slot::{ALL_REGIONS, Slot, Writer};
use crate::sys::Errno;
use crate::{buffers, clock, directory, record, ring, sys, thread, trinfo};

/// How long records in the making are waited for, all of them together: a thread may have been stopped, or have left one
/// by a jump.
const PATIENCE_STEPS: u32 = 2000;
const PATIENCE_NS: i64 = 100_000;

/// Writes all that has been recorded; whatever comes later is written at once. `true` if every slot is empty now.
fn write_everything() -> bool {
    process::set_write_through(true);
    // ORDERING: the barrier stands between our stores to `flush_threshold` and our loads of `in_progress`, on every thread's side.
    let _ = sys::barrier();
    let (mut complete, mut patience) = (true, PATIENCE_STEPS);
    buffers::for_each_slot(|slot| complete &= write_slot(slot, &mut patience));
    complete
}

/// Writes out one slot; `patience` is how many steps of [`PATIENCE_NS`] may still be waited.
fn write_slot(slot: &'static Slot, patience: &mut u32) -> bool {
    let lwp = slot.lwp.load(Relaxed);
    if lwp == 0 || slot.is_empty() && slot.in_progress.load(Relaxed) == 0 && slot.lost.load(Relaxed) == 0 {
        return true;
    }
    let ours = thread::slot_if_any().is_some_and(|ours| core::ptr::eq(ours, slot));
    if !ours {
        while slot.in_progress.load(Relaxed) != 0 {
            // Otherwise trace-cat finds it in the trbuf.
            let Some(less) = patience.checked_sub(1) else { return false };
            *patience = less;
            sys::sleep(PATIENCE_NS);
        }
    }
    if slot.become_writer(sys::thread_id(), ALL_REGIONS) != Writer::Taken {
        return false;
    }
    if slot.lwp.load(Relaxed) != lwp {
        // It has been handed on, to a thread that writes each record at once.
        slot.release_writer();
        return true;
    }
    slot.tell_losses(0, clock::since_epoch(clock::now()));
    let written = slot.write_all(buffers::entry(lwp));
    slot.release_writer();
    record::report(written);
    written.is_ok() && slot.is_empty()
}

/// Counts what could not be written and is in anonymous memory, which goes with the process, and lets this thread's last
/// record tell of it. Always `false`: the trbuf still holds something.
fn count_anonymous() -> bool {
    let mut lost = None;
    buffers::for_each_slot(|slot| {
        if slot.anonymous.load(Relaxed) != 0 && !slot.is_empty() {
            // Why it could not be written, if that has been seen.
            let cause = match slot.cause.load(Relaxed) {
                0 => libc::ENOMEM,
                errno => errno as i32,
            };
            let (records, cause) = slot.drop_all(Errno(cause));
            lost = Some((lost.map_or(0, |(before, _)| before) + records, cause));
        }
    });
    if let (Some((records, cause)), Some(slot)) = (lost, thread::slot_if_any()) {
        slot.lose(records, cause);
        write_slot(slot, &mut 0);
    }
    false
}

/// Takes the sole right to change limits and to write other threads' slots; `false` if another thread keeps it for more
/// than a second, or this one has it already (a signal handler that ends the process).
fn begin_alone() -> bool {
    let me = sys::thread_id();
    for _ in 0..1000 {
        // ORDERING: Acquire pairs with the Release in `end_alone`: limits are as the last one left them.
        match PROCESS.writing_all.compare_exchange(0, me, Acquire, Relaxed) {
            Ok(_) => return true,
            Err(owner) if owner == me => return false,
            Err(_) => sys::sleep(1_000_000),
        }
    }
    false
}

fn end_alone() {
    PROCESS.writing_all.store(0, Release);
}

/// The process is about to end: the last chance to write.
///
/// The trbuf is removed if all of it was written and nobody has recorded since this began. Otherwise a record may be on
/// its way to its file when the process dies, and only the trbuf tells how much of it has to arrive.
pub fn finish() {
    if !PROCESS.files.is_done() || process::is_borrowed() || ring::must_stay() {
        return;
    }
    PROCESS.ending.store(1, SeqCst);
    if !begin_alone() {
        return;
    }
    if let Some(slot) = thread::slot_if_any() {
        thread::take_in(slot);
    }
    let complete = write_everything() || count_anonymous();
    trinfo::write(trinfo::Moment::Exit);
    if complete && PROCESS.late.load(SeqCst) == 0 {
        directory::remove_buffers();
    }
    end_alone();
}

/// The process is about to become another program, which will append to our files. The trbuf stays for it. Until
/// [`after_failed_exec`], which has to be told what this returned, nobody else may change limits.
pub fn before_exec() -> bool {
    let alone = PROCESS.files.is_done() && !ring::must_stay() && begin_alone();
    if alone {
        write_everything();
        if buffers::shape().is_ring() {
            trinfo::write(trinfo::Moment::Exec);
        }
    }
    alone
}

/// The exec failed.
pub fn after_failed_exec(alone: bool) {
    if alone {
        if PROCESS.ending.load(SeqCst) == 0 {
            process::set_write_through(false);
        }
        end_alone();
    }
}
