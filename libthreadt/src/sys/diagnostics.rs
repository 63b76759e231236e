//! One line on stderr, at most once for each cause.
//!
//! The host may have closed descriptor 2 and got a file of its own under that number; so nothing is written unless it
//! is still the file that it was when the process began.

use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Relaxed},
};

use crate::sys;

/// What can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Cause {
    /// A name in THR_TRACE_EVENTS means nothing. Said for each such name.
    UnknownEvent,
    /// The trace directory cannot be used.
    Directory,
    /// Records could not be written.
    Write,
    /// Recording has stopped before the program's end.
    Stopped,
    /// A size in the environment cannot be understood.
    Size,
    /// THR_TRACE_LEVEL is none that there is.
    Level,
    /// THR_TRACE_RING is smaller or larger than a ring can be.
    Ring,
    /// A living process of another PID namespace has our names.
    Namespace,
    /// A function was called that this libc does not have.
    Missing,
}

static SAID: AtomicU32 = AtomicU32::new(0);
/// Device and inode of descriptor 2 at the start; 0 if there was none.
static STDERR: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

fn stderr_identity() -> Option<[u64; 2]> {
    sys::stat(2).ok().map(|stat| [stat.st_dev, stat.st_ino])
}

/// Notes what descriptor 2 is.
pub fn remember_stderr() {
    if let Some(identity) = stderr_identity() {
        STDERR[0].store(identity[0], Relaxed);
        STDERR[1].store(identity[1], Relaxed);
    }
}

/// Whether so many bytes can be written to stderr without a signal to the host and without waiting.
fn takes(length: u64) -> bool {
    match sys::stat(2) {
        // A file that may not grow so far: SIGXFSZ.
        Ok(stat) if stat.st_mode & libc::S_IFMT == libc::S_IFREG => {
            (stat.st_size as u64).saturating_add(length) <= sys::file_size_limit()
        }
        // A pipe that nobody reads: SIGPIPE; one that is full: waiting.
        Ok(_) => sys::is_writable(2),
        Err(_) => false,
    }
}

/// Writes `libthreadt: ` and the pieces as one line, unless this cause was told before.
pub fn say(cause: Cause, pieces: &[&[u8]]) {
    let bit = 1 << cause as u32;
    if cause != Cause::UnknownEvent && SAID.fetch_or(bit, AcqRel) & bit != 0 {
        return;
    }
    let length = pieces.iter().map(|piece| piece.len() as u64).sum::<u64>() + 16;
    if stderr_identity() != Some([STDERR[0].load(Relaxed), STDERR[1].load(Relaxed)]) || !takes(length) {
        return;
    }
    let piece = |text: &[u8]| libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
    let mut line = [piece(b""); 10];
    line[0] = piece(b"libthreadt: ");
    for (slot, text) in line[1..9].iter_mut().zip(pieces) {
        *slot = piece(text);
    }
    line[9] = piece(b"\n");
    sys::write_pieces(2, &line);
}

/// The usual text of an errno value that a file operation gives.
pub fn reason(errno: sys::Errno) -> &'static [u8] {
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
        libc::ELOOP => b"Too many levels of symbolic links",
        libc::ESTALE => b"Stale file handle",
        libc::EIO => b"Input/output error",
        libc::ENOMEM => b"Cannot allocate memory",
        _ => b"Unexpected error",
    }
}
