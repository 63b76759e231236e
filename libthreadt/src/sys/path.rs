//! Names of files.

use core::ffi::CStr;

use super::{Result, call};

/// Renames without replacing: `Err(EEXIST)` if there is such a name already.
pub fn rename(from: &CStr, to: &CStr) -> Result {
    let here = libc::AT_FDCWD as usize;
    let flags = libc::RENAME_NOREPLACE as usize;
    // SAFETY: both paths are NUL-terminated.
    unsafe { call(libc::SYS_renameat2, [here, from.as_ptr() as usize, here, to.as_ptr() as usize, flags, 0]) }.map(drop)
}

/// Renames, replacing what has the new name.
pub fn replace(from: &CStr, to: &CStr) -> Result {
    // SAFETY: both paths are NUL-terminated.
    unsafe { call(libc::SYS_rename, [from.as_ptr() as usize, to.as_ptr() as usize, 0, 0, 0, 0]) }.map(drop)
}

/// Gives a file another name; `Err(EEXIST)` if there is such a name already.
pub fn link(from: &CStr, to: &CStr) -> Result {
    // SAFETY: both paths are NUL-terminated.
    unsafe { call(libc::SYS_link, [from.as_ptr() as usize, to.as_ptr() as usize, 0, 0, 0, 0]) }.map(drop)
}

/// Removes a name.
pub fn unlink(path: &CStr) -> Result {
    // SAFETY: the path is NUL-terminated.
    unsafe { call(libc::SYS_unlink, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Makes a directory.
pub fn make_directory(path: &CStr, mode: u32) -> Result {
    // SAFETY: the path is NUL-terminated.
    unsafe { call(libc::SYS_mkdir, [path.as_ptr() as usize, mode as usize, 0, 0, 0, 0]) }.map(drop)
}

/// The text of a symbolic link, cut to the buffer.
pub fn read_link(path: &CStr, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the path is NUL-terminated, the buffer ours to write.
    unsafe { call(libc::SYS_readlink, [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) }
}

/// The working directory with its terminating NUL; returns the length without it.
pub fn working_directory(buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the buffer is ours to write.
    let length = unsafe { call(libc::SYS_getcwd, [buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0, 0]) }?;
    Ok(length.saturating_sub(1))
}
