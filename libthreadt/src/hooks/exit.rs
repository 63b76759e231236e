//! The functions that end a thread or the process.

use core::ffi::c_int;

use crate::first_use::records_nothing;
use crate::glibc::next_functions::{self, NextFunction};
use crate::glibc::object_words::Ptr;
use crate::lifecycle::{self, RunsAfter};

/// Defines hooks of functions that do not return, each with what is done before the call. They call functions of the program, which find
/// the stack as it would be without the hook: that jumps.
macro_rules! exit_functions {
    ($($(#[$meta:meta])* $name:ident $(= $export:literal)? ($status:ident: $kind:ty; $caller:ident) $before:block)+) => {
        $(hook! {
            $(#[$meta])*
            fn $name $(= $export)? ($status: $kind; $caller) -> () {
                $before
                // SAFETY: the next function with the host's argument. This frame has nothing to drop.
                unsafe { jump_to_next!($name($status: $kind) -> ()) }
            }
        })+
    };
}

exit_functions! {
    /// `void pthread_exit(void *exit_status);`
    pthread_exit(exit_status: Ptr; caller) { lifecycle::record_thread_exit(exit_status as u64, caller) }
    /// `void thrd_exit(int exit_status);`
    thrd_exit(exit_status: c_int; caller) { lifecycle::record_thread_exit(exit_status as u64, caller) }
    /// `void exit(int status);`
    exit(status: c_int; caller) { lifecycle::record_process_exit(status, caller) }
    /// `void _exit(int status);`
    _exit(status: c_int; caller) { end_process(status, caller, runs_after(&next_functions::_exit)) }
    /// `void _Exit(int status);`
    #[allow(non_snake_case, reason = "its name in C")]
    _Exit(status: c_int; caller) { end_process(status, caller, runs_after(&next_functions::_Exit)) }
    /// `void quick_exit(int status);`
    quick_exit = "quick_exit@@GLIBC_2.24" (status: c_int; caller) { lifecycle::before_quick_exit(status, caller) }
    /// `void quick_exit(int status);`, which also runs the destructors of the thread's variables.
    quick_exit_2_10 = "quick_exit@GLIBC_2.10" (status: c_int; caller) { lifecycle::before_quick_exit(status, caller) }
}

/// What runs after a function that ends the process at once: nothing, unless it is another interposer's.
fn runs_after(next: &NextFunction) -> RunsAfter {
    if next.is_libc() { RunsAfter::Handlers } else { RunsAfter::Program }
}

/// Does what the exit handler of this library does, before a function that does not run it.
fn end_process(status: c_int, caller: u64, after: RunsAfter) {
    if records_nothing() {
        return;
    }
    lifecycle::record_process_exit(status, caller);
    lifecycle::finish(after);
}
