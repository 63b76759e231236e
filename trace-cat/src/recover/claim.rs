//! Taking a trbuf for ourselves.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use spec::buffer::{Owner, PAGE, SLOTS_OFFSET};

use super::file_operations::FileOperations;
use crate::trace::buffers::slots::read_up_to;
use crate::trace::process_liveness;

/// How often a trbuf that somebody else was recovering is asked again for its writers, and how long it is waited before.
const PATIENCE_STEPS: u32 = 100;
const PATIENCE: Duration = Duration::from_millis(10);

/// What came of trying to take a trbuf.
pub enum Claim {
    /// It is ours alone until this is dropped.
    Ours(ClaimedTrbuf),
    /// Its process lives, or is about to make it.
    Runs,
    /// It is no longer there.
    Gone,
}

/// A trbuf that is ours alone.
pub struct ClaimedTrbuf {
    /// Open for reading and writing. To a process that gets the same number now, this makes it a living one's.
    pub buffers: File,
    /// Whose it was.
    pub owner: Owner,
    /// Whose its files are.
    pub user: u32,
    /// Their group.
    pub group: u32,
    /// Open for reading only, and locked.
    lock: File,
}

/// Takes the trbuf at `path`, waiting for whoever else is recovering it.
///
/// # Errors
/// What the system says; or what is wrong with the header, or that nothing can tell whether the owner lives.
pub fn claim(path: &Path) -> io::Result<Claim> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let lock = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Claim::Gone),
        Err(error) => return Err(error),
    };
    if !lock.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let waited = wait_for_lock(&lock)?;
    if !is_at(&lock, path)? {
        return Ok(Claim::Gone);
    }
    let mut page = vec![0; PAGE];
    let length = read_up_to(&lock, &mut page, 0)?;
    let parsed = Owner::parse(&page[..length]);
    let gone = || match &parsed {
        Ok(owner) => process_liveness::owner_is_gone(&lock, owner),
        // While it is being made its owner has it open.
        Err(_) => Some(process_liveness::has_writer(&lock) != Some(true)),
    };
    let mut steps = if waited { PATIENCE_STEPS } else { 0 };
    loop {
        match gone() {
            Some(true) => break,
            // Whoever had the lock has ended, but its other descriptor may not be closed yet.
            Some(false) if steps > 0 => steps -= 1,
            Some(false) => return Ok(Claim::Runs),
            None => return Err(io::Error::other("cannot tell whether its process runs; it is left as it is")),
        }
        thread::sleep(PATIENCE);
    }
    let owner = parsed.map_err(|damage| io::Error::other(damage.to_string()))?;
    let metadata = lock.metadata()?;
    if metadata.len() < SLOTS_OFFSET as u64 {
        return Err(io::Error::other("cut short"));
    }
    let buffers = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let opened = buffers.metadata()?;
    if (opened.dev(), opened.ino()) != (metadata.dev(), metadata.ino()) {
        return Ok(Claim::Gone);
    }
    Ok(Claim::Ours(ClaimedTrbuf { buffers, owner, user: metadata.uid(), group: metadata.gid(), lock }))
}

impl ClaimedTrbuf {
    /// Removes the trbuf, if it is still the one at `path`.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(&self, path: &Path, hand: &mut dyn FileOperations) -> io::Result<()> {
        if is_at(&self.lock, path)? { hand.remove(path) } else { Ok(()) }
    }
}

/// Locks `file` against others who recover; says whether somebody else had it.
fn wait_for_lock(file: &File) -> io::Result<bool> {
    let mut kind = libc::LOCK_EX | libc::LOCK_NB;
    loop {
        // SAFETY: flock takes no pointer, and the descriptor is open.
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

/// Whether `path` names `file`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
