//! The path of the trace directory.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::sys::diagnostics::{Warning, errno_text, warn};
use crate::sys::path::{self, DIRECTORY_MAX, PATH_MAX};
use crate::sys::{Errno, Result, SetOnce, is_own_directory};

/// Memory for paths and texts, which no host's stack has room for.
pub(super) struct Scratch {
    pub(super) path: [u8; PATH_MAX],
    pub(super) other_path: [u8; PATH_MAX],
    pub(super) text: [u8; 8192],
}

/// `THR_TRACE_DIR`, as the environment has it.
static WANTED: SetOnce<[u8; PATH_MAX]> = SetOnce::new([0; PATH_MAX]);
/// The absolute path, without a slash at its end.
static DIRECTORY: SetOnce<[u8; PATH_MAX]> = SetOnce::new([0; PATH_MAX]);
/// The path is absolute, in this process or in one that it was forked from.
static RESOLVED: AtomicBool = AtomicBool::new(false);

/// The directory's absolute path, once [`resolve`] has been called.
pub fn path() -> &'static [u8] {
    path::in_buffer(DIRECTORY.get()).to_bytes()
}

/// Notes `THR_TRACE_DIR`, because the program may write over its environment before its first record. To be called
/// once, while the library is initialised and before anything else of this module.
pub fn note_wanted(directory: &[u8]) {
    // SAFETY: by the promise above nobody else uses it; `resolve` reads it after the initialisation.
    path::join(unsafe { WANTED.get_mut() }, &[directory]);
}

/// Finds the directory's absolute path, once, so that a later chdir does not matter; or reports that there is none.
///
/// # Safety
/// One thread of the process may call this, before any other uses a path of the trace directory.
pub unsafe fn resolve() -> bool {
    if RESOLVED.load(Relaxed) {
        return true;
    }
    // SAFETY: the caller's.
    let directory = unsafe { DIRECTORY.get_mut() };
    let wanted = path::in_buffer(WANTED.get()).to_bytes();
    let mut length = 0;
    if wanted.first() != Some(&b'/') {
        match path::working_directory(&mut directory[..DIRECTORY_MAX]) {
            Ok(written) => length = written,
            Err(errno) => return report_unusable(wanted, errno),
        }
    }
    let slash: &[u8] = if length == 0 || wanted.is_empty() { b"" } else { b"/" };
    length = path::append(directory, length, &[slash, wanted]).count_bytes();
    if length > DIRECTORY_MAX {
        return report_unusable(wanted, Errno(libc::ENAMETOOLONG));
    }
    while length > 1 && directory.get(length - 1) == Some(&b'/') {
        length -= 1;
    }
    path::append(directory, length, &[]);
    RESOLVED.store(true, Relaxed);
    true
}

/// Reports once that the directory cannot be used; always `false`.
pub fn report_unusable(directory: &[u8], errno: Errno) -> bool {
    let reason = errno_text(errno);
    warn(Warning::Directory, &[b"cannot write a trace to '", directory, b"': ", reason, b"; nothing is recorded"]);
    false
}

/// Appends `/nsINODE` to the directory and makes that one: a living process of another PID namespace has our names in
/// the directory itself. `buffer` is overwritten.
///
/// # Safety
/// No other thread may be using the path of the directory.
pub(super) unsafe fn move_to_namespace(inode: u64, buffer: &mut [u8; PATH_MAX]) -> Result {
    let length = path().len();
    // SAFETY: the caller's.
    let moved =
        path::append(unsafe { DIRECTORY.get_mut() }, length, &[b"/ns", itoa::Buffer::new().format(inode).as_bytes()]);
    if moved.count_bytes() > DIRECTORY_MAX {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    let path_in_buffer = path::join(buffer, &[path()]);
    match path::make_directory(path_in_buffer, 0o700) {
        Ok(()) => {}
        // Somebody else may have made it, or a link that leads elsewhere.
        Err(Errno(libc::EEXIST)) if is_own_directory(path_in_buffer)? => {}
        Err(Errno(libc::EEXIST)) => return Err(Errno(libc::EACCES)),
        Err(errno) => return Err(errno),
    }
    warn(
        Warning::Namespace,
        &[b"a process of another PID namespace has this one's number; its trace goes to ", path()],
    );
    Ok(())
}
