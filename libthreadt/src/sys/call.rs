//! One system call, made directly.
//!
//! libc's own functions set errno, are cancellation points and may be interposed; none of that may happen to the host
//! because of this library.

use core::mem::MaybeUninit;

use super::unasked_call::call_unasked;
pub use super::unasked_call::{Errno, Result};
use super::{seccomp_filter, thread_word, user_dispatch};

/// Makes the system call `number`. Arguments that are not given are 0. In a thread that the kernel would kill for it, or that
/// would get a SIGSYS, the call fails with `EPERM`.
///
/// # Safety
/// The arguments must be what that system call demands.
pub unsafe fn call<const N: usize>(number: libc::c_long, arguments: [usize; N]) -> Result<usize> {
    #[cfg(test)]
    if is_observable(number) {
        super::observable_step();
    }
    let arguments = core::array::from_fn(|at| arguments.get(at).copied().unwrap_or(0));
    if thread_word::is_muted()
        || user_dispatch::is_on()
        || seccomp_filter::would_kill(number, &arguments) && is_filtered()
    {
        return Err(Errno(libc::EPERM));
    }
    // SAFETY: the caller's.
    unsafe { call_unasked(number, arguments) }
}

/// Whether a filter is in force in this thread: those that the program has installed may be other threads'.
#[cold]
fn is_filtered() -> bool {
    let question = [libc::PR_GET_SECCOMP as usize, 0, 0, 0, 0, 0];
    // SAFETY: the call takes no pointer.
    seccomp_filter::would_kill(libc::SYS_prctl, &question)
        || unsafe { call_unasked(libc::SYS_prctl, question) } != Ok(0)
}

/// The struct that a system call fills. `make_call` gets the struct's address.
///
/// # Safety
/// A call that succeeds must have filled the struct.
pub unsafe fn filled_by<T>(make_call: impl FnOnce(usize) -> Result<usize>) -> Result<T> {
    let mut value = MaybeUninit::<T>::uninit();
    make_call(value.as_mut_ptr() as usize)?;
    // SAFETY: the caller's.
    Ok(unsafe { value.assume_init() })
}

/// Whether another thread or a reader of the files can observe the call, or the caller what they do.
#[cfg(test)]
fn is_observable(number: libc::c_long) -> bool {
    [libc::SYS_openat, libc::SYS_fstat, libc::SYS_pwrite64, libc::SYS_ftruncate].contains(&number)
}
