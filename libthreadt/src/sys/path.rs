//! Paths: how they are built in memory that the caller provides, and the system calls that take them.

use core::arch::asm;
use core::ffi::CStr;

use spec::names::{FileName, NAME_MAX};

use super::call::{Errno, Result, call, filled_by};

/// Longest path of a directory that a trace can be in, bytes.
pub const DIRECTORY_MAX: usize = PATH_MAX - NAME_MAX - 48;
/// Bytes for a path of the trace directory, with its terminating NUL.
pub const PATH_MAX: usize = 3072;

/// Writes `directory/name` with its NUL into `buffer`. The directory has at most [`DIRECTORY_MAX`] bytes.
pub fn trace_file<'a>(buffer: &'a mut [u8; PATH_MAX], directory: &[u8], name: FileName) -> &'a CStr {
    let (text, length) = name.text();
    join(buffer, &[directory, b"/", text.get(..length).unwrap_or(b"")])
}

/// Writes the slices, one behind the other, with a NUL into `buffer`; what does not fit is cut off.
pub fn join<'a>(buffer: &'a mut [u8; PATH_MAX], slices: &[&[u8]]) -> &'a CStr {
    append(buffer, 0, slices)
}

/// As [`join`], behind the first `length` bytes, which stay.
pub fn append<'a>(buffer: &'a mut [u8; PATH_MAX], length: usize, slices: &[&[u8]]) -> &'a CStr {
    let mut end = length.min(PATH_MAX - 1);
    for slice in slices {
        let fitting = slice.len().min(PATH_MAX - 1 - end);
        if let (Some(to), Some(from)) = (buffer.get_mut(end..end + fitting), slice.get(..fitting)) {
            copy(to, from);
        }
        end += fitting;
    }
    if let Some(last) = buffer.get_mut(end) {
        *last = 0;
    }
    in_buffer(buffer)
}

/// Copies bytes without `memcpy`, which sanitizers intercept: they do not know of the locks that guard a slot.
fn copy(to: &mut [u8], from: &[u8]) {
    let length = to.len().min(from.len());
    // SAFETY: both slices have as many bytes, and a mutable one overlaps nothing.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rdi") to.as_mut_ptr() => _,
            inout("rsi") from.as_ptr() => _,
            options(nostack, preserves_flags),
        );
    }
}

/// The directory of a path, with its slash, and the last name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let name = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    path.split_at_checked(name).unwrap_or_default()
}

/// The last name of a path.
pub fn base_name(path: &[u8]) -> &[u8] {
    split(path).1
}

/// The path that is in `buffer`.
pub fn in_buffer(buffer: &[u8; PATH_MAX]) -> &CStr {
    CStr::from_bytes_until_nul(buffer).unwrap_or(c"")
}

/// Renames without replacing: `Err(EEXIST)` if there is such a name already.
pub fn rename(from: &CStr, to: &CStr) -> Result {
    let here = libc::AT_FDCWD as usize;
    let flags = libc::RENAME_NOREPLACE as usize;
    // SAFETY: both paths are NUL-terminated.
    match unsafe { call(libc::SYS_renameat2, [here, from.as_ptr() as usize, here, to.as_ptr() as usize, flags]) } {
        // NFS and other file systems cannot do that.
        Err(Errno(libc::EINVAL | libc::ENOSYS)) => {
            link(from, to)?;
            unlink(from)
        }
        renamed => renamed.map(drop),
    }
}

/// Gives a file a second name: `Err(EEXIST)` if there is such a name already.
fn link(from: &CStr, to: &CStr) -> Result {
    // SAFETY: both paths are NUL-terminated.
    unsafe { call(libc::SYS_link, [from.as_ptr() as usize, to.as_ptr() as usize]) }.map(drop)
}

/// The status of what a path leads to; a symbolic link at its end is not followed.
pub fn stat(path: &CStr) -> Result<libc::stat> {
    let (here, flags) = (libc::AT_FDCWD as usize, libc::AT_SYMLINK_NOFOLLOW as usize);
    // SAFETY: the path is NUL-terminated, and the kernel fills the struct when it returns 0.
    unsafe { filled_by(|stat| call(libc::SYS_newfstatat, [here, path.as_ptr() as usize, stat, flags])) }
}

/// Whether nothing has this path, for certain.
pub fn is_unused(path: &CStr) -> bool {
    stat(path).is_err_and(|errno| errno == Errno(libc::ENOENT))
}

pub fn unlink(path: &CStr) -> Result {
    // SAFETY: the path is NUL-terminated.
    unsafe { call(libc::SYS_unlink, [path.as_ptr() as usize]) }.map(drop)
}

pub fn make_directory(path: &CStr, mode: u32) -> Result {
    // SAFETY: the path is NUL-terminated.
    unsafe { call(libc::SYS_mkdir, [path.as_ptr() as usize, mode as usize]) }.map(drop)
}

/// Removes an empty directory.
pub fn remove_directory(path: &CStr) -> Result {
    // SAFETY: the path is NUL-terminated.
    unsafe { call(libc::SYS_rmdir, [path.as_ptr() as usize]) }.map(drop)
}

/// The text of a symbolic link, as much as the buffer holds; returns its length.
pub fn read_link(path: &CStr, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the path is NUL-terminated, the buffer writable.
    unsafe { call(libc::SYS_readlink, [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len()]) }
}

/// Writes the working directory's path with its NUL into `buffer`; returns the length without the NUL.
pub fn working_directory(buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the buffer is writable.
    let length = unsafe { call(libc::SYS_getcwd, [buffer.as_mut_ptr() as usize, buffer.len()]) }?;
    Ok(length.saturating_sub(1))
}
