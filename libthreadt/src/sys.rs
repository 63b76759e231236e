//! System calls, made directly.
//!
//! libc's own functions set errno, are cancellation points and may themselves be interposed; none of that may happen
//! to the host because of us. Every function here answers with the kernel's result: `Err` holds the errno value.

use core::arch::asm;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;

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

/// Repeats a call that a signal interrupted: some file systems answer so whenever one is pending. Not for ever, as a
/// profiler's timer may come faster than the call gets done.
fn uninterrupted(mut call: impl FnMut() -> Result<usize>) -> Result<usize> {
    let mut result = call();
    for _ in 0..100 {
        if result != Err(Errno(libc::EINTR)) {
            break;
        }
        result = call();
    }
    result
}

/// A file descriptor that is closed when it goes out of scope.
///
/// Only for functions that hold it briefly and across which nothing of the host's runs.
#[derive(Debug)]
pub struct Fd(c_int);

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: we opened it, and nobody else knows its number.
        let _ = unsafe { call(libc::SYS_close, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

impl Fd {
    /// Opens `path`; the descriptor does not survive an exec.
    pub fn open(path: &CStr, flags: c_int, mode: u32) -> Result<Fd> {
        let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
        // SAFETY: the path is NUL-terminated.
        let fd = uninterrupted(|| unsafe {
            call(
                libc::SYS_openat,
                [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, mode as usize, 0, 0],
            )
        })?;
        let fd = Fd(fd as c_int);
        if fd.0 > 2 {
            return Ok(fd);
        }
        // The host has closed one of the standard descriptors; what it writes there must not come to us.
        // SAFETY: no memory is involved.
        let higher = unsafe { call(libc::SYS_fcntl, [fd.0 as usize, libc::F_DUPFD_CLOEXEC as usize, 3, 0, 0, 0]) }?;
        Ok(Fd(higher as c_int))
    }

    /// Bytes read into `buffer` from `at` on; 0 at the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<usize> {
        // SAFETY: the buffer is ours to write.
        unsafe {
            call(libc::SYS_pread64, [self.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), at as usize, 0, 0])
        }
    }

    /// Bytes read into `buffer`; 0 at the end of the file.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        // SAFETY: the buffer is ours to write.
        unsafe { call(libc::SYS_read, [self.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) }
    }

    /// Writes all of the `length` bytes from `text` on at the place `at` of the file.
    ///
    /// # Safety
    /// The bytes must be readable.
    pub unsafe fn write_at(&self, text: *const u8, length: usize, at: u64) -> Result {
        let mut done = 0;
        while done < length {
            // SAFETY: `done` is less than `length`, so the range stays within what the caller grants.
            let result = unsafe {
                let text = text.add(done) as usize;
                call(libc::SYS_pwrite64, [self.0 as usize, text, length - done, at as usize + done, 0, 0])
            };
            match result {
                Ok(0) => return Err(Errno(libc::ENOSPC)),
                Ok(written) => done += written,
                Err(Errno(libc::EINTR)) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Appends `text` to a file that was opened for appending, or is new.
    ///
    /// # Errors
    /// `EFBIG` if the process may not write that far: the signal that the write would raise could kill the host.
    pub fn write(&self, text: &[u8]) -> Result {
        if (self.stat()?.st_size as u64).saturating_add(text.len() as u64) > file_size_limit() {
            return Err(Errno(libc::EFBIG));
        }
        let mut rest = text;
        while !rest.is_empty() {
            // SAFETY: the text is readable.
            match unsafe { call(libc::SYS_write, [self.0 as usize, rest.as_ptr() as usize, rest.len(), 0, 0, 0]) } {
                Ok(written) => rest = rest.get(written..).unwrap_or(b""),
                Err(Errno(libc::EINTR)) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// What the file is.
    pub fn stat(&self) -> Result<libc::stat> {
        stat(self.0)
    }

    /// Sets the permission bits.
    pub fn set_mode(&self, mode: u32) -> Result {
        // SAFETY: no memory is involved.
        unsafe { call(libc::SYS_fchmod, [self.0 as usize, mode as usize, 0, 0, 0, 0]) }.map(drop)
    }

    /// Cuts the file to `length` bytes.
    pub fn truncate(&self, length: u64) -> Result {
        // SAFETY: no memory is involved.
        unsafe { call(libc::SYS_ftruncate, [self.0 as usize, length as usize, 0, 0, 0, 0]) }.map(drop)
    }

    /// Reserves disk space for a range, so that touching its mapping cannot fail; the file grows to cover it.
    ///
    /// # Errors
    /// `EFBIG` as for [`Fd::write`].
    pub fn reserve(&self, at: u64, length: u64) -> Result {
        if at.saturating_add(length) > file_size_limit() {
            return Err(Errno(libc::EFBIG));
        }
        let arguments = [self.0 as usize, 0, at as usize, length as usize, 0, 0];
        // SAFETY: no memory is involved.
        uninterrupted(|| unsafe { call(libc::SYS_fallocate, arguments) }).map(drop)
    }

    /// Maps `length` bytes from `at` on, shared.
    pub fn map(&self, at: u64, length: usize) -> Result<*mut u8> {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let arguments = [0, length, protection, libc::MAP_SHARED as usize, self.0 as usize, at as usize];
        // SAFETY: the kernel chooses a free range.
        unsafe { call(libc::SYS_mmap, arguments) }.map(|address| address as *mut u8)
    }

    /// How large the file's file system is and how much of that is free for this user.
    pub fn space(&self) -> Result<Space> {
        let system = self.file_system()?;
        let block = system.f_frsize as u64;
        Ok(Space { total: system.f_blocks.saturating_mul(block), free: system.f_bavail.saturating_mul(block) })
    }

    fn file_system(&self) -> Result<libc::statfs> {
        let mut system = MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: the kernel fills the struct when it answers 0.
        unsafe {
            call(libc::SYS_fstatfs, [self.0 as usize, system.as_mut_ptr() as usize, 0, 0, 0, 0])?;
            Ok(system.assume_init())
        }
    }

    /// Whether nobody, in whatever namespace, has the file open or mapped for writing.
    ///
    /// `self` must have been opened read-only. The answer is `Err` where the file system knows no leases, or grants them
    /// without knowing of all writers: an overlay counts writers of the layer below, and network file systems those of
    /// other machines not at all.
    pub fn has_no_writer(&self) -> Result<bool> {
        const OVERLAYFS: i64 = 0x794c_7630;
        const NFS: i64 = 0x6969;
        const SMB2: i64 = 0xfe53_4d42;
        const FUSE: i64 = 0x6573_5546;
        const CIFS: i64 = 0xff53_4d42;
        const PLAN9: i64 = 0x0102_1997;
        const CEPH: i64 = 0x00c3_6400;
        if [OVERLAYFS, NFS, SMB2, FUSE, CIFS, PLAN9, CEPH].contains(&self.file_system()?.f_type) {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        let lease = |kind: c_int| {
            // SAFETY: no memory is involved.
            unsafe { call(libc::SYS_fcntl, [self.0 as usize, libc::F_SETLEASE as usize, kind as usize, 0, 0, 0]) }
        };
        match lease(libc::F_RDLCK) {
            Ok(_) => {
                let _ = lease(libc::F_UNLCK);
                Ok(true)
            }
            Err(Errno(libc::EAGAIN)) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// The next directory entries, as `getdents64` gives them; 0 bytes at the end.
    pub fn directory_entries(&self, buffer: &mut [u8]) -> Result<usize> {
        // SAFETY: the buffer is ours to write.
        unsafe { call(libc::SYS_getdents64, [self.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) }
    }
}

/// Room on a file system, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Of the whole file system.
    pub total: u64,
    /// Free for this user.
    pub free: u64,
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

/// Renames without replacing: `Err(EEXIST)` if there is such a name already.
pub fn rename(from: &CStr, to: &CStr) -> Result {
    let here = libc::AT_FDCWD as usize;
    let flags = libc::RENAME_NOREPLACE as usize;
    // SAFETY: both paths are NUL-terminated.
    unsafe { call(libc::SYS_renameat2, [here, from.as_ptr() as usize, here, to.as_ptr() as usize, flags, 0]) }.map(drop)
}

/// Renames, replacing what has the new name.
pub fn replace(from: &CStr, to: &CStr) -> Result {
    // SAFETY: both paths are NUL-terminated.
    unsafe { call(libc::SYS_rename, [from.as_ptr() as usize, to.as_ptr() as usize, 0, 0, 0, 0]) }.map(drop)
}

/// Gives a file another name; `Err(EEXIST)` if there is such a name already.
pub fn link(from: &CStr, to: &CStr) -> Result {
    // SAFETY: both paths are NUL-terminated.
    unsafe { call(libc::SYS_link, [from.as_ptr() as usize, to.as_ptr() as usize, 0, 0, 0, 0]) }.map(drop)
}

/// Removes a name.
pub fn unlink(path: &CStr) -> Result {
    // SAFETY: the path is NUL-terminated.
    unsafe { call(libc::SYS_unlink, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Makes a directory.
pub fn make_directory(path: &CStr, mode: u32) -> Result {
    // SAFETY: the path is NUL-terminated.
    unsafe { call(libc::SYS_mkdir, [path.as_ptr() as usize, mode as usize, 0, 0, 0, 0]) }.map(drop)
}

/// The text of a symbolic link, cut to the buffer.
pub fn read_link(path: &CStr, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the path is NUL-terminated, the buffer ours to write.
    unsafe { call(libc::SYS_readlink, [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) }
}

/// The working directory with its terminating NUL; returns the length without it.
pub fn working_directory(buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the buffer is ours to write.
    let length = unsafe { call(libc::SYS_getcwd, [buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0, 0]) }?;
    Ok(length.saturating_sub(1))
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
