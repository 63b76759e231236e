//! What threads have announced: that they are about to change what descriptor numbers stand for (`host_numbers`).

use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::hold::Holder;
use super::open_files::{is_ours, may_be_open};
use super::process::marker_exists;
use super::standard_numbers::is_standard;
use super::time::{sleep, time_used_by};

/// For how long, in nanoseconds, one waits for the other before it looks again.
pub const PAUSE: i64 = 100_000;
/// How often it looks: for a second at least.
pub const PATIENCE: u32 = 10_000;
/// How often an opener looks before it asks whether the announcer has left its call.
const LOOKS_PER_QUESTION: u32 = 50;
/// More processor time than this, in nanoseconds, no call takes that closes or replaces descriptors.
const CALL_TIME: u64 = 5_000_000;
const LWP_AT: u32 = 32;
/// The bit of an announcement's word that says that the program has the number open, so that nobody else gets it, and nobody waits.
const IS_HELD: u64 = 1 << 63;

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

    pub fn contains(self, number: c_int) -> bool {
        let least = (self.0 & !AND_GREATER) as c_int;
        number == least || number > least && self.0 & AND_GREATER != 0
    }

    /// Whether it is one that is now that of a file of this library.
    pub fn is_ours(self) -> bool {
        self.0 & AND_GREATER == 0 && is_ours(self.0 as c_int)
    }

    /// Whether one of them is that of a standard descriptor.
    pub fn has_standard(self) -> bool {
        is_standard((self.0 & !AND_GREATER) as c_int)
    }

    /// Whether one is, or may become, that of a file which a thread has open for whom `is_asked`.
    pub fn may_be_open(self, is_asked: impl Fn(u32) -> bool) -> bool {
        may_be_open(|number| self.contains(number), is_asked, true)
    }
}

/// That a thread is about to change what numbers stand for.
struct Announcement {
    /// The LWP above the numbers, and [`IS_HELD`] above that; 0 if there is none.
    word: AtomicU64,
    /// Where the thread's stack was, as a [`Holder`].
    place: AtomicU64,
    /// The processor time that the thread had used when it began the host's call, or when the number was closed that it needs; `u64::MAX` before.
    began: AtomicU64,
    /// What `word` was when an opener had waited for a second, or the thread seemed to have left its call: so long as it is that, nobody waits
    /// for the call.
    passed_over: AtomicU64,
}

/// An announcement that was made.
pub struct Announced<'a> {
    announcement: &'a Announcement,
    word: u64,
}

/// More than so many calls at a time are not protected.
pub struct Announcements([Announcement; 16]);

/// The word of an announcement of the thread `lwp`.
fn word_of(lwp: u32, numbers: Numbers) -> u64 {
    u64::from(lwp) << LWP_AT | u64::from(numbers.0)
}

/// The thread whose announcement has this word.
fn announcer_of(word: u64) -> u32 {
    ((word & !IS_HELD) >> LWP_AT) as u32
}

/// Whether the program has the number open that this word announces, as far as was seen.
fn is_held(word: u64) -> bool {
    word & IS_HELD != 0
}

fn is_held_of(word: u64, numbers: Numbers) -> bool {
    is_held(word) && numbers.contains(word as u32 as c_int)
}

impl Announcements {
    pub const fn none() -> Announcements {
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
    pub fn awaited(&self, lwp: u32) -> impl Iterator<Item = Numbers> {
        let is_awaited =
            |(announcement, word): &(&Announcement, u64)| !is_held(*word) && !announcement.is_passed_over(*word);
        self.of_others(lwp).filter(is_awaited).map(|(_, word)| Numbers(word as u32))
    }

    /// Whether another thread than `lwp` has announced just this number, but is not waited for any more.
    #[inline]
    fn have_passed_over(&self, number: c_int, lwp: u32) -> bool {
        let is_meant = |word: u64| Numbers(word as u32) == Numbers::one(number);
        self.of_others(lwp).any(|(announcement, word)| announcement.is_passed_over(word) && is_meant(word))
    }

    /// Announces these numbers for a call of the thread `lwp`, the calling one with its stack at `here`; `None` if there is no room for that.
    pub fn announce(&self, numbers: Numbers, lwp: u32, here: usize) -> Option<Announced<'_>> {
        self.announce_word(word_of(lwp, numbers), lwp, here)
    }

