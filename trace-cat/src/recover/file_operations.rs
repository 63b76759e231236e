//! Every change of a file that recovery makes, behind a trait, so that tests can let recovery die after each.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// The changes.
pub trait FileOperations {
    /// Writes all of `bytes` at `at`.
    fn write(&mut self, file: &File, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Creates a file of the process.
    fn create(&mut self, path: &Path) -> io::Result<File>;
    /// Changes the owner of a file that was just created.
    fn change_owner(&mut self, file: &File, user: u32, group: u32) -> io::Result<()>;
    /// Removes a file.
    fn remove(&mut self, path: &Path) -> io::Result<()>;
}

/// Makes the changes.
pub struct RealFileOperations;

impl FileOperations for RealFileOperations {
    fn write(&mut self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        file.write_all_at(bytes, at)
    }

    fn create(&mut self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create_new(true).custom_flags(libc::O_NOFOLLOW).mode(0o600).open(path)?;
        // The umask may have removed permissions.
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(file)
    }

    fn change_owner(&mut self, file: &File, user: u32, group: u32) -> io::Result<()> {
        fchown(file, Some(user), Some(group))
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}
