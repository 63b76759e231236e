//! `fork` and `_Fork`. `vfork` has no hook, because it returns twice through the frame that called it.

use core::ffi::c_int;

use spec::id;

use super::result::errno;
use crate::config::detail;
use crate::first_use::{after_fork_in_child, records};
use crate::{clock, recorder};

/// Forks by `call_next`.
pub fn proc_fork(caller: u64, call_next: impl Fn() -> c_int) -> c_int {
    let recorded = records(id::PROC_FORK);
    if recorded {
        recorder::put(&id::PROC_FORK_1, clock::now_fenced(), [0, 0, 0, 0, detail(caller)]);
    }
    let child = call_next();
    if child == 0 {
        after_fork_in_child();
        if records(id::PROC_BEGIN) {
            // With its slot the thread writes the child's first record, which names the parent.
            recorder::slot_or_claim(1, clock::now_fenced());
        }
    } else if recorded {
        let columns = if child < 0 { [0, errno() as u64, 0, 0, 0] } else { [child as u64, 0, 0, 0, 0] };
        recorder::put(&id::PROC_FORK_2, clock::now_fenced(), columns);
    }
    child
}
