//! Descriptor numbers that the host is about to close, or to give to files of its own (`dup2`), whatever they are now.
//!
//! A file of this library that had such a number at that moment would be closed, and what is written to it would go to the
//! file that has the number next: the host's, or another of this library's. So a hook first announces the number, then waits
//! until no file of this library has it or may get it. Who opens a file takes a note first (`open_files`), then looks for an
//! announcement, and opens none while there is one. Either the opener learns of the announcement, or the hook of the note.
//!
//! Each waits for the other for a second at most: so long a thread may wait for a processor, but one that is stopped must not
//! stop all. Who opens a file after that does not keep it at an announced number.

use core::ffi::c_int;

pub use super::announcements::Numbers;
use super::announcements::{Announcements, PATIENCE, PAUSE};
use super::open_files::{Openings, has_unnoted, is_kept, may_be_open, while_suspended};
use super::openers;
use super::stack::stack_pointer;
use super::standard_numbers::is_standard;
use super::time::sleep;

static ANNOUNCEMENTS: Announcements = Announcements::none();
/// How often a hook looks for files that are being opened, which seldom get just this number.
const OPENING_PATIENCE: u32 = 100;
/// How often who has closed a number looks before it sleeps.
const LOOKS_BEFORE_PAUSES: u32 = 300;

/// Whether another thread than `lwp` has announced a number.
pub fn is_announced(lwp: u32) -> bool {
    ANNOUNCEMENTS.awaited(lwp).next().is_some()
}

/// Whether a file of the thread `lwp` that has got this number leaves it at once: another thread has announced it long ago, or when the program
/// had it open, and may still be changing what it stands for.
pub fn is_avoided(number: c_int, lwp: u32) -> bool {
    ANNOUNCEMENTS.is_avoided(number, lwp)
}

/// Whether a thread is in [`while_held`] with one of these numbers.
#[inline]
pub fn are_held(numbers: Numbers) -> bool {
    ANNOUNCEMENTS.are_held(numbers)
}

/// Notes that the program has closed these numbers, or is about to: see [`while_held`].
pub fn note_closed(numbers: Numbers) {
    ANNOUNCEMENTS.note_closed(numbers);
}

/// Calls `take`, which takes a note, again and again until no other thread than `lwp`, the calling one, has announced a number
/// after that. In between `release` gives it back.
///
/// An announcement that stays is passed over. It may be left over: the host's call was cancelled, or a handler jumped out of it, and then its
/// thread is gone or goes on computing. Or the call blocks, as the closing of many descriptors may do, or that within `freopen`. But the thread
/// may also be waiting for a processor; only a second tells that from one which sleeps elsewhere.
pub fn without_announcement<T>(lwp: u32, take: impl Fn() -> T, release: impl Fn(T)) -> T {
    ANNOUNCEMENTS.wait_until_none(lwp, take, release)
}

/// Whether this number is, or may become, that of a file of this library, also because it is free once the host has closed it.
#[inline]
pub fn may_be_ours(number: c_int) -> bool {
    is_standard(number) || Numbers::one(number).may_be_open(|_| true) || has_unnoted()
}

/// Waits until nobody takes this number, which the host has closed, for that of a file which was opened with it after `before`. `lwp` is the
/// calling thread's, with its stack at `place`.
#[cold]
pub fn wait_for_files_at(number: c_int, before: &Openings, lwp: u32, place: usize) {
    // What is opened from here on is not what the host has closed.
    let end = Openings::so_far();
    let is_awaited =
        |opening| before.later_may_have(&end, number, lwp, opening) && !is_kept(number) || opening && has_unnoted();
    let wait = || {
        // Mostly it is a matter of microseconds.
        if (0..LOOKS_BEFORE_PAUSES).any(|_| !is_awaited(true)) {
            return;
        }
        let mut turns = 0..PATIENCE;
        while turns.next().is_some_and(|turn| is_awaited(turn < OPENING_PATIENCE)) {
            sleep(PAUSE);
        }
    };
    while_suspended(lwp, place, |_| false, wait);
}

/// Calls `change`, which closes these numbers or gives them to the host, once no other thread than `lwp`, the calling one,
/// has a file of this library there or opens one; and again as long as `is_busy` after it, because somebody is opening one
/// after all.
pub fn with_numbers<T>(numbers: Numbers, lwp: u32, change: impl Fn() -> T, is_busy: impl Fn(&T) -> bool) -> T {
    let here = stack_pointer();
    let announced = ANNOUNCEMENTS.announce(numbers, lwp, here);
    let is_awaited = |opening: bool| {
        let is_another = |holder| holder != lwp;
        opening && has_unnoted() || may_be_open(|number| numbers.contains(number), is_another, opening)
    };
    // A placeholder goes when its owner closes the number, which would be the host's by then.
    let is_placed = || numbers.has_standard() && openers::contain_others(lwp);
    let wait_and_change = || {
        let mut turns = 0..PATIENCE;
        // Where a handler has interrupted somebody who has got the number, it is noted only when that returns.
        let may_be_got = |turn| turn < OPENING_PATIENCE || numbers.is_ours();
        while turns.next().is_some_and(|turn| is_awaited(may_be_got(turn)) || is_placed()) {
            sleep(PAUSE);
        }
        if turns.is_empty() && is_placed() {
            openers::give_up_waiting();
        }
        if let Some(announced) = &announced {
            announced.begin_call(lwp);
        }
        let mut result = change();
        while is_busy(&result) && is_awaited(true) && turns.next().is_some() {
            sleep(PAUSE);
            result = change();
        }
        result
    };
    let result = while_suspended(lwp, here, |number| numbers.contains(number), wait_and_change);
    if let Some(announced) = announced {
        announced.end();
    }
    result
}

/// Makes a `call` of the thread `lwp`, the calling one, that changes what this number stands for, and may take any time. While the program has
/// it open nothing of this library gets it, and nobody waits. Another thread of the program may close it meanwhile: whose file gets it then
/// gives it back, and others wait from then on.
pub fn while_held<T>(number: c_int, lwp: u32, call: impl FnOnce() -> T) -> T {
    let announced = ANNOUNCEMENTS.announce_held(number, lwp, stack_pointer());
    let result = call();
    if let Some(announced) = announced {
        announced.end();
    }
    result
}

/// Forgets what other threads have announced, in a forked child.
pub fn forget() {
    ANNOUNCEMENTS.forget();
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;
    use core::sync::atomic::Ordering::SeqCst;

    use super::*;
    use crate::sys::{standard_numbers, thread_id};

    /// A thread may lose its processor for as long between looking at its placeholder and closing the number.
    #[test]
    fn a_standard_number_changes_only_when_nobody_has_placeholders() {
        let stage = AtomicU32::new(0);
        let wait_for = |wanted| {
            while stage.load(SeqCst) != wanted {
                sleep(PAUSE);
            }
        };
        let open = || {
            stage.store(1, SeqCst);
            wait_for(2);
            sleep(50_000_000);
            stage.store(3, SeqCst);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                standard_numbers::note_closing();
                standard_numbers::while_taken(thread_id(), open);
            });
            wait_for(1);
            let stage_of = |number| with_numbers(Numbers::one(number), thread_id(), || stage.load(SeqCst), |_| false);
            assert_eq!(stage_of(3), 1);
            stage.store(2, SeqCst);
            assert_eq!(stage_of(0), 3);
        });
    }
}
