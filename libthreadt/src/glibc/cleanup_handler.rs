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

/// Calls `body`; `ended` is called if the thread is cancelled or calls `pthread_exit` meanwhile.
#[inline(always)]
pub fn with_cleanup_handler<R>(ended: Handler, body: impl FnOnce() -> R) -> R {
    let (Some(push), Some(pop)) = (_pthread_cleanup_push.address_if_any(), _pthread_cleanup_pop.address_if_any())
    else {
        return body();
    };
    let mut buffer = CleanupBuffer { routine: null_mut(), argument: null_mut(), cancel_type: 0, previous: null_mut() };
    // SAFETY: glibc's functions with their prototypes; the buffer stands in this frame until it is taken out of the
    // list, or the frame is left by unwinding, which takes it out.
    unsafe {
        let push: Push = core::mem::transmute(push);
        let pop: Pop = core::mem::transmute(pop);
        push(&raw mut buffer, ended, null_mut());
        let result = body();
        pop(&raw mut buffer, 0);
        result
    }
}

/// From now on `ended` is called if the calling thread is cancelled or calls `pthread_exit`.
///
/// # Safety
/// The buffer must stay, for this alone, until the thread has ended. It must be on the stack above the calling frame.
pub unsafe fn push(buffer: *mut CleanupBuffer, ended: Handler) {
    if let Some(push) = _pthread_cleanup_push.address_if_any() {
        // SAFETY: glibc's function with its prototype; the caller's.
        unsafe {
            let push: Push = core::mem::transmute(push);
            push(buffer, ended, null_mut());
        }
    }
}
