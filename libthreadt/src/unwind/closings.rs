//! Libraries that the program closes: an address may be another library's afterwards.
//!
//! Between the moment at which a library is unmapped and the return of `dlclose`, another thread may open one that looks alike at the
//! same address, and call it. So as long as any thread closes a library, no rule is taken from the cache, and none put into it. A
//! closing that never ends costs that, and no more: a destructor has left it by a jump or has ended its thread, and the linker's lock
//! stays taken, too. A forked child begins without the closings of its parent.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The closings of this process.
#[unsafe(link_section = "inherited")]
pub static CLOSINGS: Closings = Closings::new();

pub struct Closings {
    /// How many are in progress, in the lower 16 bits; above them a sum that changes when something may have been unmapped. One word,
    /// so that both are of one time.
    counts: AtomicU64,
    /// How often this process, and those that it was forked from, have begun without closings.
    beginnings: AtomicU64,
}

const IN_PROGRESS: u64 = 0xffff;
/// Added each time. Two sums differ in many bits, unlike two rules: an entry of their cache that is being changed has not by chance
/// the key of another time.
const UNMAPPED: u64 = 0x9e37_79b9_7f4b << 16;

/// A closing in progress.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// What `beginnings` was when it began.
    beginning: u64,
}

impl Closings {
    const fn new() -> Closings {
        Closings { counts: AtomicU64::new(0), beginnings: AtomicU64::new(0) }
    }

    /// The calling thread is about to close a library. [`Closings::end`] follows, unless the closing never ends.
    pub fn begin(&self) -> Closing {
        let beginning = self.beginnings.load(Relaxed);
        // ORDERING: Relaxed; the linker's lock, which closing takes next, is between this and whoever opens a library where this
        // one was.
        self.counts.fetch_add(1, Relaxed);
        Closing { beginning }
    }

    /// The closing has ended. `is_unmapped`: a library may be gone.
    pub fn end(&self, closing: Closing, is_unmapped: bool) {
        // A child that was forked within it does not count it.
        let counted = u64::from(closing.beginning == self.beginnings.load(Relaxed));
        let unmapped = if is_unmapped { UNMAPPED } else { 0 };
        // ORDERING: Release, for what the caller has forgotten of the library.
        self.counts.fetch_add(unmapped.wrapping_sub(counted), Release);
    }

    /// In a forked child: the threads of its parent that were closing libraries are not there.
    pub fn forget(&self) {
        self.beginnings.fetch_add(1, Relaxed);
        let counts = self.counts.load(Relaxed);
        self.counts.store((counts & !IN_PROGRESS).wrapping_add(UNMAPPED), Relaxed);
    }

    /// A number that changes when something may have been unmapped; `None` while a library is being closed.
    #[inline(always)]
    pub fn number(&self) -> Option<u64> {
        // ORDERING: Acquire pairs with the Release of whoever has ended a closing.
        let counts = self.counts.load(Acquire);
        (counts & IN_PROGRESS == 0).then_some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closings of several threads overlap, and a child is forked within two.
    #[test]
    fn closings_in_progress_are_counted() {
        let closings = Closings::new();
        let before = closings.number();
        assert!(before.is_some());
        let (first, second) = (closings.begin(), closings.begin());
        assert_eq!(closings.number(), None);
        closings.end(first, false);
        assert_eq!(closings.number(), None);
        closings.end(second, false);
        assert_eq!(closings.number(), before);
        closings.end(closings.begin(), true);
        assert!(closings.number().is_some_and(|number| Some(number) != before));

        let (never_ended, own) = (closings.begin(), closings.begin());
        closings.forget();
        let in_child = closings.number();
        assert!(in_child.is_some());
        let of_child = closings.begin();
        closings.end(own, true);
        assert_eq!(closings.number(), None);
        closings.end(of_child, false);
        assert!(closings.number().is_some_and(|number| Some(number) != in_child), "{never_ended:?}");
    }
}
