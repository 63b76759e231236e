//! How files are opened: no other module opens any.
//!
//! Others may write to the directory of a trace, or may have made the tree into which the program has put its root. A
//! name there may lead to a pipe, a device or somebody else's file. So opening never waits and follows no link at the
//! path's end, and what was opened is used only if it is the file that was meant.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::call::{Errno, Result};
use super::fd::Fd;
use super::path;
use super::process::{is_only_thread, thread_id, user_id};
use super::signals::BlockedSignals;
use super::time::sleep;

/// Device and inode number, which identify a file whatever its names are, and its owner when this process made or found it: the
/// number may be another file's once this one is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
    pub owner: u32,
}

impl FileIdentity {
    /// The regular file at `path` that has no other name, if it belongs to the user `owner`.
    pub fn of_single(path: &CStr, owner: u32) -> Option<FileIdentity> {
        let is_meant = |stat: &libc::stat| {
            stat.st_mode & libc::S_IFMT == libc::S_IFREG && stat.st_nlink == 1 && stat.st_uid == owner
        };
        path::stat(path).ok().filter(is_meant).map(|stat| identity(&stat))
    }

    /// Whether this is the status of this file.
    fn is_still(self, stat: &libc::stat) -> bool {
        // The inode of a file that was removed may be another one's by now, also somebody else's.
        let is_regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
        let is_same = (stat.st_dev, stat.st_ino) == (self.device, self.inode);
        // In a user namespace that was made since, this user and root have other numbers.
        is_same && is_regular && (stat.st_uid == self.owner || [0, user_id()].contains(&stat.st_uid))
    }

    /// Whether `path` certainly leads to this file no more, which may have got another owner by this process's change of its user namespace.
    // Not inlined, so that the status takes no room on the stack of each write.
    #[cold]
    #[inline(never)]
    pub fn is_gone_from(self, path: &CStr) -> bool {
        match path::stat(path) {
            Ok(stat) => !self.is_still(&stat),
            // A thread that has given up its rights may not look there.
            Err(errno) => errno == Errno(libc::ENOENT),
        }
    }

    /// Whether `path` leads to this file.
    pub fn is_at(self, path: &CStr) -> bool {
        path::stat(path).is_ok_and(|stat| identity(&stat) == self)
    }
}

/// The owner of the files that this process makes. Some file systems give all files the same one.
#[unsafe(link_section = "inherited")]
static OWNER_OF_NEW_FILES: AtomicU32 = AtomicU32::new(u32::MAX);
/// The user to whom new files are given; `u32::MAX` if they are the process's own.
static WANTED_OWNER: AtomicU32 = AtomicU32::new(u32::MAX);

/// Gives files that are made from now on to the user `uid`.
pub fn set_owner_of_new_files(uid: u32) {
    WANTED_OWNER.store(uid, Relaxed);
}

/// What was begun again because the host has closed a descriptor that is not its own.
#[derive(Default)]
pub struct Repetitions {
    count: u32,
    blocked: Option<BlockedSignals>,
}

impl Repetitions {
    /// Whether work that failed so may be begun once more. A handler of this thread may close all descriptors more often than the work is
    /// done: after some times signals wait until this is dropped.
    pub fn begins(&mut self, errno: Errno) -> bool {
        if errno != Errno(libc::EBADF) || self.count == 16 {
            return false;
        }
        self.count += 1;
        if self.count > 4 && self.blocked.is_none() {
            self.blocked = BlockedSignals::unless_others_get_them();
        }
        true
    }
}

/// Calls `work` again and again, up to a limit, as long as it fails because the host has closed a descriptor that is not its own.
pub fn repeat_if_closed<T>(mut work: impl FnMut() -> Result<T>) -> Result<T> {
    let mut repetitions = Repetitions::default();
    loop {
        match work() {
            Err(errno) if repetitions.begins(errno) => {}
            result => return result,
        }
    }
}

/// Reads the beginning of a file of `/proc` into `buffer`; returns how many bytes.
pub fn read_proc(path: &CStr, buffer: &mut [u8]) -> Result<usize> {
    repeat_if_closed(|| Fd::open_proc_briefly(path)?.read(buffer))
}

impl Errno {
    /// Whether opening failed because the name leads to something that this process did not make.
    pub fn is_foreign_file(self) -> bool {
        [libc::EACCES, libc::ENXIO, libc::EISDIR, libc::EMLINK, libc::ELOOP].contains(&self.0)
    }
}

impl Fd {
    /// Opens a file of `/proc` for reading.
    pub fn open_proc(path: &CStr) -> Result<Fd> {
        Fd::open(path, libc::O_RDONLY, 0)
    }

    /// The same for a file that will be open for a few microseconds: it keeps the number that the kernel has given it.
    pub fn open_proc_briefly(path: &CStr) -> Result<Fd> {
        Fd::open_inode(path, libc::O_RDONLY, 0, 0, thread_id())?.unless_replaced()
    }

