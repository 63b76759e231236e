//! The subdirectory `u<uid>` of the trace directory, for processes that become another user.
//!
//! A daemon that root has started gives up its rights: afterwards it can neither make files in root's directory nor open
//! those that it made. So the subdirectory is made before, while that is still permitted, and given to the new user, who
//! alone may use it.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::directory::{self, Scratch};
use super::{shared_clock, spare_trbufs};
use crate::process_state::{self, WorkingProcess};
use crate::sys::path;
use crate::sys::{Hold, SetOnce, give_directory_to, is_directory_of, user_id};

static SCRATCH: SetOnce<Scratch> = SetOnce::new(Scratch::new());
/// The right to use it.
static SCRATCH_HOLD: Hold = Hold::new();
/// The user for whom there was no subdirectory when this process, or one that it was forked from, made its first files; `u32::MAX`, which
/// is no user, if nobody has looked.
#[unsafe(link_section = "inherited")]
static HAS_NONE: AtomicU32 = AtomicU32::new(u32::MAX);

/// Moves this process, which is about to make its first files, to the subdirectory for the user `uid`, if there is one; `true` if it has
/// moved. A forked child is where its parent is if both are the same user.
///
/// # Safety
/// One thread of the process may call this.
pub(super) unsafe fn enter_at_first(uid: u32, scratch: &mut Scratch, process: WorkingProcess) -> bool {
    if HAS_NONE.load(Relaxed) == uid {
        return false;
    }
    // SAFETY: the caller's.
    let has_entered = unsafe { enter(uid, false, scratch, process) };
    if !has_entered && process.is_current() {
        HAS_NONE.store(uid, Relaxed);
    }
    has_entered
}

/// Lets the next look be one in another directory.
pub(super) fn forget() {
    HAS_NONE.store(u32::MAX, Relaxed);
}

/// Makes the subdirectory for the user `uid` where only this one can. The directory must have been resolved.
pub fn make(uid: u32) {
    if directory::is_in_user_directory() || !SCRATCH_HOLD.take() {
        return;
    }
    // SAFETY: SCRATCH_HOLD excludes all others.
    let scratch = unsafe { SCRATCH.get_mut() };
    if make_in(scratch, uid) {
        // The clock of all who record here, while its file can be read.
        shared_clock::share(scratch);
    }
    SCRATCH_HOLD.release();
}

/// `true` if there is one that can be used.
fn make_in(scratch: &mut Scratch, uid: u32) -> bool {
    let is_safe = is_closed_to_others(path::join(&mut scratch.path, &[directory::path()]));
    let Some(path) = directory::path_for_user(&mut scratch.path, uid) else { return false };
    // Workers of a server become the same user at the same time: whoever finds the directory must find it complete.
    if is_safe && path::is_unused(path) {
        let mut number = itoa::Buffer::new();
        let pid = number.format(process_state::id());
        let temporary = path::join(&mut scratch.other_path, &[path.to_bytes(), b".", pid.as_bytes()]);
        // OBSERVABLE: a directory that nobody uses.
        if path::make_directory(temporary, 0o700).is_ok()
            && (give_directory_to(temporary, uid).is_err() || path::rename(temporary, path).is_err())
        {
            let _ = path::remove_directory(temporary);
        }
    }
    is_directory_of(path, uid)
}

/// Whether nobody but this user and root can put another directory in the place of one that was just made here.
fn is_closed_to_others(directory: &CStr) -> bool {
    path::stat(directory).is_ok_and(|stat| {
        [0, user_id()].contains(&stat.st_uid) && (stat.st_mode & 0o022 == 0 || stat.st_mode & libc::S_ISVTX != 0)
    })
}

/// The user whose subdirectory this process uses; `None` if it uses none.
pub(super) fn owner(scratch: &mut Scratch) -> Option<u32> {
    if !directory::is_in_user_directory() {
        return None;
    }
    path::stat(path::join(&mut scratch.path, &[directory::path()])).ok().map(|stat| stat.st_uid)
}

/// Moves this process to the subdirectory for the user `uid`, if there is one, or if it `may_make` one; `true` if it has moved.
///
/// # Safety
/// One thread of the process may call this.
pub(super) unsafe fn enter(uid: u32, may_make: bool, scratch: &mut Scratch, process: WorkingProcess) -> bool {
    if directory::is_in_user_directory() {
        return false;
    }
    let Some(path) = directory::path_for_user(&mut scratch.path, uid) else { return false };
    if !process.is_current() {
        return false;
    }
    if may_make {
        // Where everybody may make files, also the user itself may.
        let _ = path::make_directory(path, 0o700);
    }
    if !is_directory_of(path, uid) || !process.is_current() {
        return false;
    }
    // SAFETY: the caller's.
    unsafe { directory::move_to_user(path) };
    spare_trbufs::become_keeper();
    shared_clock::hand_on(scratch);
    true
}
