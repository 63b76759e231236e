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
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::hold::Holder;
use super::open_files::{Openings, has_unnoted, is_kept, is_ours, may_be_open, while_suspended};
use super::openers;
use super::process::{process_id, thread_exists};
use super::stack::stack_pointer;
use super::standard_numbers::is_standard;
use super::time::{sleep, time_used_by};

/// The numbers that a call concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers(u32);

/// The bit of a [`Numbers`] that stands for all greater ones, too: no number has it.
const AND_GREATER: u32 = 1 << 31;

impl Numbers {
    pub fn one(number: c_int) -> Numbers {
        Numbers(number as u32 & !AND_GREATER)
    }

    pub fn from(least: c_int) -> Numbers {
        Numbers(least as u32 | AND_GREATER)
    }

    fn contains(self, number: c_int) -> bool {
        let least = (self.0 & !AND_GREATER) as c_int;
        number == least || number > least && self.0 & AND_GREATER != 0
    }

    /// Whether it is one that is now that of a file of this library.
    fn is_ours(self) -> bool {
        self.0 & AND_GREATER == 0 && is_ours(self.0 as c_int)
    }

    /// Whether one of them is that of a standard descriptor.
    fn has_standard(self) -> bool {
        is_standard((self.0 & !AND_GREATER) as c_int)
    }

    /// Whether one is, or may become, that of a file which a thread has open for whom `is_asked`.
    fn may_be_open(self, is_asked: impl Fn(u32) -> bool) -> bool {
        may_be_open(|number| self.contains(number), is_asked, true)
    }
}

/// That a thread is about to change what numbers stand for.
struct Announcement {
    /// The LWP above the numbers; 0 if there is none.
    word: AtomicU64,
    /// Where the thread's stack was, as a [`Holder`].
    place: AtomicU64,
    /// The processor time that the thread had used when it began the host's call; `u64::MAX` before.
    began: AtomicU64,
    /// What `word` was when an opener had waited for a second: so long as it is that, nobody waits for the call.
    passed_over: AtomicU64,
}

/// More than so many calls at a time are not protected.
struct Announcements([Announcement; 16]);

static ANNOUNCEMENTS: Announcements = Announcements::none();
const LWP_AT: u32 = 32;
/// For how long, in nanoseconds, one waits for the other before it looks again.
const PAUSE: i64 = 100_000;
/// How often it looks: for a second at least.
const PATIENCE: u32 = 10_000;
/// How often a hook looks for files that are being opened, which seldom get just this number.
const OPENING_PATIENCE: u32 = 100;
/// How often who has closed a number looks before it sleeps.
const LOOKS_BEFORE_PAUSES: u32 = 300;
/// How often an opener looks before it asks whether the announcer has left its call.
const LOOKS_PER_QUESTION: u32 = 50;
/// More processor time than this, in nanoseconds, no call takes that closes or replaces descriptors.
const CALL_TIME: u64 = 5_000_000;

/// Whether another thread than `lwp` has announced a number.
pub fn is_announced(lwp: u32) -> bool {
    ANNOUNCEMENTS.awaited(lwp).next().is_some()
}

/// Whether another thread than `lwp` has announced this number long ago, and may still be changing what it stands for.
pub fn is_avoided(number: c_int, lwp: u32) -> bool {
    ANNOUNCEMENTS.have_passed_over(number, lwp) && {
        ANNOUNCEMENTS.withdraw_left(lwp);
        ANNOUNCEMENTS.have_passed_over(number, lwp)
    }
}

/// Calls `take`, which takes a note, again and again until no other thread than `lwp`, the calling one, has announced a number
/// after that. In between `release` gives it back.
///
/// An announcement that stays is withdrawn if it is left over: the host's call was cancelled, or a handler jumped out of it, and its thread is
/// gone or goes on computing. Or the call blocks, as the closing of many descriptors may do, or that within `freopen`. But the thread may also be
/// waiting for a processor; only a second tells that from one which sleeps elsewhere, and then the announcement is passed over.
pub fn without_announcement<T>(lwp: u32, take: impl Fn() -> T, release: impl Fn(T)) -> T {
    ANNOUNCEMENTS.wait_until_none(lwp, take, release)
}

/// The thread whose announcement has this word.
fn announcer_of(word: u64) -> u32 {
    (word >> LWP_AT) as u32
}

