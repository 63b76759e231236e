//! The numbers 0 to 2 where the host has closed one of them: no file of this library may get it.
//!
//! A program goes on writing to its standard descriptors, and reading them, when they are closed: that fails with `EBADF`. A
//! new file gets the lowest free number, so that what the host writes at that moment would be in ours. Before one is opened
//! such numbers are therefore taken by *placeholders*: descriptors of `O_PATH`, where reading and writing fail with `EBADF`,
//! too. They are closed as soon as the file is open.
//!
//! Whether it has closed one is known from the hooks of `close` and its kin, and else from a file that got such a number,
//! once. So where the three are open this takes no system call. Threads open files in turn meanwhile: the placeholders of one
//! would be missing for the other when they are closed. A signal handler that has interrupted its own thread finds those of
//! that thread, which stay until it returns, and adds what is missing. Whatever a jump or a fork leaves is found by its flags.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32};

use super::call::{Errno, call};
use super::descriptor::{close, control};
use super::descriptor_table;
use super::hold::{Hold, Holder};
use super::opened_before::{self, used_numbers};
use super::time::sleep;

/// How many standard descriptors there are.
const STANDARD: c_int = 3;
/// A bit for each.
const ALL: u8 = (1 << STANDARD) - 1;

/// Changes whenever one may have been closed.
static CLOSINGS: AtomicU32 = AtomicU32::new(1);
/// What [`CLOSINGS`] was when all three were open last; 0 if that is not known.
static OPEN_AT: AtomicU32 = AtomicU32::new(0);
/// The right to have placeholders.
static PLACING: Hold = Hold::new();
/// There have been placeholders, in this process or in one that it was forked from.
static HAS_PLACED: AtomicBool = AtomicBool::new(false);

/// What placeholders are opened with, besides `O_CLOEXEC`. The kernel keeps these flags, which hardly a program combines.
const MARK: c_int = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
/// For how long, in nanoseconds, a thread waits for its turn before it tries again, and how often it tries: half a second at
/// least.
const PAUSE: i64 = 10_000;
const PATIENCE: u32 = 10_000;

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

/// Opens a file by `open` while none of the three numbers is free. `lwp` is the calling thread's.
pub fn while_taken<T>(lwp: u32, open: impl FnOnce() -> T) -> T {
    let closings = CLOSINGS.load(SeqCst);
    if OPEN_AT.load(Relaxed) == closings && !is_uncertain() {
        open()
    } else {
        open_with_placeholders(lwp, closings, open)
    }
}

/// Whether what is known of the standard descriptors may be that of another table, or another process may close one.
fn is_uncertain() -> bool {
    descriptor_table::may_differ() || descriptor_table::may_be_shared()
}

#[cold]
#[inline(never)]
fn open_with_placeholders<T>(lwp: u32, closings: u32, open: impl FnOnce() -> T) -> T {
    if is_uncertain() && (0..STANDARD).all(|number| !is_free(number) && !is_placeholder(number)) {
        return open();
    }
    let mut patience = PATIENCE;
    let has_turn = loop {
        let before = PLACING.holder();
        if PLACING.take() {
            if before.is_some() {
                // Somebody has been ended there, or has left it by a jump; or has just given it back.
                remove_left();
            }
            break true;
        }
        patience -= 1;
        if patience == 0 || PLACING.holder().is_some_and(|holder| holder.lwp() == lwp) {
            break false;
        }
        sleep(PAUSE);
    };
    let placed = place();
    if placed == 0 && has_turn && !is_uncertain() && !(0..STANDARD).any(is_placeholder) {
        OPEN_AT.store(closings, Relaxed);
    }
    let opened = open();
    remove(placed);
    if has_turn {
        PLACING.release();
    }
    opened
}

/// Takes what is free of the numbers; returns a bit for each.
fn place() -> u8 {
    let mut placed = 0;
    for _ in (0..STANDARD).filter(|number| is_free(*number)) {
        // Before: a child that has one in its table of descriptors has this, too.
        HAS_PLACED.store(true, Relaxed);
        let flags = (MARK | libc::O_CLOEXEC) as usize;
        // SAFETY: the path is NUL-terminated.
        let opened = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, c"/".as_ptr() as usize, flags]) };
        let Ok(number) = opened.map(|number| number as c_int) else { break };
        opened_before::add_number(number);
        if is_standard(number) {
            placed |= 1 << number;
        } else {
            // The host was faster.
            close(number);
        }
    }
    placed
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

/// Closes what somebody has left. The caller must have the right to have placeholders.
fn remove_left() {
    used_numbers().filter(|number| is_placeholder(*number)).for_each(close);
}

fn is_placeholder(number: c_int) -> bool {
    control(number, libc::F_GETFL) & MARK == MARK && control(number, libc::F_GETFD) & libc::FD_CLOEXEC != 0
}

/// Closes what this thread has left by a jump; `is_left` says whether it has left what it holds.
pub fn close_abandoned(is_left: impl Fn(Holder) -> bool) {
    if PLACING.holder().is_some_and(is_left) {
        remove_left();
        PLACING.release();
    }
}

/// In a forked child: closes what the parent's other threads had placed, if the table `is_own`. Where a signal handler forked
/// that has interrupted its thread meanwhile, as `is_live` says, the thread, now `new_lwp`, closes its own.
pub fn forget_inherited(is_live: impl Fn(Holder) -> bool, new_lwp: u32, is_own: bool) {
    match PLACING.holder() {
        Some(holder) if is_live(holder) => PLACING.hand_on(holder.of_thread(new_lwp)),
        // The kernel copies the table of descriptors a little before the memory: they may have been closed in between.
        _ if HAS_PLACED.load(Relaxed) => {
            if is_own {
                remove_left();
            }
            PLACING.release();
        }
        _ => {}
    }
}

/// Closes what other threads had placed in the table that the thread `lwp`, the calling one, has left: it has a copy of it.
pub fn close_copies(lwp: u32) {
    if HAS_PLACED.load(Relaxed) && PLACING.holder().is_none_or(|holder| holder.lwp() != lwp) {
        remove(ALL);
    }
}
