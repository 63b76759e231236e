//! A file that can be read however many files there are: it stays open while the process has descriptors to spare, and
//! is opened for each read otherwise.

use std::ffi::{CString, OsStr};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::trace::file_names::is_subdirectory;

/// The most bytes of a trinfo that are read: enough for a hundred thousand mappings, or threads of rings.
pub const INFO_MAX: u64 = 16 << 20;

/// Descriptors that are not for kept files: three standard ones, and one for a file that each of some threads opens.
const RESERVED: usize = 10;

/// How many more files may be kept open.
#[derive(Debug)]
pub struct DescriptorBudget(Arc<AtomicUsize>);

/// One descriptor of a budget, which gets it back.
#[derive(Debug)]
struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        // ORDERING: as in `take`.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl DescriptorBudget {
    /// A budget of `limit` files.
    pub fn new(limit: usize) -> DescriptorBudget {
        DescriptorBudget(Arc::new(AtomicUsize::new(limit)))
    }

    /// Half of the descriptors that the process may have, so that output, temporary files and directories always get one.
    /// Raises the soft limit to the hard one first: the soft limit protects programs that use `select`.
    pub fn from_limit() -> DescriptorBudget {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: getrlimit writes one rlimit to the place it is given.
        let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: setrlimit reads one rlimit from the place it is given.
        if known && unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
            limit = raised;
        }
        let limit = if known { limit.rlim_cur.min(1 << 20) as usize } else { 256 };
        DescriptorBudget::new(limit.saturating_sub(RESERVED) / 2)
    }

    fn take(&self) -> Option<Permit> {
        // ORDERING: Relaxed suffices for a counter by which nothing else is published.
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.ok().map(|_| Permit(self.0.clone()))
    }
}

/// Device and inode number, which identify a file whatever its names are.
pub type FileIdentity = (u64, u64);

/// A regular file, open or to be opened for each read.
#[derive(Debug)]
pub struct FileHandle {
    /// The path by which it was opened.
    pub path: PathBuf,
    /// Device and inode number.
    pub identity: FileIdentity,
    kept: Option<File>,
    permit: Option<Permit>,
}

impl FileHandle {
    /// Takes over `file`, which was opened by `path`. Closes it if `descriptors` are used up.
    pub fn new(path: PathBuf, file: File, descriptors: &DescriptorBudget) -> io::Result<FileHandle> {
        let metadata = file.metadata()?;
        let permit = descriptors.take();
        let kept = permit.is_some().then_some(file);
        Ok(FileHandle { path, identity: (metadata.dev(), metadata.ino()), kept, permit })
    }

    /// Takes over a file that cannot be opened again, as a temporary file; it stays open. `path` is for messages.
    pub fn unnamed(path: PathBuf, file: File) -> FileHandle {
        FileHandle { path, identity: (0, 0), kept: Some(file), permit: None }
    }

    /// Takes over `copy`, a temporary file that is read in the place of `file`, which was opened by `path`.
    pub fn copied(path: PathBuf, file: &File, copy: File) -> io::Result<FileHandle> {
        let metadata = file.metadata()?;
        Ok(FileHandle { path, identity: (metadata.dev(), metadata.ino()), kept: Some(copy), permit: None })
    }

    /// Closes a file that can be opened again. It is opened for each read from now on.
    pub fn close(&mut self) {
        if self.permit.take().is_some() {
            self.kept = None;
        }
    }

    /// Whether it is closed, and its path leads to no file or to another one.
    pub fn is_lost(&self) -> bool {
        self.kept.is_none() && !leads_to(&self.path, self.identity)
    }

    /// How many bytes it has now.
    pub fn size(&self) -> io::Result<u64> {
        let metadata = self.kept.as_ref().map_or_else(|| fs::metadata(&self.path), File::metadata);
        Ok(metadata?.len())
    }

    /// Reads up to `buffer.len()` bytes at `offset`; 0 means the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.kept {
            Some(file) => read_at(file, buffer, offset),
            None => {
                let file = open(&self.path)?;
                let metadata = file.metadata()?;
                if (metadata.dev(), metadata.ino()) != self.identity {
                    return Err(io::Error::other("was replaced while being read"));
                }
                read_at(&file, buffer, offset)
            }
        }
    }
}