impl Announcements {
    const fn none() -> Announcements {
        Announcements([const { Announcement::none() }; 16])
    }

    /// Those of other threads than `lwp`, with their words.
    #[inline]
    fn of_others(&self, lwp: u32) -> impl Iterator<Item = (&Announcement, u64)> {
        // ORDERING: SeqCst, as what `may_be_open` reads, so that of two threads one sees what the other has written.
        let words = self.0.iter().map(|announcement| (announcement, announcement.word.load(SeqCst)));
        words.filter(move |(_, word)| *word != 0 && announcer_of(*word) != lwp)
    }

    /// The numbers that other threads than `lwp` have announced, and that this one waits for.
    #[inline]
    fn awaited(&self, lwp: u32) -> impl Iterator<Item = Numbers> {
        let is_awaited = |(announcement, word): &(&Announcement, u64)| !announcement.is_passed_over(*word);
        self.of_others(lwp).filter(is_awaited).map(|(_, word)| Numbers(word as u32))
    }

    /// Whether another thread than `lwp` has announced the number, but is not waited for any more.
    #[inline]
    fn have_passed_over(&self, number: c_int, lwp: u32) -> bool {
        let is_meant = |word: u64| Numbers(word as u32).contains(number);
        self.of_others(lwp).any(|(announcement, word)| announcement.is_passed_over(word) && is_meant(word))
    }

    /// Makes one if there is room for it.
    fn add(&self, word: u64) -> Option<&Announcement> {
        let take = |place: &Announcement, before| place.word.compare_exchange(before, word, SeqCst, SeqCst).is_ok();
        let replace = |place: &Announcement| {
            let before = place.passed_over.load(SeqCst);
            before != 0 && take(place, before)
        };
        let free = self.0.iter().find(|place| take(place, 0));
        let added = free.or_else(|| self.0.iter().find(|place| replace(place)));
        // Whoever has just taken it for the one before, which nobody waits for, has a note that is looked for next.
        added.inspect(|announcement| announcement.passed_over.store(0, SeqCst))
    }

    fn wait_until_none<T>(&self, lwp: u32, take: impl Fn() -> T, release: impl Fn(T)) -> T {
        let taken = take();
        if self.awaited(lwp).next().is_none() {
            return taken;
        }
        self.wait_with(taken, lwp, take, release)
    }

    // Not inlined, so that each opening of a file takes less of the stack.
    #[cold]
    #[inline(never)]
    fn wait_with<T>(&self, mut taken: T, lwp: u32, take: impl Fn() -> T, release: impl Fn(T)) -> T {
        for turn in 1..PATIENCE {
            if self.awaited(lwp).next().is_none() {
                return taken;
            }
            release(taken);
            // A hook that waits for another file of this thread goes on only when that is closed, which is later.
            let is_awaited = self.awaited(lwp).any(|numbers| !numbers.may_be_open(|holder| holder == lwp));
            if is_awaited {
                sleep(PAUSE);
            }
            taken = take();
            if !is_awaited {
                return taken;
            }
            if turn % LOOKS_PER_QUESTION == 0 {
                self.withdraw_left(lwp);
            }
        }
        for (announcement, word) in self.of_others(lwp) {
            announcement.passed_over.store(word, SeqCst);
        }
        taken
    }

    /// Withdraws those of other threads than `lwp` that have certainly left their calls.
    #[cold]
    fn withdraw_left(&self, lwp: u32) {
        for (announcement, word) in self.of_others(lwp) {
            if announcement.is_left(announcer_of(word)) {
                // Before somebody else announces something here.
                announcement.began.store(u64::MAX, SeqCst);
                let _ = announcement.word.compare_exchange(word, 0, SeqCst, SeqCst);
            }
        }
    }

    /// Withdraws what the thread `lwp`, the calling one, with its stack at `here`, has announced for calls that it has left by
    /// a jump.
    fn withdraw_own(&self, lwp: u32, here: usize) {
        for announcement in &self.0 {
            let word = announcement.word.load(SeqCst);
            let holder = Holder::from_word(announcement.place.load(Relaxed));
            if announcer_of(word) == lwp
                && holder.is_some_and(|holder| holder.lwp() == lwp && holder.is_abandoned(lwp, here))
            {
                let _ = announcement.word.compare_exchange(word, 0, SeqCst, SeqCst);
            }
        }
    }
}

