//! Claims a trbuf for this process, so that no other recovery changes it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use log::info;
use spec::buffer::{Owner, PAGE, SLOTS_OFFSET};

use super::file_operations::FileOperations;
use crate::trace::buffers::slots::read_up_to;
use crate::trace::file_handle::open_if_present;
use crate::trace::process_liveness;

/// How often the owner's liveness is inspected again after another recovery held the lock.
const RECHECKS_MAX: u32 = 100;
/// The pause before each of these.
const PAUSE: Duration = Duration::from_millis(10);

/// A trbuf that this process alone may change.
pub struct ClaimedTrbuf {
    /// Open for reading and writing. While it is open, a new process with the same number takes the trbuf for that of a
    /// running process.
    pub buffers: File,
    /// The process that it belonged to.
    pub owner: Owner,
    /// The user who owns it.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// Open for reading only, and locked.
    lock: File,
}

/// Claims the trbuf at `path`, until the claim is dropped; `None` if its process runs or is making it, or if it does not
/// exist any more. Waits if another process is recovering it.
pub fn claim(path: &Path) -> io::Result<Option<ClaimedTrbuf>> {
    let gone = || {
        info!("{}: another process has just recovered it", path.display());
        Ok(None)
    };
    let Some(lock) = open_if_present(path)? else { return gone() };
    let waited = wait_for_lock(&lock)?;
    if !is_at(&lock, path)? {
        return gone();
    }
    let mut page = vec![0; PAGE];
    let length = read_up_to(&lock, &mut page, 0)?;
    let parsed = Owner::parse(&page[..length]);
    let is_gone = || match &parsed {
        Ok(owner) => process_liveness::owner_is_gone(&lock, owner),
        // The owner has the trbuf open while it makes it.
        Err(_) => Some(process_liveness::has_writer(&lock) != Some(true)),
    };
    let mut rechecks = if waited { RECHECKS_MAX } else { 0 };
    loop {
        match is_gone() {
            Some(true) => break,
            // The other recovery released its lock, but may not yet have closed the descriptor that it writes to.
            Some(false) if rechecks > 0 => rechecks -= 1,
            Some(false) => {
                info!("{}: its process runs, and writes it itself", path.display());
                return Ok(None);
            }
            None => return Err(io::Error::other("it is unknown whether its process runs; it is not changed")),
        }
        thread::sleep(PAUSE);
    }
    let owner = parsed.map_err(|damage| io::Error::other(damage.to_string()))?;
    let metadata = lock.metadata()?;
    if metadata.len() < SLOTS_OFFSET as u64 {
        return Err(io::Error::other("truncated"));
    }
    let buffers = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let opened = buffers.metadata()?;
    if (opened.dev(), opened.ino()) != (metadata.dev(), metadata.ino()) {
        return gone();
    }
    Ok(Some(ClaimedTrbuf { buffers, owner, user: metadata.uid(), group: metadata.gid(), lock }))
}

impl ClaimedTrbuf {
    /// Removes the trbuf, if it is still the one at `path`.
    pub fn remove(&self, path: &Path, operations: &mut dyn FileOperations) -> io::Result<()> {
        if is_at(&self.lock, path)? { operations.remove(path) } else { Ok(()) }
    }
}

/// Locks `file` against other recoveries; returns whether another one held the lock.
fn wait_for_lock(file: &File) -> io::Result<bool> {
    let mut kind = libc::LOCK_EX | libc::LOCK_NB;
    loop {
        // SAFETY: flock takes no pointer, and the borrowed file keeps the descriptor open.
        if unsafe { libc::flock(file.as_raw_fd(), kind) } == 0 {
            return Ok(kind == libc::LOCK_EX);
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => kind = libc::LOCK_EX,
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
}

/// Whether `path` leads to `file`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let metadata = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (metadata.dev(), metadata.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
