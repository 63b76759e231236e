//! The tr files: opening them, and the ranges that writers take.
//!
//! No descriptor stays open. A file is opened by its path for each write, and must be the one that this process made.

use core::ffi::CStr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use spec::buffer::FileEntry;

use crate::sys::{self, Errno, Fd, Result};
use crate::trace_dir::earlier_files;

pub struct RecordFile {
    pub fd: Fd,
    /// Its size when it was opened.
    size: u64,
    /// The `end` of its entry just before.
    end: u64,
}

/// Opens a tr file, or makes it at its first write. `ESTALE` if another file has its name.
///
/// `long` says that it will be open for longer than a few microseconds.
pub fn open(path: &CStr, entry: &FileEntry, long: bool) -> Result<RecordFile> {
    for _ in 0..16 {
        let inode = entry.inode.load(Acquire);
        let end = entry.end.load(Acquire);
        if inode == 0 {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
            let fd = match Fd::open(path, flags, 0o600) {
                Ok(fd) => fd,
                Err(Errno(libc::EEXIST)) => {
                    // Another thread with the same yyy makes it at this moment, or made it and did not get to note it:
                    // then it is empty, and used as ours. Or it is an unknown process's: then it is renamed.
                    sys::sleep(100_000);
                    let unknown = || entry.inode.load(Acquire) == 0;
                    // Checked again: the thread that made it may have noted it, and written to it, meanwhile.
                    if unknown() && !adopt_empty(path, entry)? && unknown() {
                        earlier_files::rename_unknown(path)?;
                    }
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            let stat = fd.stat()?;
            if stat.st_mode & 0o777 != 0o600 {
                // The umask has removed some bits.
                fd.set_mode(0o600)?;
            }
            entry.device.store(stat.st_dev, Relaxed);
            entry.inode.store(stat.st_ino, Release);
            return Ok(RecordFile { fd, size: 0, end: 0 });
        }
        match Fd::open_inode(path, libc::O_WRONLY | libc::O_NOFOLLOW, 0, inode) {
            Ok(mut fd) => {
                if long {
                    fd.keep_apart();
                }
                let stat = match fd.stat() {
                    Ok(stat) => stat,
                    // The host closes descriptors that are not its own.
                    Err(Errno(libc::EBADF)) => continue,
                    Err(errno) => return Err(errno),
                };
                if stat.st_ino != inode || stat.st_dev != entry.device.load(Relaxed) {
                    if fd.was_replaced() {
                        // The host has closed it and got the number for a file of its own.
                        fd.forget();
                        continue;
                    }
                    return Err(Errno(libc::ESTALE));
                }
                return Ok(RecordFile { fd, size: stat.st_size as u64, end });
            }
            Err(Errno(libc::ENOENT)) => {
                // It was removed; the next records go to a new one.
                if entry.inode.compare_exchange(inode, 0, AcqRel, Relaxed).is_ok() {
                    entry.end.store(0, Relaxed);
                }
            }
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno(libc::ESTALE))
}

/// Uses an empty file of this user as the one that the entry describes; `false` if it is not such a file.
fn adopt_empty(path: &CStr, entry: &FileEntry) -> Result<bool> {
    let stat = Fd::open(path, libc::O_WRONLY | libc::O_NOFOLLOW, 0)?.stat()?;
    let empty = stat.st_mode & libc::S_IFMT == libc::S_IFREG && stat.st_size == 0 && stat.st_uid == sys::user_id();
    if empty {
        entry.device.store(stat.st_dev, Relaxed);
        entry.inode.store(stat.st_ino, Release);
    }
    Ok(empty)
}

impl RecordFile {
    /// Takes `length` bytes of the file for the caller to write and returns where they begin.
    ///
    /// `alone` says that the caller has not interrupted anybody between taking a range and writing it. `EFBIG` if the
    /// process may not write that far; the signal that a write would raise then could kill the host.
    pub fn take_range(&self, entry: &FileEntry, length: u64, alone: bool) -> Result<u64> {
        if alone && self.end != self.size && entry.users.load(Acquire) <= 1 {
            // Another process has truncated or lengthened the file: no other thread of ours is between taking and
            // writing. If a signal handler of ours has written meanwhile, `end` has changed, and stays.
            let _ = entry.end.compare_exchange(self.end, self.size, AcqRel, Relaxed);
        }
        if entry.end.load(Acquire).saturating_add(length) > sys::file_size_limit() {
            return Err(Errno(libc::EFBIG));
        }
        sys::observable_step();
        Ok(entry.end.fetch_add(length, AcqRel))
    }

    /// Gives back a range that could not be written, and removes the bytes of it that were; `false` if it must be kept.
    pub fn give_range_back(&self, entry: &FileEntry, at: u64, length: u64) -> bool {
        // With another user, the range behind may be taken between the two steps; then this one is kept.
        entry.users.load(Acquire) <= 1
            && entry.end.compare_exchange(at + length, at, AcqRel, Relaxed).is_ok()
            && self.fd.truncate(at).is_ok()
    }
}
