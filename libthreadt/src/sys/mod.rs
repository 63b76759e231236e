//! System calls, made directly.
//!
//! libc's own functions set errno, are cancellation points and may themselves be interposed; none of that may happen
//! to the host because of us. Every function here answers with the kernel's result: `Err` holds the errno value.

use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;

mod fd;
mod path;

pub use fd::Fd;
pub use path::{link, make_directory, read_link, rename, replace, unlink, working_directory};

/// A positive errno value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

/// What a system call answered.
pub type Result<T = ()> = core::result::Result<T, Errno>;

/// # Safety
/// As the system call demands of its arguments.
unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> Result<usize> {
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

/// What the file behind a descriptor is.
pub fn stat(fd: c_int) -> Result<libc::stat> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills the struct when it answers 0.
    unsafe {
        call(libc::SYS_fstat, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0])?;
        Ok(stat.assume_init())
    }
}

/// Whether a write to the descriptor would be taken at once, with somebody there to read it.
pub fn is_writable(fd: c_int) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one struct, ours to write; it does not wait.
    let ready = unsafe { call(libc::SYS_poll, [&raw mut poll as usize, 1, 0, 0, 0, 0]) };
    ready == Ok(1) && poll.revents == libc::POLLOUT
}

/// Writes the pieces to a descriptor in one call; what does not fit is lost.
pub fn write_pieces(fd: c_int, pieces: &[libc::iovec]) {
    // SAFETY: the pieces describe readable memory; writev does not write to it.
    let _ = unsafe { call(libc::SYS_writev, [fd as usize, pieces.as_ptr() as usize, pieces.len(), 0, 0, 0]) };
}

/// Fresh private memory.
pub fn anonymous(length: usize) -> Result<*mut u8> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: the kernel chooses a free range.
    unsafe { call(libc::SYS_mmap, [0, length, protection, flags, usize::MAX, 0]) }.map(|address| address as *mut u8)
}

/// Gives memory back.
///
/// # Safety
/// The range must be a mapping of ours that nobody uses.
pub unsafe fn unmap(address: *mut u8, length: usize) {
    // SAFETY: the caller owns the range.
    let _ = unsafe { call(libc::SYS_munmap, [address as usize, length, 0, 0, 0, 0]) };
}

/// Puts fresh private memory in the place of a mapping.
///
/// # Safety
/// The range must be a mapping of ours whose contents nobody needs any more.
pub unsafe fn make_private(address: *mut u8, length: usize) -> Result {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as usize;
    // SAFETY: the caller owns the range.
    unsafe { call(libc::SYS_mmap, [address as usize, length, protection, flags, usize::MAX, 0]) }.map(drop)
}

/// Lets the kernel zero the range in every child that does not share this process's memory (Linux 4.14).
///
/// # Safety
/// The range must be whole pages of private memory that a child may lose.
pub unsafe fn wipe_on_fork(address: *const u8, length: usize) -> Result {
    // SAFETY: the caller's.
    unsafe { call(libc::SYS_madvise, [address as usize, length, libc::MADV_WIPEONFORK as usize, 0, 0, 0]) }.map(drop)
}

