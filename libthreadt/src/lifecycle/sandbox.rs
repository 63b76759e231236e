//! The program moves to where it, or its children, may not reach the files of the trace any more.

use crate::first_use::is_recording;
use crate::process_state::PROCESS;
use crate::storage;
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
