//! What the kernel reports of a directory (inotify), so that nothing is inspected while nothing changes.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// The events of a directory.
#[derive(Debug)]
pub struct DirectoryEvents {
    inotify: OwnedFd,
}

/// What has happened since the last reading.
#[derive(Debug, Default)]
pub struct NewEvents {
    /// The names that files got or lost.
    pub names: Vec<OsString>,
    /// The files that were written.
    pub written: Vec<OsString>,
    /// There were more events than the kernel keeps: any file may have been made, renamed, removed or written.
    pub overflowed: bool,
    /// The directory was moved or removed, or its events cannot be read: there are no further ones.
    pub ended: bool,
}

impl DirectoryEvents {
    /// Those of `directory` from now on; `None` if the kernel cannot report them.
    pub fn of(directory: &Path) -> Option<DirectoryEvents> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let names = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
        let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
        inotify::add_watch(&inotify, directory, names | itself | WatchFlags::MODIFY).ok()?;
        Some(DirectoryEvents { inotify })
    }

    /// Adds what has happened since the last call to `new`.
    pub fn read(&self, new: &mut NewEvents) {
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(error) => {
                    new.ended |= error != Errno::AGAIN;
                    return;
                }
            };
            let kinds = event.events();
            new.overflowed |= kinds.contains(ReadFlags::QUEUE_OVERFLOW);
            new.ended |= kinds.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT | ReadFlags::DELETE_SELF)
                || kinds.contains(ReadFlags::MOVE_SELF);
            let Some(name) = event.file_name() else { continue };
            let name = OsStr::from_bytes(name.to_bytes());
            let names = if kinds.contains(ReadFlags::MODIFY) { &mut new.written } else { &mut new.names };
            if names.last().is_none_or(|last| last != name) {
                names.push(name.to_owned());
            }
        }
    }
}
