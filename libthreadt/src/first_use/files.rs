//! The first record of a process: its files are made.

use core::cell::Cell;
use core::sync::atomic::Ordering::{Relaxed, Release};

use spec::buffer::Owner;

use crate::config::CONFIG;
use crate::process_state::{self, PROCESS, WorkingProcess, switch_all_off};
use crate::storage;
use crate::sys::{self, Errno, Reentry, Result, thread_id};
use crate::trace_dir::names_owner::{self, ClaimedTrbuf};
use crate::trace_dir::{directory, identity, info_file, sandbox_spares, shared_clock};

use super::process_info;

/// Makes this process's files in the trace directory, unless they are there; whether they are there now.
///
/// A failure is reported once on stderr and ends all recording in this process.
pub fn prepare_files() -> bool {
    prepare_files_if(patience(), || true)
}

/// For how long a thread that was at this work may sleep until another one takes it over, nanoseconds: a second, and twice as long each
/// time. In a file system that hangs, all of them would.
pub fn patience() -> u64 {
    1_000_000_000 << process_state::attempts().min(10)
}

/// As [`prepare_files`], for a record that this thread makes at a time, nanoseconds since the Epoch: not if it has left that work by jumps
/// too often.
pub fn prepare_files_for_record(now: u64) -> bool {
    prepare_files_if(patience(), || PROCESS.left_files.begins(thread_id(), now))
}

fn prepare_files_if(patience: u64, begins: impl Fn() -> bool) -> bool {
    loop {
        let process = WorkingProcess::current();
        // Until it is noted that the files are made.
        let blocked = Cell::new(None);
        let may_begin = || {
            let begins = process.is_current() && begins();
            if begins {
                blocked.set(PROCESS.left_files.block_signals());
            }
            begins
        };
        let work = || prepare(process);
        let prepared = PROCESS.files.run_unless_asleep(Reentry::BySignals, patience, may_begin, take_over_from, work);
        // A child that was forked meanwhile has begun with its parent's, and makes its own. So does who has taken the work over.
        if process.is_current() {
            return prepared;
        }
        // No hook has been called in the child yet; or a filter forbids to ask for its ID.
        if process_state::id() == 0 {
            return false;
        }
    }
}

fn prepare(process: WorkingProcess) -> bool {
    // Read here, where it takes no stack but its own: it is needed deep within.
    identity::start();
    // SAFETY: within `files`, which one thread of the process runs, and all users of the directory's paths have
    // passed.
    let prepared = directory::resolve() && unsafe { make_files(process) };
    // Without a trbuf a process in a sandbox goes on counting. A child that was forked meanwhile has not begun.
    if !prepared && process.is_current() && process_state::sandboxed().is_none() {
        switch_all_off();
    }
    prepared
}

/// As [`prepare_files`], in the thread that ends the process or calls exec, and also if that was at this work before: it has left the
/// work by a jump, or interrupted it. It may return to it, if exec fails. Nor is a thread waited for that sleeps.
pub fn prepare_files_at_end() -> bool {
    let me = thread_id();
    if PROCESS.files.is_begun_by(me) {
        begin_elsewhere();
    }
    PROCESS.files.give_up(me);
    give_up_parts(me);
    prepare_files_if(0, || true)
}

/// Lets the work begin anew at which the thread `lwp` was.
fn take_over_from(lwp: u32) {
    begin_elsewhere();
    give_up_parts(lwp);
}

/// Should who was at work return to it, no further step is taken there, as in a child.
fn begin_elsewhere() {
    process_state::begin_elsewhere();
    info_file::begin_place();
}

/// Lets each part of the work begin anew that the thread `lwp` has begun.
fn give_up_parts(lwp: u32) {
    directory::give_up(lwp);
    identity::give_up(lwp);
    shared_clock::give_up(lwp);
    info_file::give_up(lwp);
}

// Not inlined, so that later threads' first records need little stack.
#[cold]
#[inline(never)]
unsafe fn make_files(process: WorkingProcess) -> bool {
    // SAFETY: the caller's.
    let made = sandbox_spares::hindrance().map_or_else(|| unsafe { make_trbuf(0, process) }, Err);
    match made {
        _ if !process.is_current() => false,
        Ok(()) => {
            process_info::write_at_first_record();
            process.is_current() && {
                storage::check_directory_quota();
                true
            }
        }
        Err(errno) => use_spare(errno) || directory::report_unusable(directory::path(), errno),
    }
}

/// Lets this process, which can make no files because of `cause`, record in a trbuf that was made for that before; `false` if
/// there is none.
fn use_spare(cause: Errno) -> bool {
    let Some(spare) = sandbox_spares::claim(cause) else { return false };
    let owner = Owner { pid: process_state::recorded_id(), layout: CONFIG.get().layout, ..identity::owner() };
    // SAFETY: the memory is this process's from now on, and stays mapped.
    unsafe { storage::make_in_spare(spare.base, spare.slots, &owner) }.is_ok()
}

/// # Safety
/// One thread of the process may call this, once for each generation of files.
unsafe fn make_trbuf(generation: usize, process: WorkingProcess) -> Result {
    // Closed, or a handler of this thread has lowered the limit on files.
    sys::repeat_if_closed(|| {
        process.check()?;
        if generation == 0 {
            forget_unfinished(process);
        }
        // SAFETY: the caller's.
        match unsafe { names_owner::claim(generation, process) }? {
            ClaimedTrbuf::New(fd, owner) => storage::make(generation, &fd, &owner, process).inspect_err(|_| {
                if process.is_current() {
                    names_owner::abandon_trbuf(generation);
                }
            }),
            ClaimedTrbuf::TakenOver(fd, owner) => storage::take_over(generation, &fd, &owner, process),
        }
    })
}

/// Forgets what this process has made when it began this work before, and left it by a jump: no thread has a slot yet.
fn forget_unfinished(process: WorkingProcess) {
    if names_owner::has_unfinished_trbuf() {
        info_file::remove();
    }
    storage::forget_unfinished(process);
}

/// Begins other files, in the subdirectory for the user `uid`: every thread records there from its next record on. `false` if
/// that is not possible; then all stays as it is.
///
/// # Safety
/// One thread of the process may call this, when the files are ready.
pub unsafe fn begin_files_of_user(uid: u32) -> bool {
    let process = WorkingProcess::current();
    PROCESS.has_moved.store(1, Relaxed);
    // SAFETY: the caller's.
    let has_moved = unsafe { names_owner::move_to_user(uid, process) };
    // What was renamed was in the other directory.
    PROCESS.has_renamed_earlier.store(0, Relaxed);
    // SAFETY: as above.
    let begun = has_moved && unsafe { make_trbuf(1, process) }.is_ok();
    if !process.is_current() {
        return false;
    }
    if has_moved && !begun {
        directory::move_back();
    }
    PROCESS.has_moved.store(begun.into(), Relaxed);
    if begun {
        PROCESS.anonymous.store(0, Relaxed);
        PROCESS.has_sandbox_slots.store(0, Relaxed);
        PROCESS.dead_rings.store(0, Relaxed);
        info_file::begin_anew();
        // OBSERVABLE: records go to the new files.
        PROCESS.generation.store(1, Release);
    }
    begun
}