    /// Announces a number that the program has open: nobody waits until [`Announcements::note_closed`].
    pub fn announce_held(&self, number: c_int, lwp: u32, here: usize) -> Option<Announced<'_>> {
        self.announce_word(IS_HELD | word_of(lwp, Numbers::one(number)), lwp, here)
    }

    fn announce_word(&self, word: u64, lwp: u32, here: usize) -> Option<Announced<'_>> {
        self.withdraw_own(lwp, here);
        let announcement = self.add(word).or_else(|| {
            self.pass_over_left(lwp);
            self.add(word)
        })?;
        announcement.began.store(u64::MAX, SeqCst);
        announcement.place.store(Holder::new(lwp, here).word(), Relaxed);
        Some(Announced { announcement, word })
    }

    fn add(&self, word: u64) -> Option<&Announcement> {
        let take = |place: &Announcement, before| place.word.compare_exchange(before, word, SeqCst, SeqCst).is_ok();
        let replace = |place: &Announcement| {
            let before = place.passed_over.load(SeqCst);
            before != 0 && take(place, before)
        };
        // Calls that may take long must not keep out those of numbers that this library may have.
        let replace_held = |place: &Announcement| {
            let before = place.word.load(SeqCst);
            is_held(before) && !is_held(word) && take(place, before)
        };
        let free = self.0.iter().find(|place| take(place, 0));
        let added = free.or_else(|| self.0.iter().find(|place| replace(place) || replace_held(place)));
        // Whoever has just taken it for the one before, which nobody waits for, has a note that is looked for next.
        added.inspect(|announcement| announcement.passed_over.store(0, SeqCst))
    }

    pub fn wait_until_none<T>(&self, lwp: u32, take: impl Fn() -> T, release: impl Fn(T)) -> T {
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
                self.pass_over_left(lwp);
            }
        }
        for (announcement, word) in self.of_others(lwp).filter(|(_, word)| !is_held(*word)) {
            announcement.passed_over.store(word, SeqCst);
        }
        taken
    }

    /// Whether a file of the thread `lwp` that has got this number leaves it: another thread has announced it as one that the program had open,
    /// or is not waited for any more and has not ended.
    #[inline]
    pub fn is_avoided(&self, number: c_int, lwp: u32) -> bool {
        self.note_closed(Numbers::one(number))
            || self.have_passed_over(number, lwp) && {
                self.pass_over_left(lwp);
                self.have_passed_over(number, lwp)
            }
    }

    /// Whether a call was announced of one of these numbers that the program has open.
    #[inline]
    pub fn are_held(&self, numbers: Numbers) -> bool {
        self.0.iter().any(|announcement| is_held_of(announcement.word.load(SeqCst), numbers))
    }

    /// Notes that the program has closed these numbers, or is about to. Who opens a file from now on waits for the calls that were announced when
    /// one was open; whether there are any.
    #[inline]
    pub fn note_closed(&self, numbers: Numbers) -> bool {
        let mut are_any = false;
        for announcement in &self.0 {
            let word = announcement.word.load(SeqCst);
            if is_held_of(word, numbers) {
                are_any = true;
                if announcement.word.compare_exchange(word, word & !IS_HELD, SeqCst, SeqCst).is_ok() {
                    announcement.count_time_of(announcer_of(word));
                }
            }
        }
        are_any
    }

    /// Forgets all of them, in a forked child.
    pub fn forget(&self) {
        // What there is none of is not written to: the kernel would copy its page.
        for announcement in self.0.iter().filter(|announcement| announcement.word.load(SeqCst) != 0) {
            announcement.word.store(0, SeqCst);
            announcement.began.store(u64::MAX, SeqCst);
        }
    }

    /// Passes over those of other threads than `lwp` that seem to have left their calls, and withdraws those of threads that have ended.
    #[cold]
    fn pass_over_left(&self, lwp: u32) {
        for (announcement, word) in self.of_others(lwp) {
            if !marker_exists(announcer_of(word)) {
                // Before somebody else announces something here.
                announcement.began.store(u64::MAX, SeqCst);
                let _ = announcement.word.compare_exchange(word, 0, SeqCst, SeqCst);
            } else if !is_held(word) && announcement.seems_left(announcer_of(word)) {
                announcement.passed_over.store(word, SeqCst);
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

impl Announced<'_> {
    /// The call, of the thread `lwp`, begins.
    pub fn begin_call(&self, lwp: u32) {
        self.announcement.count_time_of(lwp);
    }

    /// The call has returned.
    pub fn end(self) {
        self.announcement.began.store(u64::MAX, SeqCst);
        // Another one may have its place. What was held may be so no more, but not the other way round.
        for word in [self.word, self.word & !IS_HELD] {
            let _ = self.announcement.word.compare_exchange(word, 0, SeqCst, SeqCst);
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

    /// From now on the call, of the thread `lwp`, takes some of its processor time.
    fn count_time_of(&self, lwp: u32) {
        self.began.store(time_used_by(lwp).unwrap_or(u64::MAX), SeqCst);
    }

    fn is_passed_over(&self, word: u64) -> bool {
        self.passed_over.load(SeqCst) == word
    }

    /// Whether the thread `announcer`, which has made it, has used more time than its call takes: it has left that, or its handlers have
    /// interrupted it.
    fn seems_left(&self, announcer: u32) -> bool {
        let began = self.began.load(SeqCst);
        // It may have announced something else meanwhile.
        let has_computed = |now: u64| now.saturating_sub(began) > CALL_TIME && self.began.load(SeqCst) == began;
        time_used_by(announcer).is_ok_and(has_computed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread_id;

    #[test]
    fn a_call_concerns_one_number_or_all_from_one_on() {
        let concerned = |numbers: Numbers| [2, 3, 4, c_int::MAX].map(|number| numbers.contains(number));
        assert_eq!(concerned(Numbers::one(3)), [false, true, false, false]);
        assert_eq!(concerned(Numbers::from(3)), [false, true, true, true]);
    }

    #[test]
    fn nobody_waits_for_a_thread_that_is_gone_or_goes_on_computing() {
        let announcements = Announcements::none();
        let me = thread_id();
        let announced = announcements.announce(Numbers::one(3), me, 1).unwrap();
        let gone = announcements.announce(Numbers::one(4), u32::MAX >> 10, 1).unwrap();
        let awaited = || announcements.awaited(1).collect::<Vec<_>>();
        announcements.pass_over_left(1);
        assert_eq!(awaited(), [Numbers::one(3)], "no thread has that ID; the other one waits");
        assert_eq!(gone.announcement.word.load(SeqCst), 0);
        announced.begin_call(me);
        announcements.pass_over_left(1);
        assert_eq!(awaited(), [Numbers::one(3)], "it has just begun");
        announced.announcement.began.store(0, SeqCst);
        while time_used_by(me).unwrap() <= CALL_TIME {}
        announcements.pass_over_left(1);
        assert_eq!(awaited(), []);
        assert!(announcements.is_avoided(3, 1), "handlers of its may have computed");
        announced.end();
        assert!(!announcements.is_avoided(3, 1));
    }

    #[test]
    fn nobody_waits_for_a_number_that_is_open_until_it_is_closed() {
        let announcements = Announcements::none();
        let awaited = |lwp| announcements.awaited(lwp).collect::<Vec<_>>();
        let announced = announcements.announce_held(3, 2, 2).unwrap();
        assert_eq!(awaited(1), []);
        assert!(!announcements.note_closed(Numbers::from(4)) && !announcements.is_avoided(4, 1));
        assert!(announcements.is_avoided(3, 1), "who has got it leaves it");
        assert_eq!(awaited(1), [Numbers::one(3)]);
        announced.end();
        assert_eq!(awaited(1), []);
        announcements.announce_held(3, 2, 2).unwrap().end();
        assert!(!announcements.are_held(Numbers::from(0)));
    }

    #[test]
    fn calls_that_nobody_waits_for_keep_no_others_out() {
        let announcements = Announcements::none();
        let (me, gone) = (thread_id(), u32::MAX >> 10);
        let held_by = |lwp| (0..).map_while(|number| announcements.announce_held(number, lwp, 2)).count();
        assert_eq!([gone, me].map(held_by), [announcements.0.len(); 2], "what a gone thread has left makes room");
        let awaited: Vec<_> = (0..).map_while(|number| announcements.announce(Numbers::one(number), 3, 3)).collect();
        assert_eq!(awaited.len(), announcements.0.len());
        assert!(!announcements.are_held(Numbers::from(0)));
    }

    /// A handler that jumps out of the host's call, or a cancellation, leaves it behind.
    #[test]
    fn nobody_waits_long_for_an_announcement_that_stays() {
        let announcements = Announcements::none();
        let word = word_of(thread_id(), Numbers::one(3));
        let announcement = announcements.add(word).unwrap();
        assert_eq!(announcements.awaited(1).count(), 1);
        announcements.wait_until_none(1, || (), |()| ());
        assert_eq!(announcements.awaited(1).count(), 0);
        let passed_over = |announcements: &Announcements, number| announcements.have_passed_over(number, 1);
        assert_eq!([2, 3, 4].map(|number| passed_over(&announcements, number)), [false, true, false]);
        for _ in 1..announcements.0.len() {
            announcements.add(word).unwrap();
        }
        assert!(core::ptr::eq(announcements.add(word).unwrap(), announcement), "the last place that nobody waits for");
        assert!(announcements.add(word).is_none());
        assert!(!passed_over(&announcements, 3));
    }
}
