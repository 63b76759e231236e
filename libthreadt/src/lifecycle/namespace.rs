//! The process moves to another namespace.

use core::ffi::c_long;

use crate::clock;
use crate::process_state::{is_initialised, is_vfork_child};
use crate::trace_dir::{follow_time_namespace, identity};

/// Moves this process to other namespaces by `call_next`, which returns 0 if it does. In another time namespace
/// `CLOCK_MONOTONIC` shows another time; the kernel lets only a process with a single thread move there.
pub fn change_namespace(call_next: impl FnOnce() -> c_long) -> c_long {
    let result = call_next();
    // A process that is not initialised finds its namespace out when it is.
    if result == 0 && is_initialised() && !is_vfork_child() {
        clock::check();
        follow_time_namespace();
    }
    result
}

/// Notes how far the clocks of this process's time namespace are ahead: once children of it are in another one, the kernel shows only how
/// far those of that are.
pub fn note_time_namespace() {
    let _ = identity::clock_shifts();
}
