//! The numbers 0 to 2 where the host has closed one of them: no file of this library may get it.
//!
//! A program goes on writing to its standard descriptors, and reading them, when they are closed: that fails with `EBADF`. A
//! new file gets the lowest free number, so that what the host writes at that moment would be in ours. Before one is opened
//! such numbers are therefore taken by *placeholders*: descriptors of `O_PATH`, where reading and writing fail with `EBADF`,
//! too. They are closed as soon as the file is open.
//!
//! Whether it has closed one is known from the hooks of `close` and its kin, and else from a file that got such a number,
//! once. So where the three are open this takes no system call. Threads open files in turn meanwhile, or else the last of them closes the
//! placeholders (`openers`): those of one would be missing for the other when they are closed. Signals wait meanwhile: a handler might keep
//! the turn for seconds, or leave it by a jump. Where they must not, a handler that has interrupted its own thread finds the placeholders of
//! that thread, which stay until it returns, and adds what is missing. What a fork leaves, or a jump, is found by its number, its flags and
//! the directory that it leads to.

use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};

use super::call::{Errno, call};
use super::descriptor::{NOWHERE, close, leads_nowhere, open_numbers, stat};
use super::descriptor_table;
use super::hold::Holder;
use super::opened_before;
use super::openers;
use super::path;
use super::signals::BlockedSignals;

/// How many standard descriptors there are.
const STANDARD: c_int = 3;
/// A bit for each.
const ALL: u8 = (1 << STANDARD) - 1;
/// How often it is asked which are free, until none is: while one is taken libc may close a lower one, whose number the placeholder gets. A
/// program may do that all the time.
const PASSES_MAX: u32 = 4;

/// Changes whenever one may have been closed.
static CLOSINGS: AtomicU32 = AtomicU32::new(1);
/// What [`CLOSINGS`] was when all three were open last; 0 if that is not known.
static OPEN_AT: AtomicU32 = AtomicU32::new(0);
/// Left for the last opener, beside a bit for each number: somebody has left by a jump, or is gone, and may have placed what is not known.
const UNKNOWN: u8 = 1 << STANDARD;
/// There have been placeholders, in this process or in one that it was forked from.
static HAS_PLACED: AtomicBool = AtomicBool::new(false);

/// The number that a placeholder got last because the host took its own before; -1 if there was none. It stays: the copy of a table of
/// descriptors that has the placeholder may be older than what is known here.
static MISPLACED: AtomicI32 = AtomicI32::new(-1);
/// How many threads are placing some, whose numbers may not be known yet.
static PLACERS: AtomicU32 = AtomicU32::new(0);

/// Where placeholders lead, and the device and the inode of that directory, as the last one had them.
const ROOT_PATH: &CStr = c"/";
static ROOT: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Whether this number is one of them.
#[inline]
pub fn is_standard(number: c_int) -> bool {
    (0..STANDARD).contains(&number)
}

/// Notes that the host may have closed one.
pub fn note_closing() {
    // ORDERING: SeqCst. A hook does this while the number is announced (`host_numbers`), so that nothing is opened meanwhile.
    CLOSINGS.fetch_add(1, SeqCst);
}

/// Opens a file by `open` while none of the three numbers is free; also the signals that wait until the file has another number if it has
/// got one of these in spite of all. `lwp` is the calling thread's.
pub fn while_taken<T>(lwp: u32, open: impl FnOnce() -> T) -> (T, Option<BlockedSignals>) {
    let closings = CLOSINGS.load(SeqCst);
    if are_open(closings) { (open(), None) } else { open_with_placeholders(lwp, closings, open) }
}

/// Whether all three are open. [`CLOSINGS`] was `closings` before.
fn are_open(closings: u32) -> bool {
    if is_uncertain() {
        return (0..STANDARD).all(|number| !is_free(number) && !is_placeholder(number));
    }
    OPEN_AT.load(Relaxed) == closings
}

/// Whether what is known of the standard descriptors may be that of another table, or another process may close one.
fn is_uncertain() -> bool {
    descriptor_table::may_differ() || descriptor_table::may_be_shared()
}

#[cold]
#[inline(never)]
fn open_with_placeholders<T>(lwp: u32, closings: u32, open: impl FnOnce() -> T) -> (T, Option<BlockedSignals>) {
    let (opener, blocked) = openers::enter(lwp, UNKNOWN);
    let placed = place();
    if placed == 0 && opener.is_some() && !is_uncertain() && !(0..STANDARD).any(is_placeholder) {
        OPEN_AT.store(closings, Relaxed);
    }
    let opened = open();
    match opener {
        Some(opener) if !is_uncertain() => {
            openers::note_left(placed);
            opener.leave(lwp, close_left);
        }
        // Others may have another table of descriptors, or need what the interrupted thread has placed.
        _ => {
            remove(placed);
            opener.inspect(|opener| opener.leave(lwp, close_left));
        }
    }
    (opened, blocked)
}

