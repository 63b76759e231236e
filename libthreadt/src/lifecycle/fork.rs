//! A forked child begins.

use spec::id;

use crate::first_use::{after_fork_in_child, records};
use crate::recorder::slot_or_claim;

/// Begins the trace of a child, right after a fork.
pub fn begin_child() {
    after_fork_in_child();
    if records(id::PROC_BEGIN) {
        // With its slot the thread writes the child's first record, which names the parent.
        slot_or_claim(1);
    }
}
