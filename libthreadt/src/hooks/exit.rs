//! The functions that end a thread or the process.

use core::ffi::c_int;

use crate::glibc::next_functions::{self, NextFunction};
use crate::glibc::object_words::Ptr;
use crate::lifecycle;

hook! {
    /// `void pthread_exit(void *exit_status);`
    fn pthread_exit(exit_status: Ptr; caller) -> ! {
        lifecycle::record_thread_exit(exit_status as u64, caller);
        // SAFETY: the next function with the host's argument; it unwinds through this frame, which has nothing to drop.
        unsafe {
            let next: unsafe extern "C-unwind" fn(Ptr) -> ! = core::mem::transmute(next_functions::pthread_exit.address());
            next(exit_status)
        }
    }
}

hook! {
    /// `void thrd_exit(int exit_status);`
    fn thrd_exit(exit_status: c_int; caller) -> ! {
        lifecycle::record_thread_exit(i64::from(exit_status) as u64, caller);
        // SAFETY: as above.
        unsafe {
            let next: unsafe extern "C-unwind" fn(c_int) -> ! = core::mem::transmute(next_functions::thrd_exit.address());
            next(exit_status)
        }
    }
}

/// Ends the process by a function that does not run the handler of this library.
unsafe fn end_by(next: &NextFunction, status: c_int, caller: u64) -> ! {
    lifecycle::record_process_exit(status, caller);
    lifecycle::finish();
    // SAFETY: the next function with the host's argument.
    unsafe {
        let next: unsafe extern "C-unwind" fn(c_int) -> ! = core::mem::transmute(next.address());
        next(status)
    }
}

hook! {
    /// `void exit(int status);`
    fn exit(status: c_int; caller) -> ! {
        lifecycle::record_process_exit(status, caller);
        // SAFETY: the next function with the host's argument.
        unsafe {
            let next: unsafe extern "C-unwind" fn(c_int) -> ! = core::mem::transmute(next_functions::exit.address());
            next(status)
        }
    }
}

hook! {
    /// `void _exit(int status);`
    fn _exit(status: c_int; caller) -> ! {
        // SAFETY: the host's call.
        unsafe { end_by(&next_functions::_exit, status, caller) }
    }
}

hook! {
    /// `void _Exit(int status);`
    #[allow(non_snake_case, reason = "its name in C")]
    fn _Exit(status: c_int; caller) -> ! {
        // SAFETY: the host's call.
        unsafe { end_by(&next_functions::_Exit, status, caller) }
    }
}

hook! {
    /// `void quick_exit(int status);`
    fn quick_exit(status: c_int; caller) -> ! {
        // SAFETY: the host's call.
        unsafe { end_by(&next_functions::quick_exit, status, caller) }
    }
}
