//! The first record of a process: its files are made.

use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::process_state::{PROCESS, switch_all_off};
use crate::storage;
use crate::sys::{self, Result};
use crate::trace_dir::names_owner::{self, ClaimedTrbuf};
use crate::trace_dir::{directory, info_file};

use super::process_info;

/// Makes this process's files in the trace directory, unless they are there; whether they are there now.
///
/// A failure is reported once on stderr and ends all recording in this process.
pub fn prepare_files() -> bool {
    PROCESS.files.run(|| {
        // SAFETY: within `files`, which one thread of the process runs, and all users of the directory's paths have
        // passed.
        let prepared = directory::resolve() && unsafe { make_files() };
        if !prepared {
            switch_all_off();
        }
        prepared
    })
}

// Not inlined, so that later threads' first records need little stack.
#[cold]
#[inline(never)]
unsafe fn make_files() -> bool {
    // SAFETY: the caller's.
    match unsafe { make_trbuf(0) } {
        Ok(()) => {
            process_info::write_at_first_record();
            true
        }
        Err(errno) => directory::report_unusable(directory::path(), errno),
    }
}

/// # Safety
/// One thread of the process may call this, once for each generation of files.
unsafe fn make_trbuf(generation: usize) -> Result {
    // Closed, or a handler of this thread has lowered the limit on files.
    sys::repeat_if_closed(|| {
        // SAFETY: the caller's.
        match unsafe { names_owner::claim(generation) }? {
            ClaimedTrbuf::New(fd, owner) => {
                storage::make(generation, &fd, &owner).inspect_err(|_| names_owner::abandon_trbuf(generation))
            }
            ClaimedTrbuf::TakenOver(fd, owner) => storage::take_over(generation, &fd, &owner),
        }
    })
}

/// Begins other files, in the subdirectory for the user `uid`: every thread records there from its next record on. `false` if
/// that is not possible; then all stays as it is.
///
/// # Safety
/// One thread of the process may call this, when the files are ready.
pub unsafe fn begin_files_of_user(uid: u32) -> bool {
    PROCESS.has_moved.store(1, Relaxed);
    // SAFETY: the caller's.
    let has_moved = unsafe { names_owner::move_to_user(uid) };
    // SAFETY: as above.
    let begun = has_moved && unsafe { make_trbuf(1) }.is_ok();
    if has_moved && !begun {
        directory::move_back();
    }
    PROCESS.has_moved.store(begun.into(), Relaxed);
    if begun {
        PROCESS.anonymous.store(0, Relaxed);
        PROCESS.dead_rings.store(0, Relaxed);
        info_file::begin_anew();
        // OBSERVABLE: records go to the new files.
        PROCESS.generation.store(1, Release);
    }
    begun
}
