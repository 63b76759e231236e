//! Closes the files that threads have left open by jumps out of signal handlers.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::file_notes::{Note, used_notes};
use super::hold::Holder;
use super::open_files::wait_for_writes;
use super::stack::stack_pointer;
use super::standard_numbers;
use super::time::sleep;

/// How often notes were left behind: by threads that have ended without closing what they had left, because that could not be told from
/// what others were opening.
static LEFT_BEHIND: AtomicU64 = AtomicU64::new(0);
/// What [`LEFT_BEHIND`] was when a thread began to close all of that and, later, was done. A jump out of that changes nothing here.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// How often a thread that ends tries again, and after how many nanoseconds.
const TRIES: u32 = 20;
const PAUSE: i64 = 50_000;
/// How many files a thread leaves open before it waits until it can be told what they are: the program may have few numbers.
const LEFT_MAX: usize = 4;
/// How often it tries again then. Who is opening a file may be waiting for a processor.
const TRIES_OF_MANY: u32 = 400;

/// Closes what the thread `lwp` left open by jumping out of a signal handler. `here` is where its stack is; with `None` the
/// thread is about to end, and nothing of it goes on.
pub fn close_abandoned(lwp: u32, here: Option<usize>) {
    let is_left = |holder: Holder| holder.lwp() == lwp && here.is_none_or(|here| holder.is_abandoned(lwp, here));
    let is_own = |note: &Note| !note.is_left_behind() && note.holder().is_some_and(is_left);
    let close_own = || close_those(&is_own, &is_left);
    let close_later = |_| {
        sleep(PAUSE);
        close_own()
    };
    let tries = || match here {
        None => TRIES,
        Some(_) if used_notes().filter(|note| is_own(note)).count() >= LEFT_MAX => TRIES_OF_MANY,
        Some(_) => 0,
    };
    let are_closed = close_own() || (0..tries()).any(close_later);
    if here.is_none() && !are_closed {
        used_notes().filter(|note| is_own(note)).for_each(Note::leave_behind);
        LEFT_BEHIND.fetch_add(1, Release);
    } else if LEFT_BEHIND.load(Relaxed) != CLOSED.load(Relaxed) {
        close_left_behind(lwp, &is_left);
    }
    standard_numbers::close_abandoned(lwp, is_left);
}

/// Closes what threads have left behind that have ended, in the thread `lwp`.
#[cold]
#[inline(never)]
fn close_left_behind(lwp: u32, is_left: &dyn Fn(Holder) -> bool) {
    // ORDERING: Acquire pairs with the Release of a thread that has left something: who sees that sees which notes they are.
    let left = LEFT_BEHIND.load(Acquire);
    let me = Holder::new(lwp, stack_pointer());
    for note in used_notes().filter(|note| note.adopt(me)) {
        if !note.reclaim(is_left) {
            note.leave_behind();
            LEFT_BEHIND.fetch_add(1, Release);
        }
    }
    CLOSED.fetch_max(left, Relaxed);
}

/// Closes the files of those notes; `false` if some of them cannot be told yet from what other threads are opening. `is_left`: of which other
/// holders nothing goes on.
fn close_those(are_meant: &dyn Fn(&Note) -> bool, is_left: &dyn Fn(Holder) -> bool) -> bool {
    let mut are_closed = true;
    for note in used_notes().filter(|note| note.holder().is_some() && are_meant(note)) {
        are_closed &= note.reclaim(is_left);
    }
    are_closed
}

/// Waits, up to a second, until no file is open that another thread has open now, so that each write that it was about to
/// make is done. What the calling thread `lwp` at `here` was about to write when a signal handler interrupted it fails.
pub fn finish_writes(lwp: u32, here: usize) {
    close_abandoned(lwp, Some(here));
    wait_for_writes(lwp);
}
