//! The path of the trace directory.

use spec::buffer::SLOT_PATH_MAX;

use crate::sys::diagnostics::{Warning, errno_text, warn};
use crate::sys::path::{self, DIRECTORY_MAX};
use crate::sys::{Errno, Once, Result, SetOnce};

/// The path of a directory.
struct DirectoryPath {
    text: [u8; DIRECTORY_MAX],
    length: usize,
}

impl DirectoryPath {
    const EMPTY: DirectoryPath = DirectoryPath { text: [0; DIRECTORY_MAX], length: 0 };
}

/// Memory for paths and texts, which no host's stack has room for.
pub(super) struct Scratch {
    pub(super) path: [u8; SLOT_PATH_MAX],
    pub(super) other_path: [u8; SLOT_PATH_MAX],
    pub(super) text: [u8; 8192],
}

impl Scratch {
    pub(super) const NEW: Scratch =
        Scratch { path: [0; SLOT_PATH_MAX], other_path: [0; SLOT_PATH_MAX], text: [0; 8192] };
}

/// `THR_TRACE_DIR`, as the environment has it.
static WANTED: SetOnce<DirectoryPath> = SetOnce::new(DirectoryPath::EMPTY);
/// The absolute path, without a slash at its end.
static DIRECTORY: SetOnce<DirectoryPath> = SetOnce::new(DirectoryPath::EMPTY);
/// The path is absolute, in this process or in one that it was forked from.
static RESOLVED: Once = Once::new();

/// The directory's absolute path, once [`resolve`] has been called.
pub fn path() -> &'static [u8] {
    let directory = DIRECTORY.get();
    directory.text.get(..directory.length).unwrap_or(b"")
}

/// In a forked child: the thread that was resolving the path in the parent does not exist.
pub(super) fn forget() {
    RESOLVED.reset_unless_done();
}

/// Notes `THR_TRACE_DIR`, because the program may write over its environment before its first record.
///
/// To be called once, while the library is initialised and before anything else of this module.
pub fn note_wanted(directory: &[u8]) {
    // SAFETY: by the promise above nobody else uses it; `resolve` reads it after the initialisation.
    let wanted = unsafe { WANTED.get_mut() };
    // One that is too long is cut off, which `resolve` recognises by its length.
    wanted.length = directory.len();
    wanted.text.iter_mut().zip(directory).for_each(|(place, &byte)| *place = byte);
}

/// Finds the directory's absolute path, once, so that a later chdir does not matter. `false` if there is none, which is
/// reported.
pub fn resolve() -> bool {
    RESOLVED.run(resolve_wanted)
}

fn resolve_wanted() -> bool {
    // SAFETY: within RESOLVED, which all readers have passed.
    let directory = unsafe { DIRECTORY.get_mut() };
    let wanted = WANTED.get();
    let Some(wanted) = wanted.text.get(..wanted.length) else {
        return report_unusable(&wanted.text, Errno(libc::ENAMETOOLONG));
    };
    let mut length = 0;
    if wanted.first() != Some(&b'/') {
        match path::working_directory(&mut directory.text) {
            Ok(written) => length = written,
            Err(errno) => return report_unusable(wanted, errno),
        }
    }
    let slash: &[u8] = if length == 0 || wanted.is_empty() { b"" } else { b"/" };
    for &byte in slash.iter().chain(wanted) {
        match directory.text.get_mut(length) {
            Some(place) => *place = byte,
            None => return report_unusable(wanted, Errno(libc::ENAMETOOLONG)),
        }
        length += 1;
    }
    while length > 1 && directory.text.get(length - 1) == Some(&b'/') {
        length -= 1;
    }
    directory.length = length;
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
pub(super) unsafe fn move_to_namespace(inode: u64, buffer: &mut [u8; SLOT_PATH_MAX]) -> Result {
    // SAFETY: the caller's.
    let directory = unsafe { DIRECTORY.get_mut() };
    let mut number = itoa::Buffer::new();
    for &byte in b"/ns".iter().chain(number.format(inode).as_bytes()) {
        *directory.text.get_mut(directory.length).ok_or(Errno(libc::ENAMETOOLONG))? = byte;
        directory.length += 1;
    }
    match path::make_directory(path::join(buffer, &[path()]), 0o700) {
        Ok(()) | Err(Errno(libc::EEXIST)) => {}
        Err(errno) => return Err(errno),
    }
    warn(
        Warning::Namespace,
        &[b"a process of another PID namespace has this one's number; its trace goes to ", path()],
    );
    Ok(())
}
