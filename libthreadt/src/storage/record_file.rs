//! The tr files: opening them, and the ranges that writers take.
//!
//! No descriptor stays open. A file is opened by its path for each write, and must be the one that this process made.

use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

use super::file_table::RecordFileEntry;
use crate::process_state::{self, PROCESS, WorkingProcess};
use crate::sys::diagnostics::{Warning, warn};
use crate::sys::{self, Errno, Fd, FileIdentity, Result};
use crate::trace_dir::{directory, earlier_files, names_owner};

pub struct RecordFile {
    pub fd: Fd,
    /// Its size when it was opened.
    size: u64,
    /// The `end` of its entry just before.
    end: u64,
}

/// Opens a tr file, or makes it at its first write. `ESTALE` if another file has its name, `ECHILD` in a child that a signal handler
/// has forked meanwhile: the file is its parent's.
///
/// `long` says that it will be open for longer than a few microseconds; `lwp` is the calling thread's.
pub fn open(path: &CStr, entry: &RecordFileEntry, long: bool, lwp: u32) -> Result<RecordFile> {
    let process = WorkingProcess::current();
    sys::repeat_if_closed(|| try_open(path, entry, long, lwp, process))
}

/// The owner of a new file, which is given to the user that the process becomes if it is one of that user's: a signal handler may have
/// interrupted the change, when its threads are root still.
fn owner_once_given(fd: &Fd, owner: u32, entry: &RecordFileEntry) -> u32 {
    let wanted = entry.generation().filter(|generation| *generation != 0).map(names_owner::owner_of_files);
    wanted.filter(|wanted| *wanted != owner && fd.set_owner(*wanted).is_ok()).unwrap_or(owner)
}

fn try_open(path: &CStr, entry: &RecordFileEntry, long: bool, lwp: u32, process: WorkingProcess) -> Result<RecordFile> {
    for _ in 0..16 {
        if !process.is_caller() {
            return Err(Errno(libc::ECHILD));
        }
        let (known, end) = (entry.identity(), entry.end());
        let Some(known) = known else {
            match Fd::create(path, libc::O_WRONLY) {
                Ok((fd, identity)) => {
                    let owner = owner_once_given(&fd, identity.owner, entry);
                    entry.note(FileIdentity { owner, ..identity });
                    report_removal(path, entry, process);
                    return Ok(RecordFile { fd, size: 0, end });
                }
                Err(Errno(libc::EEXIST)) => {
                    // Another thread with the same yyy makes it at this moment, or made it and did not get to note it:
                    // then it is empty, and used as ours. Or it is ours from before an exec. Or it is an unknown
                    // process's: then it is renamed.
                    sys::sleep(100_000);
                    let unknown = || entry.identity().is_none();
                    // Checked again: the thread that made it may have noted it, and written to it, meanwhile.
                    if unknown() && !adopt(path, entry, lwp)? && unknown() {
                        earlier_files::rename_unknown(path).map_err(|errno| match errno {
                            // In a directory with the sticky bit only its owner or root may.
                            Errno(libc::EPERM) => Errno(libc::EACCES),
                            other => other,
                        })?;
                    }
                    continue;
                }
                Err(errno) => return Err(errno),
            }
        };
        match Fd::open_known(path, libc::O_WRONLY, known, long, lwp) {
            Ok((fd, size)) => return Ok(RecordFile { fd, size, end }),
            // It was removed, and the next records go to a new one. Or its directory is away, and may come back with the file.
            Err(Errno(libc::ENOENT)) => match Fd::create(path, libc::O_WRONLY) {
                Ok((fd, identity)) => {
                    entry.note_removal(known);
                    entry.note(identity);
                    report_removal(path, entry, process);
                    return Ok(RecordFile { fd, size: 0, end: entry.end() });
                }
                Err(Errno(libc::EEXIST)) => entry.note_removal(known),
                Err(errno) => return Err(errno),
            },
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno(libc::ESTALE))
}

/// Reports if somebody has removed the trbuf of this process, and its record files with it: what is recorded from now on is in new
/// files, but nobody finds the buffers. To be called where the file at `path` was made.
#[cold]
fn report_removal(path: &CStr, entry: &RecordFileEntry, process: WorkingProcess) {
    let is_ended = PROCESS.final_flush_begun.load(Relaxed) != 0;
    let is_known = is_ended || PROCESS.removal_reported.load(Relaxed) != 0;
    if is_known || !names_owner::is_trbuf_removed(process_state::generation()) || !process.is_caller() {
        return;
    }
    // Asked later: neither can be found where another thread has changed the root directory meanwhile.
    if !entry.identity().is_some_and(|made| made.is_at(path)) {
        return;
    }
    PROCESS.removal_reported.store(1, Relaxed);
    PROCESS.anonymous.store(1, Relaxed);
    warn(
        Warning::Removed,
        &[
            b"files of this process in '",
            directory::path(),
            b"' were removed: what its buffers hold cannot be read while it runs, and is lost if it is killed",
        ],
    );
}

/// Uses an existing file as the one that the entry describes; `false` if it cannot be this process's. `EACCES` if it is, but
/// the user that the process has become since may not open it.
#[cold]
#[inline(never)]
fn adopt(path: &CStr, entry: &RecordFileEntry, lwp: u32) -> Result<bool> {
    // The program before the exec renamed what had its names, so that a file of the trbuf's owner is its own.
    let generation = entry.generation_from_before_exec();
    let before_exec =
        generation.map(names_owner::owner_of_files).and_then(|owner| FileIdentity::of_single(path, owner));
    let found = match before_exec {
        Some(identity) => Fd::open_known(path, libc::O_WRONLY, identity, false, lwp).map(|(_, size)| (identity, size)),
        None => match Fd::open_trusted(path, libc::O_WRONLY) {
            Err(errno) if errno.is_foreign_file() => return Ok(false),
            opened => opened.map(|(_, identity, size)| (identity, size)),
        },
    };
    // Records of an unknown process are not written on.
    found.map(|(identity, size)| {
        let is_own = entry.may_be(size);
        if is_own {
            entry.note(identity);
        }
        is_own
    })
}

impl RecordFile {
    /// If the file is not as long as it should be, lets it go on where it ends: another process has truncated or lengthened
    /// it, or a writer has been left before it wrote. The caller must not have interrupted anybody between taking a range and
    /// writing it.
    pub fn correct_end(&self, entry: &RecordFileEntry) {
        // The only user has no other thread between taking and writing. If a signal handler of ours has written meanwhile,
        // the end has changed, and stays.
        if self.end != self.size && entry.sole_user().is_some() {
            entry.change_end(self.end, self.size);
        }
        sys::observable_step();
    }

    /// The place of a write that was noted and is to be repeated; `EFBIG` if it goes beyond how far the process may write.
    pub fn noted_place(&self, at: u64, length: u64) -> Result<u64> {
        if at.saturating_add(length) > sys::file_size::file_size_limit().min(i64::MAX as u64) {
            Err(Errno(libc::EFBIG))
        } else {
            Ok(at)
        }
    }

    /// Gives back a range that could not be written, and removes the bytes of it that were; `false` if it must be kept.
    pub fn give_range_back(&self, entry: &RecordFileEntry, at: u64, length: u64) -> bool {
        // With another user, the range behind may be taken between the two steps; then this one is kept.
        entry.sole_user().is_some() && entry.change_end(at.wrapping_add(length), at) && self.fd.truncate(at).is_ok()
    }
}
