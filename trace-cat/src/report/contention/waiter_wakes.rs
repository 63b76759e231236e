//! Whether those who wait for a futex wake each other, as the waiters of a lock do.
//!
//! A lock is released by threads that wait for it at other times. Those who wait for work are woken by others, who never wait there. So
//! the wake-ups of a futex are counted, and those by threads that have waited for it. Of each thread the last futexes are known for
//! which it has waited, so that nothing grows with threads and futexes: with one lock inside another these are both.

/// Stands for no thread, for more than one, and for no futex.
const NONE: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// The waits for a futex that are idleness, and the wake-ups since the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterWakes {
    /// How many waits have ended.
    pub waits: u32,
    /// How many calls woke somebody.
    pub wakes: u32,
    /// How many of these were by threads that had waited there.
    pub by_waiters: u32,
    /// The only thread that has waited.
    waiter: u32,
}

impl WaiterWakes {
    pub const NONE: WaiterWakes = WaiterWakes { waits: 0, wakes: 0, by_waiters: 0, waiter: NONE };

    /// Takes the end of a thread's wait.
    pub fn end_wait(&mut self, thread: u32) {
        self.waits = self.waits.saturating_add(1);
        self.waiter = if [NONE, thread].contains(&self.waiter) { thread } else { SEVERAL };
    }

    /// Takes a call that woke somebody. What was before the first wait does not count.
    pub fn wake(&mut self, is_by_waiter: bool) {
        if self.waits > 0 {
            self.wakes = self.wakes.saturating_add(1);
            self.by_waiters = self.by_waiters.saturating_add(is_by_waiter.into());
        }
    }

    /// Whether more than one thread has waited.
    pub fn has_several_waiters(&self) -> bool {
        self.waiter == SEVERAL
    }
}

/// The last futexes that a thread has waited for, the latest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitedWords([u32; 4]);

impl WaitedWords {
    pub const NONE: WaitedWords = WaitedWords([NONE; 4]);

    /// Takes a wait for a futex.
    pub fn add(&mut self, object: u32) {
        let place = self.0.iter().position(|known| *known == object).unwrap_or(self.0.len() - 1);
        self.0[..=place].rotate_right(1);
        self.0[0] = object;
    }

    /// Whether a futex is one of them.
    pub fn contains(&self, object: u32) -> bool {
        self.0.contains(&object)
    }
}
