//! The ends of a thread and of the process that the program asks for.

use core::ffi::c_int;

use spec::id;

use crate::measure::Ptr;
use crate::process::{self, PROCESS};
use crate::real::Real;
use crate::{clock, ending, real, record, start};

/// `void pthread_exit(void *exit_status);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_exit(exit_status: Ptr) -> ! {
    start::tell_exit(exit_status as u64);
    // SAFETY: the real function with the host's argument; it unwinds through this frame, which has nothing to drop.
    unsafe {
        let real: unsafe extern "C" fn(Ptr) -> ! = core::mem::transmute(real::pthread_exit.address());
        real(exit_status)
    }
}

/// `void thrd_exit(int exit_status);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn thrd_exit(exit_status: c_int) -> ! {
    start::tell_exit(i64::from(exit_status) as u64);
    // SAFETY: as above.
    unsafe {
        let real: unsafe extern "C" fn(c_int) -> ! = core::mem::transmute(real::thrd_exit.address());
        real(exit_status)
    }
}

fn tell(status: c_int) {
    if process::records(id::PROC_EXIT) && !process::is_borrowed() {
        record::put(&id::PROC_EXIT_0, clock::now(), [i64::from(status) as u64, 0, 0, 0, 0]);
        PROCESS.exit_told.store(1, core::sync::atomic::Ordering::Relaxed);
    }
}

/// The last handler of `exit`, which runs after all others and after every destructor; also after main returned.
pub extern "C" fn last(status: c_int, _argument: *mut core::ffi::c_void) {
    if PROCESS.exit_told.load(core::sync::atomic::Ordering::Relaxed) == 0 {
        tell(status);
    }
    ending::finish();
}

/// Ends the process by a function that runs no handlers of ours.
unsafe fn end_by(real: &Real, status: c_int) -> ! {
    tell(status);
    ending::finish();
    // SAFETY: the real function with the host's argument.
    unsafe {
        let real: unsafe extern "C" fn(c_int) -> ! = core::mem::transmute(real.address());
        real(status)
    }
}

/// `void exit(int status);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn exit(status: c_int) -> ! {
    tell(status);
    // SAFETY: the real function with the host's argument.
    unsafe {
        let real: unsafe extern "C" fn(c_int) -> ! = core::mem::transmute(real::exit.address());
        real(status)
    }
}

/// `void _exit(int status);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    // SAFETY: the host's call.
    unsafe { end_by(&real::_exit, status) }
}

/// `void _Exit(int status);`
#[cfg_attr(not(test), unsafe(no_mangle))]
#[allow(non_snake_case, reason = "its name in C")]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the host's call.
    unsafe { end_by(&real::_Exit, status) }
}

/// `void quick_exit(int status);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn quick_exit(status: c_int) -> ! {
    // SAFETY: the host's call.
    unsafe { end_by(&real::quick_exit, status) }
}
