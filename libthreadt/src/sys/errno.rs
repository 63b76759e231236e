//! errno of the calling thread, which is the host's: after a hook it is what it is after the next function.

use core::ffi::c_int;

pub fn errno() -> c_int {
    // SAFETY: libc's own errno of this thread.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}

/// Calls a function, after which errno is as it was before.
pub fn keeping_errno<T>(call: impl FnOnce() -> T) -> T {
    let before = errno();
    let result = call();
    set_errno(before);
    result
}
