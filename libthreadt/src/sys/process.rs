//! The process, its threads and their limits, as the kernel knows them.

use core::mem::MaybeUninit;

use super::call::{Errno, Result, call};

/// The result of a system call that takes no arguments and cannot fail.
fn number(name: libc::c_long) -> u32 {
    // SAFETY: the callers below only ask for calls without arguments.
    unsafe { call(name, [0; 6]) }.unwrap_or(0) as u32
}

/// The process ID; asks the kernel each time.
pub fn process_id() -> u32 {
    number(libc::SYS_getpid)
}

/// The parent's process ID.
pub fn parent_id() -> u32 {
    number(libc::SYS_getppid)
}

/// The LWP ID of the calling thread; asks the kernel each time.
pub fn thread_id() -> u32 {
    number(libc::SYS_gettid)
}

/// The effective user ID.
pub fn user_id() -> u32 {
    number(libc::SYS_geteuid)
}

/// Whether the process `pid` still has the thread `lwp`.
pub fn thread_exists(pid: u32, lwp: u32) -> bool {
    // SAFETY: signal 0 is not delivered.
    let answer = unsafe { call(libc::SYS_tgkill, [pid as usize, lwp as usize, 0, 0, 0, 0]) };
    answer != Err(Errno(libc::ESRCH))
}

/// The largest file that this process may write, bytes.
pub fn file_size_limit() -> u64 {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the kernel fills the struct when it returns 0.
    unsafe {
        let arguments = [0, libc::RLIMIT_FSIZE as usize, 0, limit.as_mut_ptr() as usize, 0, 0];
        match call(libc::SYS_prlimit64, arguments) {
            Ok(_) => limit.assume_init().rlim_cur,
            Err(_) => u64::MAX,
        }
    }
}

/// The calling thread's alternate signal stack.
pub fn signal_stack() -> Result<libc::stack_t> {
    let mut stack = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: the kernel fills the struct when it returns 0.
    unsafe {
        call(libc::SYS_sigaltstack, [0, stack.as_mut_ptr() as usize, 0, 0, 0, 0])?;
        Ok(stack.assume_init())
    }
}

/// Kernel name, host name, release and so on.
pub fn system_name() -> Result<libc::utsname> {
    let mut name = MaybeUninit::<libc::utsname>::uninit();
    // SAFETY: the kernel fills the struct when it returns 0.
    unsafe {
        call(libc::SYS_uname, [name.as_mut_ptr() as usize, 0, 0, 0, 0, 0])?;
        Ok(name.assume_init())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_thread_exists() {
        assert!(thread_exists(process_id(), thread_id()));
    }
}