/// Whether the file at `path` has this number now.
pub fn leads_to(path: &Path, identity: FileIdentity) -> bool {
    fs::metadata(path).is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == identity)
}

/// Opens for reading; a pipe is opened without waiting for its writer. In a subdirectory of a trace directory, which another
/// user may write to, only a regular file of that user is opened.
pub fn open(path: &Path) -> io::Result<File> {
    if let (Some(directory), Some(name)) = (path.parent(), path.file_name())
        && is_subdirectory(directory)
    {
        return open_in_subdirectory(directory, name);
    }
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

/// Opens the regular file `name` of the directory's owner, by way of the directory's descriptor.
fn open_in_subdirectory(directory: &Path, name: &OsStr) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(directory)?;
    let name = CString::new(name.as_bytes())?;
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the name ends with a NUL, and the borrowed directory keeps the descriptor open.
    let number = unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor has just been made, and is nobody else's.
    let file = unsafe { File::from_raw_fd(number) };
    if is_file_of_owner(&file.metadata()?, &directory.metadata()?) {
        Ok(file)
    } else {
        Err(io::Error::other("no file of the directory's owner"))
    }
}

/// Whether the file, which is in this subdirectory of a trace directory, is a regular one of its owner without another name.
pub fn is_file_of_owner(file: &Metadata, directory: &Metadata) -> bool {
    file.is_file() && file.uid() == directory.uid() && file.nlink() == 1
}

/// The directory's owner, if it is a subdirectory of a trace directory: only its files count.
pub fn owner_of_subdirectory(directory: &Path) -> Option<Metadata> {
    fs::symlink_metadata(directory).ok().filter(|metadata| is_subdirectory(directory) && metadata.is_dir())
}

/// [`is_file_of_owner`] of the file at `path`, which may be gone.
pub fn is_path_of_owner(path: &Path, directory: &Metadata) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| is_file_of_owner(&file, directory))
}

/// Opens a regular file for reading. No other file is opened, since opening a device may have effects.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let irregular = || io::Error::other("not a regular file");
    if !fs::metadata(path)?.is_file() {
        return Err(irregular());
    }
    let file = open(path)?;
    // Another file may have taken the path meanwhile.
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// Opens the regular file at `path` for reading, but follows no link; `None` if nothing is there.
pub fn open_if_present(path: &Path) -> io::Result<Option<File>> {
    let opened = match path.parent().is_some_and(is_subdirectory) {
        true => open(path),
        false => OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path),
    };
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Err(io::Error::other("not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The text of a trinfo, or the beginning of a very long one.
pub fn read_info(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open_regular(path)?.take(INFO_MAX).read_to_end(&mut text)?;
    Ok(text)
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beyond_the_limit_are_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let descriptors = DescriptorBudget::new(1);
        let handles: Vec<FileHandle> = ["a", "b"]
            .map(|name| {
                let path = directory.path().join(name);
                fs::write(&path, name).unwrap();
                FileHandle::new(path.clone(), open(&path).unwrap(), &descriptors).unwrap()
            })
            .into();
        assert!(handles[0].kept.is_some() && handles[1].kept.is_none());
        let mut buffer = [0; 4];
        for (handle, text) in handles.iter().zip([b"a", b"b"]) {
            assert_eq!(handle.read_at(&mut buffer, 0).unwrap(), 1);
            assert_eq!(&buffer[..1], text);
            assert_eq!(handle.read_at(&mut buffer, 1).unwrap(), 0);
        }
        // A file that is closed makes room for another one.
        let mut handles = handles;
        handles[0].close();
        let path = directory.path().join("b");
        assert!(FileHandle::new(path.clone(), open(&path).unwrap(), &descriptors).unwrap().kept.is_some());
        assert!(FileHandle::new(path.clone(), open(&path).unwrap(), &descriptors).unwrap().kept.is_some());
        assert_eq!((handles[0].read_at(&mut buffer, 0).unwrap(), handles[0].is_lost()), (1, false));
        fs::rename(directory.path().join("a"), directory.path().join("b")).unwrap();
        assert_eq!(handles[1].read_at(&mut buffer, 0).unwrap_err().to_string(), "was replaced while being read");
        assert!(handles[0].is_lost() && handles[1].is_lost());
    }
}
