//! Descriptor numbers that the host is about to close, or to give to files of its own (`dup2`), whatever they are now.
//!
//! A file of this library that had such a number at that moment would be closed, and what is written to it would go to the
//! file that has the number next: the host's, or another of this library's. So a hook first announces the number, then waits until no file of this library has it or may get it. Who
//! opens a file takes a note first (`open_files`), then looks for an announcement, and opens none while there is one. Either
//! the opener learns of the announcement, or the hook of the note.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::open_files::{has_unnoted, may_be_open};
use super::time::sleep;

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

    /// Whether one is, or may become, that of a file which a thread has open for whom `is_asked`.
    fn may_be_open(self, is_asked: impl Fn(u32) -> bool) -> bool {
        may_be_open(|number| self.contains(number), is_asked, true)
    }
}

/// The announcements: the LWP above the numbers, 0 where there is none.
static ANNOUNCED: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
const LWP_AT: u32 = 32;
/// For how long, in nanoseconds, one waits for the other before it looks again.
const PAUSE: i64 = 100_000;
/// How often a hook looks whether a file of this library still has an announced number: for a second. If the thread that
/// is about to write to it does not run, it does not help the host to wait for it longer.
const HOOK_PATIENCE: u32 = 10_000;
/// How often it looks for files that are being opened, which seldom get just this number.
const OPENING_PATIENCE: u32 = 100;
/// How often an opener looks whether an announcement is gone.
const OPENER_PATIENCE: u32 = 50;

/// The numbers that other threads than `lwp` have announced.
fn announced(lwp: u32) -> impl Iterator<Item = Numbers> {
    // ORDERING: SeqCst, as what `may_be_open` reads, so that of two threads one sees what the other has written.
    let words = ANNOUNCED.iter().map(|place| place.load(SeqCst));
    words.filter(move |word| *word != 0 && (word >> LWP_AT) as u32 != lwp).map(|word| Numbers(word as u32))
}

/// Whether another thread than `lwp` has announced a number.
pub fn is_announced(lwp: u32) -> bool {
    announced(lwp).next().is_some()
}

/// Calls `take`, which takes a note, again and again until no other thread than `lwp`, the calling one, has announced a number
/// after that. In between `release` gives it back.
///
/// An announcement that stays for some milliseconds is withdrawn. It may be left over: the host's call was cancelled, or a
/// handler jumped out of it. Or the call blocks, as the `dup2` that closes a socket does; then it has taken effect, because
/// the kernel first changes its table and then waits.
pub fn without_announcement<T>(lwp: u32, take: impl Fn() -> T, release: impl Fn(T)) -> T {
    let mut taken = take();
    for _ in 0..OPENER_PATIENCE {
        if !is_announced(lwp) {
            return taken;
        }
        release(taken);
        // A hook that waits for another file of this thread goes on only when that is closed, which is later.
        let is_awaited = announced(lwp).any(|numbers| !numbers.may_be_open(|holder| holder == lwp));
        if is_awaited {
            sleep(PAUSE);
        }
        taken = take();
        if !is_awaited {
            return taken;
        }
    }
    withdraw(lwp);
    taken
}

/// Withdraws what other threads than `lwp` have announced.
#[cold]
fn withdraw(lwp: u32) {
    for place in &ANNOUNCED {
        let word = place.load(SeqCst);
        if word != 0 && (word >> LWP_AT) as u32 != lwp {
            let _ = place.compare_exchange(word, 0, SeqCst, SeqCst);
        }
    }
}

/// Whether this number is, or may become, that of a file of this library.
#[inline]
pub fn may_be_ours(number: c_int) -> bool {
    Numbers::one(number).may_be_open(|_| true) || has_unnoted()
}

/// Calls `change`, which closes these numbers or gives them to the host, once no other thread than `lwp`, the calling one,
/// has a file of this library there or opens one.
pub fn with_numbers<T>(numbers: Numbers, lwp: u32, change: impl FnOnce() -> T) -> T {
    let word = u64::from(lwp) << LWP_AT | u64::from(numbers.0);
    // More than so many calls at a time are not protected.
    let place = ANNOUNCED.iter().find(|place| place.compare_exchange(0, word, SeqCst, SeqCst).is_ok());
    for turn in 0..HOOK_PATIENCE {
        let may_be_opened = turn < OPENING_PATIENCE;
        let is_another = |holder| holder != lwp;
        let is_awaited = match may_be_opened {
            true => has_unnoted() || numbers.may_be_open(is_another),
            false => may_be_open(|number| numbers.contains(number), is_another, false),
        };
        if !is_awaited {
            break;
        }
        sleep(PAUSE);
    }
    let result = change();
    if let Some(place) = place {
        // An opener may have withdrawn it.
        let _ = place.compare_exchange(word, 0, SeqCst, SeqCst);
    }
    result
}

/// Forgets what other threads have announced, in a forked child.
pub fn forget() {
    ANNOUNCED.iter().for_each(|place| place.store(0, SeqCst));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_concerns_one_number_or_all_from_one_on() {
        let concerned = |numbers: Numbers| [2, 3, 4, c_int::MAX].map(|number| numbers.contains(number));
        assert_eq!(concerned(Numbers::one(3)), [false, true, false, false]);
        assert_eq!(concerned(Numbers::from(3)), [false, true, true, true]);
    }

    /// A handler that jumps out of the host's call, or a cancellation, leaves it behind.
    #[test]
    fn an_announcement_that_stays_is_withdrawn() {
        let word = 1 << LWP_AT | u64::from(Numbers::from(3).0);
        let place = ANNOUNCED.iter().find(|place| place.compare_exchange(0, word, SeqCst, SeqCst).is_ok()).unwrap();
        without_announcement(2, || (), |()| ());
        assert_ne!(place.load(SeqCst), word);
    }
}
