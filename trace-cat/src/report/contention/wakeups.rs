//! Which signal, post or wake-up ended which wait.
//!
//! A wait was ended by the earliest one since it began that no wait took which returned earlier. A broadcast ends all waits that
//! had begun.

use std::collections::VecDeque;

/// A signal, broadcast, post or wake-up that threads waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    pub time: u64,
    pub thread: u32,
    pub site: u32,
    /// How many waits it can still end.
    pub remaining: u32,
    /// How many it could end.
    pub capacity: u32,
    /// The key under which the mutex of the waits watches its holders from this time on.
    pub watch: Option<(u32, u64)>,
}

/// A thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleWait {
    pub thread: u32,
    pub entry: u64,
    /// The mutex of a wait for a condition.
    pub mutex: Option<u32>,
}

/// The waits and wake-ups of an object.
#[derive(Debug, Default)]
pub struct WakeupQueue {
    pub waits: Vec<IdleWait>,
    wakeups: VecDeque<Wakeup>,
    /// The last to arrive at a barrier: when, thread and site.
    pub last_arrival: Option<(u64, u32, u32)>,
}

impl WakeupQueue {
    /// Takes a wake-up that some thread waits for.
    pub fn push(&mut self, wakeup: Wakeup) {
        self.wakeups.push_back(wakeup);
    }

    /// Removes a thread's wait.
    pub fn end_wait(&mut self, thread: u32) -> Option<IdleWait> {
        let index = self.waits.iter().rposition(|wait| wait.thread == thread)?;
        Some(self.waits.remove(index))
    }

    /// The wake-up that ended a wait, which gives it to no other wait unless it is a broadcast's.
    pub fn take(&mut self, wait: IdleWait) -> Option<Wakeup> {
        let is_usable = |wakeup: &&mut Wakeup| wakeup.time >= wait.entry && wakeup.remaining > 0;
        let wakeup = self.wakeups.iter_mut().find(is_usable)?;
        wakeup.remaining -= 1;
        Some(*wakeup)
    }

    /// Removes the wake-ups that no wait can take any more.
    pub fn take_expired(&mut self) -> Vec<Wakeup> {
        let earliest = self.waits.iter().map(|wait| wait.entry).min().unwrap_or(u64::MAX);
        let mut expired = Vec::new();
        while let Some(first) = self.wakeups.front().filter(|first| first.remaining == 0 || first.time < earliest) {
            expired.push(*first);
            self.wakeups.pop_front();
        }
        expired
    }
}
