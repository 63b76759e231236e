//! One system call, made directly.
//!
//! libc's own functions set errno, are cancellation points and may be interposed; none of that may happen to the host
//! because of this library. Each function of [`crate::sys`] returns the kernel's result: `Err` holds the errno value.

use core::arch::asm;
use core::ffi::c_int;

/// A positive errno value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

/// What a system call answered.
pub type Result<T = ()> = core::result::Result<T, Errno>;

/// Makes the system call `number`.
///
/// # Safety
/// The arguments must be what that system call demands.
pub unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> Result<usize> {
    #[cfg(test)]
    if is_observable(number) {
        super::observable_step();
    }
    let result: isize;
    let [a, b, c, d, e, f] = arguments;
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

/// Whether another thread or a reader of the files can observe the call, or the caller what they do.
#[cfg(test)]
fn is_observable(number: libc::c_long) -> bool {
    [libc::SYS_openat, libc::SYS_fstat, libc::SYS_pwrite64, libc::SYS_ftruncate].contains(&number)
}
