//! The ends of a thread and of the process that the program asks for.

use core::ffi::c_int;

use spec::id;

use crate::config::detail;
use crate::measure::Ptr;
use crate::process::{self, PROCESS};
use crate::real::Real;
use crate::{clock, ending, real, record, start};

hook! {
    /// `void pthread_exit(void *exit_status);`
    fn pthread_exit(exit_status: Ptr; caller) -> ! {
        start::tell_exit(exit_status as u64, caller);
        // SAFETY: the real function with the host's argument; it unwinds through this frame, which has nothing to drop.
        unsafe {
            let real: unsafe extern "C" fn(Ptr) -> ! = core::mem::transmute(real::pthread_exit.address());
            real(exit_status)
        }
    }
}

hook! {
    /// `void thrd_exit(int exit_status);`
    fn thrd_exit(exit_status: c_int; caller) -> ! {
        start::tell_exit(i64::from(exit_status) as u64, caller);
        // SAFETY: as above.
        unsafe {
            let real: unsafe extern "C" fn(c_int) -> ! = core::mem::transmute(real::thrd_exit.address());
            real(exit_status)
        }
    }
}

/// Records the process's end, asked for at `caller`; 0 if it was not.
fn tell(status: c_int, caller: u64) {
    if process::records(id::PROC_EXIT) && !process::is_borrowed() {
        record::put(&id::PROC_EXIT_0, clock::now(), [i64::from(status) as u64, 0, 0, 0, detail(caller)]);
        PROCESS.exit_told.store(1, core::sync::atomic::Ordering::Relaxed);
    }
}

/// The last handler of `exit`, which runs after all others and after every destructor; also after main returned.
pub extern "C" fn last(status: c_int, _argument: *mut core::ffi::c_void) {
    if PROCESS.exit_told.load(core::sync::atomic::Ordering::Relaxed) == 0 {
        tell(status, 0);
    }
    ending::finish();
}

/// Ends the process by a function that runs no handlers of ours.
unsafe fn end_by(real: &Real, status: c_int, caller: u64) -> ! {
    tell(status, caller);
    ending::finish();
    // SAFETY: the real function with the host's argument.
    unsafe {
        let real: unsafe extern "C" fn(c_int) -> ! = core::mem::transmute(real.address());
        real(status)
    }
}

hook! {
    /// `void exit(int status);`
    fn exit(status: c_int; caller) -> ! {
        tell(status, caller);
        // SAFETY: the real function with the host's argument.
        unsafe {
            let real: unsafe extern "C" fn(c_int) -> ! = core::mem::transmute(real::exit.address());
            real(status)
        }
    }
}

hook! {
    /// `void _exit(int status);`
    fn _exit(status: c_int; caller) -> ! {
        // SAFETY: the host's call.
        unsafe { end_by(&real::_exit, status, caller) }
    }
}

hook! {
    /// `void _Exit(int status);`
    #[allow(non_snake_case, reason = "its name in C")]
    fn _Exit(status: c_int; caller) -> ! {
        // SAFETY: the host's call.
        unsafe { end_by(&real::_Exit, status, caller) }
    }
}

hook! {
    /// `void quick_exit(int status);`
    fn quick_exit(status: c_int; caller) -> ! {
        // SAFETY: the host's call.
        unsafe { end_by(&real::quick_exit, status, caller) }
    }
}
