//! One system call, whatever the kernel does with the thread.

use core::arch::asm;
use core::ffi::c_int;

/// A positive errno value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

/// What a system call returned, or the errno of the first one that failed.
pub type Result<T = ()> = core::result::Result<T, Errno>;

/// Makes the system call `number`, without a question whether a filter would kill for it.
///
/// # Safety
/// The arguments must be what that system call demands.
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
