//! The tr files: paths, opening, and the ranges that writers take.
//!
//! No descriptor stays open. A file is opened by its path for each write and checked to be the one that was made.

use core::ffi::CStr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use spec::buffer::{FileEntry, SLOT_PATH_MAX};
use spec::names::{FileName, NAME_MAX};

use crate::sys::{self, Errno, Fd, Result};

/// Longest directory that a trace can be in, bytes.
pub const DIRECTORY_MAX: usize = SLOT_PATH_MAX - NAME_MAX - 48;

/// A path that is put together in memory that somebody else owns.
pub struct Path;

impl Path {
    /// Writes `directory/name` with its NUL into `buffer`. The directory has at most [`DIRECTORY_MAX`] bytes.
    pub fn build<'a>(buffer: &'a mut [u8; SLOT_PATH_MAX], directory: &[u8], name: FileName) -> &'a CStr {
        let (text, length) = name.text();
        Path::join(buffer, &[directory, b"/", text.get(..length).unwrap_or(b"")])
    }

    /// Writes the pieces, one behind the other, with a NUL into `buffer`; what does not fit is cut off.
    pub fn join<'a>(buffer: &'a mut [u8; SLOT_PATH_MAX], pieces: &[&[u8]]) -> &'a CStr {
        let bytes = pieces.iter().flat_map(|piece| piece.iter().copied()).take(SLOT_PATH_MAX - 1);
        for (slot, byte) in buffer.iter_mut().zip(bytes.chain([0])) {
            *slot = byte;
        }
        Path::of(buffer)
    }

    /// The path that is in `buffer`.
    pub fn of(buffer: &[u8; SLOT_PATH_MAX]) -> &CStr {
        CStr::from_bytes_until_nul(buffer).unwrap_or(c"")
    }
}

/// An open tr file.
pub struct Records {
    fd: Fd,
    /// Its size when it was opened.
    size: u64,
    /// What its entry's `end` was just before.
    end: u64,
}

/// Opens a tr file, or makes it at its first write.
///
/// # Errors
/// `ESTALE` if something else has its name; whatever the system calls answer.
pub fn open_records(path: &CStr, entry: &FileEntry) -> Result<Records> {
    for _ in 0..4 {
        let inode = entry.inode.load(Acquire);
        let end = entry.end.load(Acquire);
        if inode == 0 {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
            let fd = match Fd::open(path, flags, 0o600) {
                Ok(fd) => fd,
                Err(Errno(libc::EEXIST)) => {
                    // Made by another thread with the same yyy this moment, or by one that did not come to note it: then it
                    // is empty, and as good as one of ours. Or left by somebody: then out of the way.
                    sys::sleep(100_000);
                    let unknown = || entry.inode.load(Acquire) == 0;
                    // Asked again: the one that made it may have noted it, and written to it, meanwhile.
                    if unknown() && !adopt_empty(path, entry)? && unknown() {
                        set_aside(path)?;
                    }
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            let stat = fd.stat()?;
            if stat.st_mode & 0o777 != 0o600 {
                // The umask took something away.
                fd.set_mode(0o600)?;
            }
            entry.device.store(stat.st_dev, Relaxed);
            entry.inode.store(stat.st_ino, Release);
            return Ok(Records { fd, size: 0, end: 0 });
        }
        match Fd::open(path, libc::O_WRONLY | libc::O_NOFOLLOW, 0) {
            Ok(fd) => {
                let stat = fd.stat()?;
                if stat.st_ino != inode || stat.st_dev != entry.device.load(Relaxed) {
                    return Err(Errno(libc::ESTALE));
                }
                return Ok(Records { fd, size: stat.st_size as u64, end });
            }
            Err(Errno(libc::ENOENT)) => {
                // It was removed; what comes now goes to a new one.
                if entry.inode.compare_exchange(inode, 0, AcqRel, Relaxed).is_ok() {
                    entry.end.store(0, Relaxed);
                }
            }
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno(libc::ESTALE))
}

/// Takes an empty file of this user for the one that the entry is about; `false` if it is something else.
fn adopt_empty(path: &CStr, entry: &FileEntry) -> Result<bool> {
    let stat = Fd::open(path, libc::O_WRONLY | libc::O_NOFOLLOW, 0)?.stat()?;
    let empty = stat.st_mode & libc::S_IFMT == libc::S_IFREG && stat.st_size == 0 && stat.st_uid == sys::user_id();
    if empty {
        entry.device.store(stat.st_dev, Relaxed);
        entry.inode.store(stat.st_ino, Release);
    }
    Ok(empty)
}

/// Renames a file of an unknown earlier process to `old.0.NAME`, or `old.0-2.NAME` and so on.
fn set_aside(path: &CStr) -> Result {
    let bytes = path.to_bytes();
    let split = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let (directory, name) = bytes.split_at_checked(split).unwrap_or_default();
    rename_old(path, directory, b"0", name)
}

/// Renames `path`, which is `name` in `directory` (with its slash), to `old.START.NAME`; if that is taken, to
/// `old.START-2.NAME` and so on.
#[cold]
#[inline(never)]
pub fn rename_old(path: &CStr, directory: &[u8], start: &[u8], name: &[u8]) -> Result {
    let mut buffer = [0u8; SLOT_PATH_MAX];
    for turn in 1..1000u64 {
        let mut number = itoa::Buffer::new();
        let suffix: [&[u8]; 2] = if turn == 1 { [b"", b""] } else { [b"-", number.format(turn).as_bytes()] };
        let to = Path::join(&mut buffer, &[directory, b"old.", start, suffix[0], suffix[1], b".", name]);
        match sys::rename(path, to) {
            Err(Errno(libc::EEXIST)) => {}
            other => return other,
        }
    }
    Err(Errno(libc::EEXIST))
}

impl Records {
    /// Takes `length` bytes of the file for the caller to write and returns where they begin.
    ///
    /// `alone` says that nobody, interrupted by the caller, may be between taking a range and writing it.
    ///
    /// # Errors
    /// `EFBIG` if the process may not write that far; the signal that a write would raise then could kill the host.
    pub fn take_range(&self, entry: &FileEntry, length: u64, alone: bool) -> Result<u64> {
        if alone && self.end != self.size && entry.users.load(Acquire) <= 1 {
            // Somebody else has cut or lengthened the file: no other thread of ours is between taking and writing. Unless
            // a signal handler of ours has written meanwhile; then `end` has changed, and stays.
            let _ = entry.end.compare_exchange(self.end, self.size, AcqRel, Relaxed);
        }
        if entry.end.load(Acquire).saturating_add(length) > sys::file_size_limit() {
            return Err(Errno(libc::EFBIG));
        }
        Ok(entry.end.fetch_add(length, AcqRel))
    }

    /// Gives back a range that could not be written, and removes what of it arrived; `false` if it must be kept.
    pub fn give_range_back(&self, entry: &FileEntry, at: u64, length: u64) -> bool {
        // With another writer there, the place may be taken between the two steps; then the range is kept.
        entry.users.load(Acquire) <= 1
            && entry.end.compare_exchange(at + length, at, AcqRel, Relaxed).is_ok()
            && self.fd.truncate(at).is_ok()
    }

    /// The descriptor, to ask about.
    pub fn fd(&self) -> &Fd {
        &self.fd
    }

    /// Writes into a range that was taken.
    ///
    /// # Safety
    /// The bytes must be readable.
    pub unsafe fn write(&self, text: *const u8, length: usize, at: u64) -> Result {
        // SAFETY: the caller's.
        unsafe { self.fd.write_at(text, length, at) }
    }
}