/// Announces that [`barrier`] will be used.
pub fn register_barrier() -> Result {
    const REGISTER_PRIVATE_EXPEDITED: usize = 1 << 4;
    // SAFETY: no memory is involved.
    unsafe { call(libc::SYS_membarrier, [REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Makes every running thread of this process pass a full memory barrier.
pub fn barrier() -> Result {
    const PRIVATE_EXPEDITED: usize = 1 << 3;
    // SAFETY: no memory is involved.
    unsafe { call(libc::SYS_membarrier, [PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]) }.map(drop)
}

fn number(name: libc::c_long) -> u32 {
    // SAFETY: for the calls below, which take no arguments and cannot fail.
    unsafe { call(name, [0; 6]) }.unwrap_or(0) as u32
}

/// The process ID, asked anew.
pub fn process_id() -> u32 {
    number(libc::SYS_getpid)
}

/// The parent's process ID.
pub fn parent_id() -> u32 {
    number(libc::SYS_getppid)
}

/// The LWP ID of the calling thread, asked anew.
pub fn thread_id() -> u32 {
    number(libc::SYS_gettid)
}

/// The effective user ID.
pub fn user_id() -> u32 {
    number(libc::SYS_geteuid)
}

/// Whether the process `pid` still has the thread `lwp`.
pub fn thread_lives(pid: u32, lwp: u32) -> bool {
    // SAFETY: signal 0 only asks.
    let asked = unsafe { call(libc::SYS_tgkill, [pid as usize, lwp as usize, 0, 0, 0, 0]) };
    asked != Err(Errno(libc::ESRCH))
}

/// The largest file that this process may write, bytes.
pub fn file_size_limit() -> u64 {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the kernel fills the struct when it answers 0.
    unsafe {
        let arguments = [0, libc::RLIMIT_FSIZE as usize, 0, limit.as_mut_ptr() as usize, 0, 0];
        match call(libc::SYS_prlimit64, arguments) {
            Ok(_) => limit.assume_init().rlim_cur,
            Err(_) => u64::MAX,
        }
    }
}

/// Lets other threads run for about that long.
pub fn sleep(nanoseconds: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    // SAFETY: the struct is readable.
    let _ = unsafe { call(libc::SYS_nanosleep, [&raw const time as usize, 0, 0, 0, 0, 0]) };
}

/// The clock's time; for when the vDSO has none.
pub extern "C" fn clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    // SAFETY: as for the vDSO's function of that name, which this one stands for.
    match unsafe { call(libc::SYS_clock_gettime, [clock as usize, time as usize, 0, 0, 0, 0]) } {
        Ok(_) => 0,
        Err(Errno(errno)) => -errno,
    }
}

/// The calling thread's alternate signal stack.
pub fn signal_stack() -> Result<libc::stack_t> {
    let mut stack = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: the kernel fills the struct when it answers 0.
    unsafe {
        call(libc::SYS_sigaltstack, [0, stack.as_mut_ptr() as usize, 0, 0, 0, 0])?;
        Ok(stack.assume_init())
    }
}

/// Kernel name, host name, release and so on.
pub fn system_name() -> Result<libc::utsname> {
    let mut name = MaybeUninit::<libc::utsname>::uninit();
    // SAFETY: the kernel fills the struct when it answers 0.
    unsafe {
        call(libc::SYS_uname, [name.as_mut_ptr() as usize, 0, 0, 0, 0, 0])?;
        Ok(name.assume_init())
    }
}

/// Waits until `*word` is not `value` any more and [`wake_all`] was called, or for so many nanoseconds (under a second).
pub fn wait(word: &core::sync::atomic::AtomicU32, value: u32, nanoseconds: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let arguments = [word.as_ptr() as usize, FUTEX_WAIT_PRIVATE, value as usize, &raw const time as usize, 0, 0];
    // SAFETY: word and time are readable.
    let _ = unsafe { call(libc::SYS_futex, arguments) };
}

/// Whether a seccomp filter is in force (or says no to the question).
pub fn is_filtered() -> bool {
    // SAFETY: the call takes no pointer.
    let mode = unsafe { call(libc::SYS_prctl, [libc::PR_GET_SECCOMP as usize, 0, 0, 0, 0, 0]) };
    mode != Ok(0)
}

/// Wakes all threads that [`wait`] for the word.
pub fn wake_all(word: &core::sync::atomic::AtomicU32) {
    const FUTEX_WAKE_PRIVATE: usize = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the word is only an address here.
    let _ = unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, FUTEX_WAKE_PRIVATE, i32::MAX as usize, 0, 0, 0]) };
}

/// Reads a `timespec` that the host gave us but that the real call may not read: `None` if it is not there.
///
/// The kernel tries first: a futex wait reads its time limit before it finds that the word has another value.
pub fn read_timespec(time: *const c_void) -> Option<libc::timespec> {
    if time.is_null() {
        return None;
    }
    let word = core::sync::atomic::AtomicU32::new(0);
    let arguments = [word.as_ptr() as usize, FUTEX_WAIT_PRIVATE, 1, time as usize, 0, 0];
    // SAFETY: the word is readable and does not hold 1, so that the call does not wait.
    match unsafe { call(libc::SYS_futex, arguments) } {
        // SAFETY: the kernel has just read it.
        Err(Errno(libc::EAGAIN | libc::EINVAL)) => Some(unsafe { time.cast::<libc::timespec>().read_unaligned() }),
        _ => None,
    }
}

const FUTEX_WAIT_PRIVATE: usize = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wild_time_limits_are_not_read() {
        let time = libc::timespec { tv_sec: 5, tv_nsec: 7 };
        let read = read_timespec((&raw const time).cast()).unwrap();
        assert_eq!((read.tv_sec, read.tv_nsec), (5, 7));
        let invalid = libc::timespec { tv_sec: -1, tv_nsec: -1 };
        assert_eq!(read_timespec((&raw const invalid).cast()).unwrap().tv_nsec, -1);
        assert!(read_timespec(core::ptr::without_provenance(1)).is_none());
        assert!(read_timespec(core::ptr::null()).is_none());
    }

    #[test]
    fn errors_are_errno_values() {
        assert_eq!(Fd::open(c"/nonexistent/file", libc::O_RDONLY, 0).unwrap_err(), Errno(libc::ENOENT));
        assert!(thread_lives(process_id(), thread_id()));
    }
}
