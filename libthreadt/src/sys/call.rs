//! One system call, made directly.
//!
//! libc's own functions set errno, are cancellation points and may be interposed; none of that may happen to the host
//! because of this library.

use core::arch::asm;
use core::ffi::c_int;
use core::mem::MaybeUninit;

use super::{seccomp_filter, thread_word, user_dispatch};

/// A positive errno value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

/// What a system call returned, or the errno of the first one that failed.
pub type Result<T = ()> = core::result::Result<T, Errno>;

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

/// As [`call`], whatever the kernel does with the thread.
///
/// # Safety
/// As for [`call`].
#[inline]
pub unsafe fn call_unasked(number: libc::c_long, [a, b, c, d, e, f]: [usize; 6]) -> Result<usize> {
    let result: isize;
    // SAFETY: the x86-64 convention: rcx and r11 are clobbered, everything else but rax is kept.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    if (-4095..0).contains(&result) { Err(Errno(-result as c_int)) } else { Ok(result as usize) }
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
