//! The program moves to where it, or its children, may not reach the files of the trace any more.

use crate::first_use::is_recording;
use crate::trace_dir::{directory, sandbox_spares};

/// Makes trbufs for children that will not be able to make their own.
pub fn prepare_for_sandbox() {
    if is_recording() && directory::resolve() {
        sandbox_spares::make();
    }
}
