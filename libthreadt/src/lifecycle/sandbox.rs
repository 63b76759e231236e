//! The program moves to where it, or its children, may not reach the files of the trace any more.

use core::sync::atomic::Ordering::Relaxed;

use crate::first_use::{is_recording, prepare_files};
use crate::process_state::{self, PROCESS};
use crate::storage;
use crate::sys::{file_system_user, is_only_thread, user_id};
use crate::trace_dir::{directory, sandbox_spares};

/// Makes trbufs for children that will not be able to make their own, and room in this process's for its further threads.
pub fn prepare_for_sandbox() {
    if is_recording() && directory::resolve() {
        sandbox_spares::make();
        if PROCESS.files.is_done() {
            storage::grow_for_sandbox();
        }
    }
}

/// Makes the process's files, if they are not there, before this thread alone becomes another user as far as files are concerned,
/// or gets a root of its own: its first record may be the process's, and the other threads go on where they are.
pub fn prepare_for_departure() {
    if PROCESS.files.is_done() || !is_recording() || process_state::is_vfork_child() || is_only_thread() {
        return;
    }
    // Else it comes back.
    if file_system_user() == Some(user_id()) {
        PROCESS.made_early.store(1, Relaxed);
        prepare_files();
    }
}
