//! Work that a thread begins again and again, because jumps out of signal handlers leave it.
//!
//! A program may try a call anew until it returns in time. If the work in it takes longer, that would go on for ever.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::signals::BlockedSignals;

/// How often in a row work is begun that is left.
const LEFT_MAX: u32 = 30;
/// For how long it is not begun then, in nanoseconds. Each further time it is twice as long, `DOUBLINGS` times.
const PAUSE: u64 = 10_000_000;
const DOUBLINGS: u32 = 13;

/// How often in a row a piece of work was left. All zero is the beginning.
#[derive(Default)]
pub struct LeftWork {
    times: AtomicU32,
    /// The thread that has begun it last.
    lwp: AtomicU32,
    /// Not before this time does that thread begin it again.
    pause_until: AtomicU64,
    /// 1 if another one has tried meanwhile: it may have more time.
    has_other_tried: AtomicU32,
}

impl LeftWork {
    /// Whether the thread `lwp` is to do the work, which nobody is at, at this time. Then it is taken to be left until it is
    /// [`done`](LeftWork::note_done).
    pub fn begins(&self, lwp: u32, now: u64) -> bool {
        let times = self.times.load(Relaxed);
        if times >= LEFT_MAX {
            if now < self.pause_until.load(Relaxed) {
                return self.lwp.load(Relaxed) != lwp && self.has_other_tried.swap(1, Relaxed) == 0;
            }
            self.pause_until.store(now.saturating_add(PAUSE << (times - LEFT_MAX).min(DOUBLINGS)), Relaxed);
            self.has_other_tried.store(0, Relaxed);
        }
        self.lwp.store(lwp, Relaxed);
        self.times.store(times.saturating_add(1), Relaxed);
        true
    }

    /// Whether it was begun and is not done.
    pub fn is_left(&self) -> bool {
        self.times.load(Relaxed) != 0
    }

    /// The signals that wait until the work is done which this thread has begun now, if it was left before: once more it would be left
    /// again, where a timer is faster.
    pub fn block_signals(&self) -> Option<BlockedSignals> {
        let was_left = self.times.load(Relaxed) > 1;
        was_left.then(BlockedSignals::unless_others_get_them).flatten()
    }

    pub fn note_done(&self) {
        self.times.store(0, Relaxed);
        self.pause_until.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_again_and_again_is_begun_less_and_less_often() {
        let work = LeftWork::default();
        let begun =
            |from: u64, to: u64| (from..to).filter(|millisecond| work.begins(5, millisecond * 1_000_000)).count();
        assert_eq!(begun(1000, 1050), 30 + 2, "at 1030, and 10 ms later");
        assert_eq!(begun(1050, 1099), 1, "20 ms later, and then 40 ms later");
        assert_eq!(begun(1099, 1101), 1);
        assert!(begun(1101, 1_000_000) < 25);
        work.note_done();
        assert_eq!(begun(1_000_000, 1_000_031), 31);
        let others = [6, 7, 6].map(|lwp| work.begins(lwp, 1_000_031_000_000));
        assert_eq!(others, [true, false, false], "one other thread tries in each pause");
        assert_eq!(begun(1_000_032, 1_000_041), 1);
        assert!(work.begins(6, 1_000_042_000_000) && !work.begins(5, 1_000_043_000_000));
    }
}
