//! The program moves to where it, or its children, may not reach the files of the trace any more.

use core::sync::atomic::Ordering::Relaxed;

use crate::first_use::{is_recording, prepare_files};
use crate::process_state::{self, PROCESS};
use crate::storage;
use crate::sys::{file_system_user, is_only_thread, user_id};
use crate::trace_dir::{directory, sandbox_spares};

/// Makes this process's files, since it may not be able to at its first record, trbufs for children that will not be able to make their
/// own, and room in this process's for its further threads.
pub fn prepare_for_sandbox() {
    if !is_recording() || !directory::resolve() {
        return;
    }
    if !PROCESS.files.is_done() && !process_state::is_vfork_child() {
        make_files_early();
    }
    sandbox_spares::make();
    if PROCESS.files.is_done() {
        storage::grow_for_sandbox();
    }
}

/// Prepares for this thread alone becoming another user as far as files are concerned, or getting a root of its own: makes the
/// process's files, since its first record may be the process's, and the other threads go on where they are; or room in its trbuf for
/// the threads that it will make.
pub fn prepare_for_departure() {
    if !is_recording() || process_state::is_vfork_child() {
        return;
    }
    if PROCESS.files.is_done() {
        storage::grow_for_sandbox();
        return;
    }
    if !is_only_thread() {
        make_files_early();
    }
}

/// Makes the files, if a file can be made: what fails here, as where the program has lowered its limit on files for this moment, need not
/// fail at the first record, which ends all recording if it does. Nor are they made as another user: the thread comes back from that.
fn make_files_early() {
    let is_itself = file_system_user() == Some(user_id());
    if is_itself && directory::resolve() && directory::takes_files() {
        PROCESS.made_early.store(1, Relaxed);
        prepare_files();
    }
}