    /// Opens the file that has this process's command line. `EBADF` under Valgrind, which answers with a copy of a descriptor of its own,
    /// without the flags that were asked for: what is in memory there is not the program's command line, as would be found later.
    pub fn open_command_line() -> Result<Fd> {
        // So that no handler puts a file of the host's in the place of this one before it is looked at.
        let blocked = BlockedSignals::unless_others_get_them();
        let fd = Fd::open_inode(c"/proc/self/cmdline", libc::O_RDONLY, 0, 0, thread_id())?;
        if fd.was_replaced() && blocked.is_some() && is_only_thread() {
            // Nobody has replaced it.
            return Err(Errno(libc::EBADF));
        }
        fd.unless_replaced()
    }

    /// Opens a directory, to list it.
    pub fn open_directory(path: &CStr) -> Result<Fd> {
        Fd::open(path, libc::O_RDONLY | libc::O_DIRECTORY, 0)
    }

    /// Whether a file can be made in a directory, as one without a name shows; also where the file system knows none of these.
    pub fn takes_files(directory: &CStr) -> bool {
        let made = Fd::open(directory, libc::O_RDWR | libc::O_TMPFILE, 0o600);
        matches!(made, Ok(_) | Err(Errno(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)))
    }

    /// Makes a file that only its owner may read and write, whatever the umask. `EEXIST` if anything has the name.
    pub fn create(path: &CStr, flags: c_int) -> Result<(Fd, FileIdentity)> {
        let fd = open_without_waiting(path, flags | libc::O_CREAT | libc::O_EXCL)?;
        let stat = fd.stat()?;
        if stat.st_mode & 0o777 != 0o600 {
            fd.set_mode(0o600)?;
        }
        let wanted = WANTED_OWNER.load(Relaxed);
        // It is empty, and nobody else's. Only root can, and only root needs to.
        let is_given = wanted != u32::MAX && wanted != stat.st_uid && fd.set_owner(wanted).is_ok();
        let owner = if is_given { wanted } else { stat.st_uid };
        if OWNER_OF_NEW_FILES.load(Relaxed) != owner {
            OWNER_OF_NEW_FILES.store(owner, Relaxed);
        }
        Ok((fd, FileIdentity { owner, ..identity(&stat) }))
    }

    /// Opens a file of which only the name is known, and returns its size with it.
    ///
    /// It has to be a regular file (else `ENXIO`) of this user or of root (`EACCES`) without another name (`EMLINK`),
    /// because the name may be somebody else's.
    pub fn open_trusted(path: &CStr, flags: c_int) -> Result<(Fd, FileIdentity, u64)> {
        let fd = open_without_waiting(path, flags)?;
        let stat = fd.stat()?;
        if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
            return Err(Errno(libc::ENXIO));
        }
        if !is_own(stat.st_uid) {
            return Err(Errno(libc::EACCES));
        }
        if stat.st_nlink != 1 {
            return Err(Errno(libc::EMLINK));
        }
        Ok((fd, identity(&stat), stat.st_size as u64))
    }

    /// Opens a file that several processes share, as [`Fd::open_trusted`] does; makes it if there is none.
    pub fn open_shared(path: &CStr, flags: c_int) -> Result<(Fd, FileIdentity, u64)> {
        for _ in 0..100 {
            match Fd::open_trusted(path, flags) {
                Err(Errno(libc::ENOENT)) => {}
                // Another process has made it under a umask that forbids everything, and is about to change its mode.
                Err(Errno(libc::EACCES)) if path::stat(path).is_ok_and(|stat| is_own(stat.st_uid)) => sleep(100_000),
                opened => return opened,
            }
            // OBSERVABLE: an empty file, to which whoever comes first appends.
            match Fd::create(path, flags) {
                Ok((file, identity)) => return Ok((file, identity, 0)),
                Err(Errno(libc::EEXIST)) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno(libc::EACCES))
    }

    /// Opens the file that this process has made or found to be its own before, and returns its size with it. `ESTALE`
    /// if the path leads to another one, `EBADF` if the host has closed it again. `long` says that it will be open for
    /// longer than a few microseconds; `lwp` is the calling thread's.
    pub fn open_known(path: &CStr, flags: c_int, known: FileIdentity, long: bool, lwp: u32) -> Result<(Fd, u64)> {
        let mut fd = match open_inode(path, flags, known.inode, lwp) {
            // A pipe or a socket has its name.
            Err(Errno(libc::ENXIO)) => return Err(Errno(libc::ESTALE)),
            opened => opened?,
        };
        if long {
            fd.keep_apart();
        }
        let stat = fd.stat()?;
        if !known.is_still(&stat) {
            // The host may have closed it, and somebody else has got the number: the host, or another thread of ours.
            let was_closed = !known.is_gone_from(path);
            if fd.was_replaced() || was_closed {
                fd.forget();
            }
            return Err(Errno(if was_closed { libc::EBADF } else { libc::ESTALE }));
        }
        Ok((fd, stat.st_size as u64))
    }
}

/// Whether the directory at `path` belongs to this user or to root, and is no link.
pub fn is_own_directory(path: &CStr) -> Result<bool> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    Ok(is_own(open_without_waiting(path, flags)?.stat()?.st_uid))
}

