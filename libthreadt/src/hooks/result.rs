//! What the host's calls return, as columns have it.

use core::ffi::c_int;

use crate::glibc::object_words::Ptr;
use crate::sys::errno::errno;

pub trait CallResult: Copy {
    /// The column `rval`: 0 or an errno value; for functions that return something else, that.
    fn rval(&self) -> u64;

    /// Whether the result, 0 or an errno value, is an error.
    #[inline(always)]
    fn is_error(&self) -> bool {
        // A mutex whose owner has died is acquired.
        ![0, libc::EOWNERDEAD as u64].contains(&self.rval())
    }
}

impl CallResult for c_int {
    fn rval(&self) -> u64 {
        *self as u64
    }
}

/// The result of a thread's routine: its exit status.
impl CallResult for Ptr {
    fn rval(&self) -> u64 {
        *self as u64
    }
}

/// The result of functions that return nothing: success.
impl CallResult for () {
    fn rval(&self) -> u64 {
        0
    }
}

/// The result of the semaphore functions: 0, or -1 and errno.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct SemStatus(c_int);

impl CallResult for SemStatus {
    fn rval(&self) -> u64 {
        if self.0 == 0 { 0 } else { errno() as u64 }
    }
}

/// The result of the C11 functions: `thrd_success`, `thrd_busy` and so on, in glibc's numbers.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct ThrdStatus(c_int);

impl CallResult for ThrdStatus {
    fn rval(&self) -> u64 {
        match self.0 {
            0 => 0,
            1 => libc::EBUSY as u64,
            3 => libc::ENOMEM as u64,
            4 => libc::ETIMEDOUT as u64,
            // thrd_error, 2
            _ => -1i64 as u64,
        }
    }
}

/// The int that the call stored at `pointer`; 0 if it failed or there is no pointer.
pub unsafe fn stored(pointer: Ptr, result: &impl CallResult) -> u64 {
    if pointer.is_null() || result.rval() != 0 {
        return 0;
    }
    // SAFETY: the next function has just written there.
    unsafe { pointer.cast::<c_int>().read() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_results_are_errno_values() {
        let rval = |result| ThrdStatus(result).rval() as i64;
        assert_eq!([rval(0), rval(1), rval(2), rval(3), rval(4)], [0, 16, -1, 12, 110]);
    }
}
