//! `fork` and `_Fork`. `vfork` has no hook, because it returns twice through the frame that called it.

use core::ffi::c_int;

use spec::id;

use super::result::errno;
use crate::config::detail;
use crate::first_use::records;
use crate::glibc::next_functions::{self, NextFunction};
use crate::{clock, lifecycle, recorder};

unsafe fn fork_by(next: &NextFunction, caller: u64) -> c_int {
    let recorded = records(id::PROC_FORK);
    if recorded {
        recorder::put(&id::PROC_FORK_1, clock::now_fenced(), [0, 0, 0, 0, detail(caller)]);
    }
    // SAFETY: the next function takes no arguments.
    let child = unsafe {
        let next: unsafe extern "C-unwind" fn() -> c_int = core::mem::transmute(next.address());
        next()
    };
    if child == 0 {
        lifecycle::begin_child();
    } else if recorded {
        let columns = if child < 0 { [0, errno() as u64, 0, 0, 0] } else { [child as u64, 0, 0, 0, 0] };
        recorder::put(&id::PROC_FORK_2, clock::now_fenced(), columns);
    }
    child
}

hook! {
    /// `pid_t fork(void);`
    fn fork(; caller) -> c_int {
        // SAFETY: the host's call.
        unsafe { fork_by(&next_functions::fork, caller) }
    }
}

hook! {
    /// `pid_t _Fork(void);`
    #[allow(non_snake_case, reason = "its name in C")]
    fn _Fork(; caller) -> c_int {
        // SAFETY: the host's call.
        unsafe { fork_by(&next_functions::_Fork, caller) }
    }
}
