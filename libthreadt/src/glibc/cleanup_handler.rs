//! A function that is called when a thread is cancelled or calls `pthread_exit`.
//!
//! It is a cleanup handler as C programs had it before compilers knew of exceptions, a buffer in glibc's list of the
//! thread. When glibc unwinds the stack it calls the handler as soon as it has left the frame with the buffer, and also
//! when it can unwind no further, because a frame of the program has no unwind information; a personality routine
//! (`unwind_guard`) is not called then. The program's own handlers in the frames above have run before.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use super::next_functions::{_pthread_cleanup_pop, _pthread_cleanup_push};

/// `struct _pthread_cleanup_buffer` of `pthread.h`, part of glibc's ABI.
#[repr(C)]
pub struct CleanupBuffer {
    routine: *mut c_void,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut CleanupBuffer,
}

type Handler = extern "C" fn(*mut c_void);
type Push = unsafe extern "C" fn(*mut CleanupBuffer, Handler, *mut c_void);
type Pop = unsafe extern "C-unwind" fn(*mut CleanupBuffer, c_int);

impl CleanupBuffer {
    pub const EMPTY: CleanupBuffer =
        CleanupBuffer { routine: null_mut(), argument: null_mut(), cancel_type: 0, previous: null_mut() };
}

/// From now on `ended` is called if the calling thread is cancelled or calls `pthread_exit`.
///
/// # Safety
/// The buffer must stay, for this alone, until the thread has ended, or [`pop`] has it. It must be on the stack above the calling frame.
pub unsafe fn push(buffer: *mut CleanupBuffer, ended: Handler) {
    if _pthread_cleanup_pop.address_if_any().is_some()
        && let Some(push) = _pthread_cleanup_push.address_if_any()
    {
        // SAFETY: glibc's function with its prototype; the caller's.
        unsafe {
            let push: Push = core::mem::transmute(push);
            push(buffer, ended, null_mut());
        }
    }
}

/// The handler that [`push`] has given the calling thread last is not called any more.
///
/// # Safety
/// `buffer` was pushed last.
pub unsafe fn pop(buffer: *mut CleanupBuffer) {
    if _pthread_cleanup_push.address_if_any().is_some()
        && let Some(pop) = _pthread_cleanup_pop.address_if_any()
    {
        // SAFETY: as above.
        unsafe {
            let pop: Pop = core::mem::transmute(pop);
            pop(buffer, 0);
        }
    }
}
