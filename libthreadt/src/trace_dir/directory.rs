//! The path of the trace directory.

use core::ffi::CStr;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::process_state::{PROCESS, WorkingProcess};
use crate::sys::diagnostics::{Warning, errno_text, warn};
use crate::sys::path::{self, DIRECTORY_MAX, PATH_MAX};
use crate::sys::{Errno, Fd, Once, Result, SetOnce, is_own_directory};

/// Memory for paths and texts, which no host's stack has room for.
pub(super) struct Scratch {
    pub(super) path: [u8; PATH_MAX],
    pub(super) other_path: [u8; PATH_MAX],
    pub(super) text: [u8; 8192],
}

impl Scratch {
    pub(super) const fn new() -> Scratch {
        Scratch { path: [0; PATH_MAX], other_path: [0; PATH_MAX], text: [0; 8192] }
    }
}

/// `THR_TRACE_DIR`, as the environment has it.
static WANTED: SetOnce<[u8; PATH_MAX]> = SetOnce::new([0; PATH_MAX]);
/// The absolute path, without a slash at its end.
static DIRECTORY: SetOnce<[u8; PATH_MAX]> = SetOnce::new([0; PATH_MAX]);
/// The path is absolute, in this process or in one that it was forked from.
static RESOLVED: Once = Once::new();
/// The subdirectory of the user that this process, or one that it was forked from, has become.
static USER_DIRECTORY: SetOnce<[u8; PATH_MAX]> = SetOnce::new([0; PATH_MAX]);
static IS_IN_USER_DIRECTORY: AtomicBool = AtomicBool::new(false);

/// The directory's absolute path, once [`resolve`] has been called.
pub fn path() -> &'static [u8] {
    path::in_buffer(current().get()).to_bytes()
}

/// Whether a file can be made in the directory now, as far as that shows without making one.
pub fn takes_files() -> bool {
    Fd::takes_files(path::in_buffer(current().get()))
}

fn current() -> &'static SetOnce<[u8; PATH_MAX]> {
    // ORDERING: Acquire pairs with the Release in `move_to_user`.
    if IS_IN_USER_DIRECTORY.load(Acquire) { &USER_DIRECTORY } else { &DIRECTORY }
}

/// Where the files of this generation are.
pub fn path_of(generation: usize) -> &'static [u8] {
    let is_left = generation == 0 && PROCESS.has_moved.load(Relaxed) != 0;
    path::in_buffer(if is_left { DIRECTORY.get() } else { current().get() }).to_bytes()
}

/// Whether [`move_to_user`] has been called, in this process or in one that it was forked from.
pub fn is_in_user_directory() -> bool {
    IS_IN_USER_DIRECTORY.load(Acquire)
}

/// Notes `THR_TRACE_DIR`, because the program may write over its environment before its first record. To be called
/// once, while the library is initialised and before anything else of this module.
pub fn note_wanted(directory: &[u8]) {
    // SAFETY: by the promise above nobody else uses it; `resolve` reads it after the initialisation.
    path::join(unsafe { WANTED.get_mut() }, &[directory]);
}

/// Finds the directory's absolute path, once, so that a later chdir does not matter; or reports that there is none.
pub fn resolve() -> bool {
    RESOLVED.is_done() || RESOLVED.run(find_absolute_path)
}

/// Lets [`resolve`] begin anew though the thread `lwp` is at it ([`Once::give_up`]).
pub fn give_up(lwp: u32) {
    RESOLVED.give_up(lwp);
}

fn find_absolute_path() -> bool {
    // SAFETY: within RESOLVED, which all who use the path have passed.
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
    true
}

/// Reports once that the directory cannot be used; always `false`.
pub fn report_unusable(directory: &[u8], errno: Errno) -> bool {
    let reason = errno_text(errno);
    warn(Warning::Directory, &[b"cannot write a trace to '", directory, b"': ", reason, b"; nothing is recorded"]);
    false
}

/// Writes the path of the subdirectory for the user `uid` into `buffer`; `None` if it is too long.
pub(super) fn path_for_user(buffer: &mut [u8; PATH_MAX], uid: u32) -> Option<&CStr> {
    let user = path::join(buffer, &[path(), b"/u", itoa::Buffer::new().format(uid).as_bytes()]);
    (user.count_bytes() <= DIRECTORY_MAX).then_some(user)
}

/// Uses the subdirectory at `path` from now on. Once in a process and its forked children.
///
/// # Safety
/// One thread of the process may call this.
pub(super) unsafe fn move_to_user(path: &CStr) {
    if !is_in_user_directory() {
        // SAFETY: the caller's; nobody reads it yet.
        path::join(unsafe { USER_DIRECTORY.get_mut() }, &[path.to_bytes()]);
        IS_IN_USER_DIRECTORY.store(true, Release);
    }
}

/// Undoes [`move_to_user`].
pub fn move_back() {
    IS_IN_USER_DIRECTORY.store(false, Release);
}

/// Appends `/nsINODE` to the directory and makes that one: a living process of another PID namespace has our names in
/// the directory itself. `buffer` is overwritten.
///
/// # Safety
/// No other thread may be using the path of the directory.
pub(super) unsafe fn move_to_namespace(inode: u64, buffer: &mut [u8; PATH_MAX], process: WorkingProcess) -> Result {
    process.check()?;
    let length = path().len();
    // SAFETY: the caller's.
    let moved =
        path::append(unsafe { current().get_mut() }, length, &[b"/ns", itoa::Buffer::new().format(inode).as_bytes()]);
    if moved.count_bytes() > DIRECTORY_MAX {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    let path_in_buffer = path::join(buffer, &[path()]);
    // Others may pass through: a process that becomes another user has its subdirectory within.
    match path::make_directory(path_in_buffer, 0o711) {
        Ok(()) => {}
        // Somebody else may have made it, or a link that leads elsewhere.
        Err(Errno(libc::EEXIST)) if is_own_directory(path_in_buffer)? => {}
        Err(Errno(libc::EEXIST)) => return Err(Errno(libc::EACCES)),
        Err(errno) => return Err(errno),
    }
    process.check()?;
    warn(
        Warning::Namespace,
        &[b"a process of another PID namespace has this one's number; its trace goes to ", path()],
    );
    Ok(())
}