impl Announcement {
    const fn none() -> Announcement {
        Announcement {
            word: AtomicU64::new(0),
            place: AtomicU64::new(0),
            began: AtomicU64::new(u64::MAX),
            passed_over: AtomicU64::new(0),
        }
    }

    fn is_passed_over(&self, word: u64) -> bool {
        self.passed_over.load(SeqCst) == word
    }

    /// Whether the thread `announcer`, which has made it, has certainly left its call.
    fn is_left(&self, announcer: u32) -> bool {
        let began = self.began.load(SeqCst);
        match time_used_by(announcer) {
            // It may have announced something else meanwhile.
            Ok(now) => now.saturating_sub(began) > CALL_TIME && self.began.load(SeqCst) == began,
            Err(_) => !thread_exists(process_id(), announcer),
        }
    }
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
    let word = u64::from(lwp) << LWP_AT | u64::from(numbers.0);
    let here = stack_pointer();
    ANNOUNCEMENTS.withdraw_own(lwp, here);
    let announcement = ANNOUNCEMENTS.add(word);
    if let Some(announcement) = announcement {
        announcement.place.store(Holder::new(lwp, here).word(), Relaxed);
    }
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
        if let Some(announcement) = announcement {
            announcement.began.store(time_used_by(lwp).unwrap_or(u64::MAX), SeqCst);
        }
        let mut result = change();
        while is_busy(&result) && is_awaited(true) && turns.next().is_some() {
            sleep(PAUSE);
            result = change();
        }
        result
    };
    let result = while_suspended(lwp, here, |number| numbers.contains(number), wait_and_change);
    if let Some(announcement) = announcement {
        announcement.began.store(u64::MAX, SeqCst);
        // An opener may have withdrawn it.
        let _ = announcement.word.compare_exchange(word, 0, SeqCst, SeqCst);
    }
    result
}

/// Forgets what other threads have announced, in a forked child.
pub fn forget() {
    // What there is none of is not written to: the kernel would copy its page.
    for announcement in ANNOUNCEMENTS.0.iter().filter(|announcement| announcement.word.load(SeqCst) != 0) {
        announcement.word.store(0, SeqCst);
        announcement.began.store(u64::MAX, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;
    use crate::sys::{standard_numbers, thread_id};

    #[test]
    fn a_call_concerns_one_number_or_all_from_one_on() {
        let concerned = |numbers: Numbers| [2, 3, 4, c_int::MAX].map(|number| numbers.contains(number));
        assert_eq!(concerned(Numbers::one(3)), [false, true, false, false]);
        assert_eq!(concerned(Numbers::from(3)), [false, true, true, true]);
    }

    #[test]
    fn only_a_thread_that_is_gone_or_goes_on_computing_has_left_its_call() {
        let announcement = Announcement::none();
        let me = thread_id();
        assert!(!announcement.is_left(me), "it waits");
        assert!(announcement.is_left(u32::MAX >> 10), "no thread has that ID");
        announcement.began.store(time_used_by(me).unwrap(), SeqCst);
        assert!(!announcement.is_left(me), "it has just begun");
        announcement.began.store(0, SeqCst);
        while time_used_by(me).unwrap() <= CALL_TIME {}
        assert!(announcement.is_left(me));
    }

    /// A handler that jumps out of the host's call, or a cancellation, leaves it behind.
    #[test]
    fn nobody_waits_long_for_an_announcement_that_stays() {
        let announcements = Announcements::none();
        let word = u64::from(thread_id()) << LWP_AT | u64::from(Numbers::from(3).0);
        let announcement = announcements.add(word).unwrap();
        assert_eq!(announcements.awaited(1).count(), 1);
        announcements.wait_until_none(1, || (), |()| ());
        assert_eq!(announcements.awaited(1).count(), 0);
        let passed_over = |announcements: &Announcements, number| announcements.have_passed_over(number, 1);
        assert_eq!([2, 3, 4].map(|number| passed_over(&announcements, number)), [false, true, true]);
        for _ in 1..announcements.0.len() {
            announcements.add(word).unwrap();
        }
        assert!(core::ptr::eq(announcements.add(word).unwrap(), announcement), "the last place that nobody waits for");
        assert!(announcements.add(word).is_none());
        assert!(!passed_over(&announcements, 3));
    }

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
