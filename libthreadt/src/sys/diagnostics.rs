//! Lines on stderr: each kind of message at most once.
//!
//! The host may have closed descriptor 2 and got a file of its own under that number. So nothing is written unless
//! descriptor 2 is still the file that it was when the process began.

use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::call::Errno;
use super::descriptor::{is_writable, stat, write_slices};
use super::file_size::file_size_limit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Warning {
    /// A name in THR_TRACE_EVENTS is unknown. Reported for each such name.
    UnknownEvent,
    Directory,
    Write,
    Stopped,
    Size,
    Level,
    Ring,
    Stack,
    Namespace,
    Missing,
    /// Somebody has removed files of this process.
    Removed,
    /// The directory has a trclock that cannot be trusted.
    Clock,
    /// The directory has a trinfo of our name that cannot be trusted.
    Info,
    /// The directory has no trctl that can be used.
    Control,
    /// The handler cannot be used.
    Handler,
    /// A child may share its parent's thread-local variables.
    Variables,
    /// What THR_TRACE_FUNC names is not there. Reported for each name.
    Functions,
}

/// A bit for each [`Warning`] that has been reported.
static REPORTED: AtomicU32 = AtomicU32::new(0);
/// Device and inode of descriptor 2 at the start; 0 if it was closed.
static STDERR: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

fn stderr_identity() -> Option<[u64; 2]> {
    stat(2).ok().map(|stat| [stat.st_dev, stat.st_ino])
}

/// Notes which file descriptor 2 is.
pub fn remember_stderr() {
    for (word, value) in STDERR.iter().zip(stderr_identity().unwrap_or_default()) {
        word.store(value, Relaxed);
    }
}

/// Whether so many bytes can be written to stderr without a signal to the host and without waiting.
fn accepts(length: u64) -> bool {
    match stat(2) {
        // A file that may not grow so far would raise SIGXFSZ.
        Ok(stat) if stat.st_mode & libc::S_IFMT == libc::S_IFREG => {
            (stat.st_size as u64).saturating_add(length) <= file_size_limit()
        }
        // A pipe without a reader would raise SIGPIPE; a full one would make the host wait.
        Ok(_) => is_writable(2),
        Err(_) => false,
    }
}

/// Writes `libthreadt: ` and the slices as one line, unless this kind of message was reported before.
pub fn warn(warning: Warning, slices: &[&[u8]]) {
    let bit = 1 << warning as u32;
    if ![Warning::UnknownEvent, Warning::Functions].contains(&warning) && REPORTED.fetch_or(bit, AcqRel) & bit != 0 {
        return;
    }
    let length = slices.iter().map(|slice| slice.len() as u64).sum::<u64>() + 16;
    if stderr_identity() != Some([STDERR[0].load(Relaxed), STDERR[1].load(Relaxed)]) || !accepts(length) {
        return;
    }
    let vector = |text: &[u8]| libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
    let mut line = [vector(b""); 10];
    line[0] = vector(b"libthreadt: ");
    for (place, text) in line[1..9].iter_mut().zip(slices) {
        *place = vector(text);
    }
    line[9] = vector(b"\n");
    write_slices(2, &line);
}

/// The usual text of an errno value that a file operation returns.
pub fn errno_text(errno: Errno) -> &'static [u8] {
    match errno.0 {
        libc::ENOENT => b"No such file or directory",
        libc::EACCES => b"Permission denied",
        libc::EPERM => b"Operation not permitted",
        libc::ENOTDIR => b"Not a directory",
        libc::EROFS => b"Read-only file system",
        libc::ENOSPC => b"No space left on device",
        libc::EDQUOT => b"Disk quota exceeded",
        libc::EMFILE => b"Too many open files",
        libc::ENFILE => b"Too many open files in system",
        libc::EFBIG => b"File too large",
        libc::ENAMETOOLONG => b"File name too long",
        libc::EEXIST => b"File exists",
        // What `open` returns for pipes, sockets and devices.
        libc::ENXIO => b"Not a regular file",
        libc::EISDIR => b"Is a directory",
        libc::EMLINK => b"Too many links",
        libc::ELOOP => b"Too many levels of symbolic links",
        libc::EBADF => b"Bad file descriptor",
        libc::ESRCH => b"No such process",
        libc::EBUSY => b"Device or resource busy",
        libc::ESTALE => b"Stale file handle",
        libc::EIO => b"Input/output error",
        libc::ENOMEM => b"Cannot allocate memory",
        libc::EINVAL => b"Invalid argument",
        libc::ENOSYS => b"Function not implemented",
        libc::EOPNOTSUPP => b"Operation not supported",
        libc::ECONNABORTED => b"Software caused connection abort",
        libc::ENOTCONN => b"Transport endpoint is not connected",
        _ => b"Unexpected error",
    }
}
