//! A running process, and the words by which it is changed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use spec::buffer::{CONTROL_OFFSET, CONTROL_VERSION, ControlWords, Owner, PAGE, Settings};
use spec::names::FileName;

use crate::trace::file_handle::open_regular;
use crate::trace::file_names::{ProcessFiles, split_name};
use crate::trace::process_liveness::{id_here, owner_is_alive, owner_is_gone};

/// A process that can be changed.
#[derive(Debug)]
pub struct ControlledProcess {
    /// Its trbuf.
    pub path: PathBuf,
    /// The process ID, in its own PID namespace.
    pub pid: u32,
    /// The process ID by which it is known here; `None` if it is in a PID namespace that is not seen from this one.
    pub pid_here: Option<u32>,
    /// It was found in a directory, and not by its ID.
    pub is_of_directory: bool,
}

impl ControlledProcess {
    /// The process whose trbuf is at `path`; `None` if nobody has it mapped.
    ///
    /// # Errors
    /// The trbuf cannot be read, or the process does not follow what is written there.
    pub fn find(path: PathBuf, is_of_directory: bool) -> io::Result<Option<ControlledProcess>> {
        let file = match open_regular(&path) {
            // It was there when the directory was read.
            Err(error) if is_of_directory && has_ended(&error) => return Ok(None),
            file => file?,
        };
        let mut page = [0; PAGE];
        match file.read_exact_at(&mut page, 0) {
            // It was made at this moment.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        // Without the magic number it is an empty one, or about to become somebody's.
        let Ok(owner) = Owner::parse(&page) else { return Ok(None) };
        // One that was named by its ID had it mapped a moment ago, and may be executing another program, which goes on as it is changed.
        let has_ended = match is_of_directory {
            true => owner_is_alive(&file, &owner) == Some(false),
            false => owner_is_gone(&file, &owner) == Some(true),
        };
        if has_ended {
            return Ok(None);
        }
        let process = ControlledProcess { path, pid: owner.pid, pid_here: id_here(&owner), is_of_directory };
        let version = u32::from_le_bytes([0, 1, 2, 3].map(|at| page[CONTROL_OFFSET + at]));
        if version == CONTROL_VERSION {
            Ok(Some(process))
        } else {
            Err(io::Error::other("its process cannot be changed"))
        }
    }

    /// The names of its files; `None` if its trbuf has no name of one.
    pub fn files(&self) -> Option<ProcessFiles> {
        match split_name(&self.path).1 {
            Some(FileName::Buffers(number)) => Some(ProcessFiles::of_file(&self.path, number)),
            _ => None,
        }
    }

    /// Puts what `change` makes of the settings in force. A process of a directory that has ended meanwhile does not record
    /// there any more, so nothing is to be changed.
    ///
    /// # Errors
    /// The trbuf cannot be written, or the process that was named by its ID has ended meanwhile.
    pub fn change(&self, change: impl FnOnce(&mut Settings)) -> io::Result<()> {
        match self.change_if_running(change) {
            Err(error) if self.is_of_directory && has_ended(&error) => Ok(()),
            result => result,
        }
    }

    fn change_if_running(&self, change: impl FnOnce(&mut Settings)) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = options.read(true).write(true).custom_flags(flags).open(&self.path)?;
        // Others who change something wait. SAFETY: no memory is involved.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let page = MappedPage::of(&file, true)?;
        if !page.is_of(self.pid) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let Some((_, mut settings)) = page.words().current() else {
            return Err(io::Error::other("its settings change all the time"));
        };
        change(&mut settings);
        page.words().change(&settings);
        Ok(())
    }

    /// The settings in force, and how many records the process has lost.
    ///
    /// # Errors
    /// The trbuf cannot be read, or the process has ended meanwhile.
    pub fn settings(&self) -> io::Result<(Settings, u64)> {
        let page = MappedPage::of(&open_regular(&self.path)?, false)?;
        match page.words().current() {
            Some((_, settings)) if page.is_of(self.pid) => Ok((settings, page.words().lost.load(Relaxed))),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }
}

/// Whether an error means that the process has ended: it removes its trbuf then.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// The first page of a trbuf. A trbuf does not become shorter than that.
struct MappedPage(NonNull<u8>);

impl MappedPage {
    fn of(file: &File, writable: bool) -> io::Result<MappedPage> {
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.nlink() > 1 || metadata.len() < PAGE as u64 {
            return Err(io::Error::other("not a trbuf"));
        }
        let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: the kernel chooses a free range.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match NonNull::new(page.cast::<u8>()) {
            Some(page) if page.as_ptr().cast() != libc::MAP_FAILED => Ok(MappedPage(page)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn words(&self) -> &ControlWords {
        // SAFETY: within the page, aligned, and mapped as long as `self` lives; all of the words are atomics.
        unsafe { self.0.add(CONTROL_OFFSET).cast().as_ref() }
    }

    /// Whether the trbuf is still that of the process with this ID.
    fn is_of(&self, pid: u32) -> bool {
        // SAFETY: the page is mapped; what another process changes meanwhile is copied as it comes.
        let page: [u8; PAGE] = unsafe { self.0.cast().read_volatile() };
        Owner::parse(&page).is_ok_and(|owner| owner.pid == pid)
    }
}

impl Drop for MappedPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, and nobody refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_a_directory_may_end_at_any_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trbuf.0000001");
        let pause = |settings: &mut Settings| settings.paused = true;
        for is_of_directory in [true, false] {
            let found = ControlledProcess::find(path.clone(), is_of_directory);
            let process = ControlledProcess { path: path.clone(), pid: 1, pid_here: Some(1), is_of_directory };
            let changed = process.change(pause);
            assert_eq!((found.is_ok(), changed.is_ok()), (is_of_directory, is_of_directory));
            assert!(found.ok().flatten().is_none());
        }
    }

    #[test]
    fn a_file_that_was_made_at_this_moment_is_no_process_yet() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trbuf.0000001");
        for size in [0, 100, PAGE] {
            std::fs::write(&path, vec![0; size]).unwrap();
            assert!(ControlledProcess::find(path.clone(), true).unwrap().is_none());
        }
    }
}
