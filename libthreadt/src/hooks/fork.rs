//! `fork` and `_Fork`. There is none for `vfork`, which returns twice through the frame that called it.

use core::ffi::c_int;

use spec::id;

use super::errno;
use crate::config::detail;
use crate::real::Real;
use crate::{clock, process, real, record, thread};

unsafe fn fork_by(real: &Real, caller: u64) -> c_int {
    let recorded = process::records(id::PROC_FORK);
    if recorded {
        record::put(&id::PROC_FORK_1, clock::now(), [0, 0, 0, 0, detail(caller)]);
    }
    // SAFETY: the real function takes no arguments.
    let child = unsafe {
        let real: unsafe extern "C" fn() -> c_int = core::mem::transmute(real.address());
        real()
    };
    if child == 0 {
        process::after_fork_in_child();
        if process::records(id::PROC_BEGIN) {
            // The child's trace begins with the record that says whose child it is.
            thread::slot(1);
        }
    } else if recorded {
        let columns = if child < 0 { [0, errno() as u64, 0, 0, 0] } else { [child as u64, 0, 0, 0, 0] };
        record::put(&id::PROC_FORK_2, clock::now(), columns);
    }
    child
}

hook! {
    /// `pid_t fork(void);`
    fn fork(; caller) -> c_int {
        // SAFETY: the host's call.
        unsafe { fork_by(&real::fork, caller) }
    }
}

hook! {
    /// `pid_t _Fork(void);`
    #[allow(non_snake_case, reason = "its name in C")]
    fn _Fork(; caller) -> c_int {
        // SAFETY: the host's call.
        unsafe { fork_by(&real::_Fork, caller) }
    }
}