/// Closes what openers have left. The caller must be the last of them.
fn close_left(left: u8) {
    if left & UNKNOWN == 0 { remove(left) } else { remove_left() }
}

/// Takes what is free of the numbers; returns a bit for each.
fn place() -> u8 {
    let (mut placed, mut has_begun) = (0, false);
    for _ in 0..PASSES_MAX {
        let mut has_opened = false;
        for _ in (0..STANDARD).filter(|number| is_free(*number)) {
            if !has_begun {
                // Before: a child that has one in its table of descriptors has these, too.
                HAS_PLACED.store(true, Relaxed);
                note_root();
                PLACERS.fetch_add(1, Relaxed);
                has_begun = true;
            }
            let opened = place_one();
            placed |= opened.unwrap_or(0);
            has_opened |= opened.is_some();
        }
        if !has_opened {
            break;
        }
    }
    if has_begun {
        // Somebody may have taken this thread for one that has left by a jump.
        let _ = PLACERS.fetch_update(Relaxed, Relaxed, |placers| placers.checked_sub(1));
    }
    placed
}

/// Takes the lowest free number; returns its bit, or 0 if the host was faster; `None` if nothing can be opened.
fn place_one() -> Option<u8> {
    let flags = (NOWHERE | libc::O_CLOEXEC) as usize;
    // SAFETY: the path is NUL-terminated.
    let opened = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, ROOT_PATH.as_ptr() as usize, flags]) };
    let number = opened.ok()? as c_int;
    opened_before::add_number(number);
    if is_standard(number) {
        return Some(1 << number);
    }
    MISPLACED.store(number, Relaxed);
    // Another thread may have noted its own meanwhile.
    if is_placeholder(number) {
        close(number);
    }
    Some(0)
}

/// Notes where placeholders lead. A program may change its root directory.
fn note_root() {
    if let Ok(root) = path::stat(ROOT_PATH) {
        ROOT.iter().zip(identity(&root)).for_each(|(word, value)| word.store(value, Relaxed));
    }
}

/// Whether a file may get this number. Not where a filter forbids the question.
fn is_free(number: c_int) -> bool {
    // SAFETY: no memory is involved.
    let flags = unsafe { call(libc::SYS_fcntl, [number as usize, libc::F_GETFD as usize]) };
    flags == Err(Errno(libc::EBADF))
}

/// Closes the caller's placeholders, which have got these numbers, unless the host has one of the numbers now.
fn remove(placed: u8) {
    (0..STANDARD).filter(|number| placed >> number & 1 != 0 && is_placeholder(*number)).for_each(close);
}

/// Closes a placeholder that has not got one of these numbers.
fn close_misplaced() {
    let number = MISPLACED.load(Relaxed);
    if number >= 0 && is_placeholder(number) {
        close(number);
    }
}

/// Closes all there are. The caller must be the last opener, or have a table of its own.
fn remove_left() {
    remove(ALL);
    close_misplaced();
    if PLACERS.swap(0, Relaxed) != 0 {
        open_numbers().filter(|number| is_placeholder(*number)).for_each(close);
    }
}

/// Whether the number looks taken for the time in which a file is opened.
pub fn is_placeholder(number: c_int) -> bool {
    let leads_to_root =
        || stat(number).is_ok_and(|stat| identity(&stat) == ROOT.each_ref().map(|word| word.load(Relaxed)));
    leads_nowhere(number) && leads_to_root()
}

/// The device and the inode of a file.
fn identity(stat: &libc::stat) -> [u64; 2] {
    [stat.st_dev, stat.st_ino]
}

/// Closes what this thread, `lwp`, has left by a jump; `is_left` says whether it has left what it holds.
pub fn close_abandoned(lwp: u32, is_left: impl Fn(Holder) -> bool) {
    openers::leave_abandoned(lwp, is_left, UNKNOWN, close_left);
}

/// In a forked child: closes what the parent's other threads had placed, if the table `is_own`. Where a signal handler forked
/// that has interrupted its thread meanwhile, as `is_live` says, the thread, now `new_lwp`, closes its own.
pub fn forget_inherited(is_live: impl Fn(Holder) -> bool, new_lwp: u32, is_own: bool) {
    let is_interrupted = openers::forget_inherited(is_live, new_lwp, if is_own { UNKNOWN } else { 0 });
    // The kernel copies the table of descriptors a little before the memory: they may have been closed in between.
    if !is_interrupted && is_own && HAS_PLACED.load(Relaxed) {
        remove_left();
    }
}

/// Closes what other threads had placed in the table that the thread `lwp`, the calling one, has left: it has a copy of it.
pub fn close_copies(lwp: u32) {
    if HAS_PLACED.load(Relaxed) && !openers::contain(lwp) {
        remove_left();
    }
}