/// Whether the directory at `path`, which is no link, belongs to the user `uid` and is closed to all others.
pub fn is_directory_of(path: &CStr, uid: u32) -> bool {
    path::stat(path).is_ok_and(|stat| {
        stat.st_mode & libc::S_IFMT == libc::S_IFDIR && stat.st_mode & 0o777 == 0o700 && stat.st_uid == uid
    })
}

/// Gives the directory at `path`, which this process has just made, to the user `uid`, who alone may use it.
pub fn give_directory_to(path: &CStr, uid: u32) -> Result {
    let fd = open_without_waiting(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
    if fd.stat()?.st_uid != user_id() {
        return Err(Errno(libc::EACCES));
    }
    fd.set_mode(0o700)?;
    fd.set_owner(uid)
}

fn is_own(owner: u32) -> bool {
    owner == 0 || owner == OWNER_OF_NEW_FILES.load(Relaxed) || owner == user_id()
}

fn identity(stat: &libc::stat) -> FileIdentity {
    FileIdentity { device: stat.st_dev, inode: stat.st_ino, owner: stat.st_uid }
}

fn open_without_waiting(path: &CStr, flags: c_int) -> Result<Fd> {
    open_inode(path, flags, 0, thread_id())?.kept_apart()
}

/// `inode` is the file's inode number if that is known, else 0, and `lwp` the calling thread's.
fn open_inode(path: &CStr, flags: c_int, inode: u64, lwp: u32) -> Result<Fd> {
    let mut opened = Err(Errno(libc::EAGAIN));
    for attempt in 0..20 {
        opened = Fd::open_inode(path, flags | libc::O_NOFOLLOW, 0o600, inode, lwp);
        if opened.as_ref().err() != Some(&Errno(libc::EAGAIN)) {
            break;
        }
        // Somebody holds a lease for a moment, as a reader does that asks whether the file is being written.
        sleep(100_000 << (attempt / 4));
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt as _;

    /// A thread that has given up root may not look where the files are, which are there.
    #[test]
    fn a_file_that_may_not_be_looked_at_is_not_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = CString::new(directory.path().join("own").as_os_str().as_bytes()).unwrap();
        let (_, known) = Fd::create(&path, libc::O_WRONLY).unwrap();
        let is_gone = || known.is_gone_from(&path);
        assert!(!is_gone());
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o000)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: it concerns this thread alone.
                unsafe { libc::setfsuid(65534) };
                assert_eq!(path::stat(&path).unwrap_err(), Errno(libc::EACCES));
                assert!(!is_gone());
            });
        });
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::rename(directory.path().join("own"), directory.path().join("renamed")).unwrap();
        assert!(is_gone(), "there is none");
        Fd::create(&path, libc::O_WRONLY).unwrap();
        assert!(is_gone(), "there is another one");
    }

    #[test]
    fn only_the_file_that_was_meant_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| CString::new(directory.path().join(name).as_os_str().as_bytes()).unwrap();
        let (own, other) = (at("own"), at("other"));
        let (_, known) = Fd::create(&own, libc::O_WRONLY).unwrap();
        assert_eq!(Fd::create(&own, libc::O_WRONLY).unwrap_err(), Errno(libc::EEXIST));
        assert_eq!(Fd::open_trusted(&own, libc::O_RDONLY).unwrap().1, known);
        // A second name, as a backup makes: who knows the file still takes it.
        std::fs::hard_link(directory.path().join("own"), directory.path().join("other")).unwrap();
        assert_eq!(Fd::open_trusted(&own, libc::O_RDONLY).unwrap_err(), Errno(libc::EMLINK));
        assert!(Fd::open_known(&own, libc::O_WRONLY, known, false, thread_id()).is_ok());
        std::fs::remove_file(directory.path().join("own")).unwrap();
        std::os::unix::fs::symlink("other", directory.path().join("own")).unwrap();
        for flags in [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR] {
            assert_eq!(Fd::open_trusted(&own, flags).unwrap_err(), Errno(libc::ELOOP));
            assert_eq!(Fd::open_known(&own, flags, known, false, thread_id()).unwrap_err(), Errno(libc::ELOOP));
        }
        std::fs::remove_file(directory.path().join("other")).unwrap();
        // SAFETY: the path is NUL-terminated.
        assert_eq!(unsafe { libc::mkfifo(other.as_ptr(), 0o666) }, 0);
        for flags in [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR] {
            assert_eq!(Fd::open_trusted(&other, flags).unwrap_err(), Errno(libc::ENXIO));
            assert_eq!(Fd::open_known(&other, flags, known, false, thread_id()).unwrap_err(), Errno(libc::ESTALE));
        }
    }

    #[test]
    fn a_shared_file_is_made_once() {
        let directory = tempfile::tempdir().unwrap();
        let shared = CString::new(directory.path().join("shared").as_os_str().as_bytes()).unwrap();
        let (first, made, size) = Fd::open_shared(&shared, libc::O_WRONLY | libc::O_APPEND).unwrap();
        first.write(b"text").unwrap();
        assert_eq!(size, 0);
        let (_, found, size) = Fd::open_shared(&shared, libc::O_WRONLY | libc::O_APPEND).unwrap();
        assert_eq!((found, size), (made, 4));
    }
}
