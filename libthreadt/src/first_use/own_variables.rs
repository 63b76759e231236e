//! Whether a forked child has thread-local variables of its own. It has a copy of its parent's memory, but of shared memory there is no copy,
//! and a thread's stack, with its variables, may be that (`pthread_attr_setstack`). What the child stored in the library's variable its
//! parent would take for its own slot. So a child is recorded only if the variables are certainly a copy.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::origin::Origin;
use crate::process_state::{is_unrecorded, switch_all_off};
use crate::sys::diagnostics::{Warning, warn};
use crate::sys::stack;

/// Set in a child whose variables may be its parent's. Its own children's may be, too, however they are made.
static MAY_BE_SHARED: AtomicBool = AtomicBool::new(false);

/// Whether a child of the calling thread has variables of its own for certain, however it is made.
pub fn have_children_own_variables() -> bool {
    !MAY_BE_SHARED.load(Relaxed) && stack::is_structure_private()
}

/// Whether the calling process, a forked child that is not initialised yet, may have its parent's variables. Then nothing is recorded in it.
pub fn are_variables_shared() -> bool {
    if is_unrecorded() {
        return true;
    }
    let origin = Origin::of_this_process();
    let are_own = !MAY_BE_SHARED.load(Relaxed) && (origin.has_own_variables() || stack::is_structure_private());
    if are_own {
        // A jump out of the initialisation may lead here again, when the note of a fork is forgotten.
        origin.with_own_variables().note();
    } else {
        MAY_BE_SHARED.store(true, Relaxed);
        switch_all_off();
        warn(
            Warning::Variables,
            &[b"this process may share thread-local variables with its parent; nothing is recorded"],
        );
    }
    !are_own
}
