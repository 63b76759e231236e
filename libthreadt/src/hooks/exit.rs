//! The functions that end a thread or the process.

use core::ffi::c_int;

use crate::glibc::object_words::Ptr;
use crate::lifecycle;

hook! {
    /// `void pthread_exit(void *exit_status);`
    fn pthread_exit(exit_status: Ptr; caller) -> ! {
        lifecycle::record_thread_exit(exit_status as u64, caller);
        // SAFETY: the next function with the host's argument; it unwinds through this frame, which has nothing to drop.
        unsafe { call_next!(pthread_exit(exit_status: Ptr) -> !) }
    }
}

hook! {
    /// `void thrd_exit(int exit_status);`
    fn thrd_exit(exit_status: c_int; caller) -> ! {
        lifecycle::record_thread_exit(i64::from(exit_status) as u64, caller);
        // SAFETY: as above.
        unsafe { call_next!(thrd_exit(exit_status: c_int) -> !) }
    }
}

hook! {
    /// `void exit(int status);`
    fn exit(status: c_int; caller) -> ! {
        lifecycle::record_process_exit(status, caller);
        // SAFETY: the next function with the host's argument.
        unsafe { call_next!(exit(status: c_int) -> !) }
    }
}

/// Defines hooks of functions that end the process and do not run the handler of this library.
macro_rules! immediate_exits {
    ($($(#[$meta:meta])* $name:ident;)*) => {
        $(hook! {
            $(#[$meta])*
            fn $name(status: c_int; caller) -> ! {
                lifecycle::record_process_exit(status, caller);
                lifecycle::finish();
                // SAFETY: the next function with the host's argument.
                unsafe { call_next!($name(status: c_int) -> !) }
            }
        })*
    };
}

immediate_exits! {
    /// `void _exit(int status);`
    _exit;
    /// `void _Exit(int status);`
    #[allow(non_snake_case, reason = "its name in C")]
    _Exit;
    /// `void quick_exit(int status);`
    quick_exit;
}
