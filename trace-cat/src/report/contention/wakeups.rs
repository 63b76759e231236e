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

impl Wakeup {
    fn is_usable_for(&self, wait: &IdleWait) -> bool {
        self.time >= wait.entry && self.remaining > 0
    }
}

/// Who ended a wait, where and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    pub thread: u32,
    pub site: u32,
    pub time: u64,
}

impl From<Wakeup> for Waker {
    fn from(wakeup: Wakeup) -> Waker {
        let Wakeup { time, thread, site, .. } = wakeup;
        Waker { thread, site, time }
    }
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
    /// The last that arrived at a barrier.
    pub last_arrival: Option<Waker>,
}

impl WakeupQueue {
    /// Takes a wake-up that some thread waits for.
    pub fn push(&mut self, wakeup: Wakeup) {
        self.wakeups.push_back(wakeup);
    }

    /// Takes the arrival at a barrier that ends all waits.
    pub fn push_for_all(&mut self, Waker { thread, site, time }: Waker) {
        let capacity = self.waits.len() as u32;
        self.push(Wakeup { time, thread, site, remaining: capacity, capacity, watch: None });
    }

    /// Whether a wake-up is known that may have ended a thread's wait.
    pub fn has_wakeup_for(&self, thread: u32) -> bool {
        let wait = self.waits.iter().rfind(|wait| wait.thread == thread);
        wait.is_some_and(|wait| self.wakeups.iter().any(|wakeup| wakeup.is_usable_for(wait)))
    }

    /// Removes a thread's wait.
    pub fn end_wait(&mut self, thread: u32) -> Option<IdleWait> {
        let index = self.waits.iter().rposition(|wait| wait.thread == thread)?;
        Some(self.waits.remove(index))
    }

    /// The wake-up that ended a wait, which gives it to no other wait unless it is a broadcast's.
    pub fn take(&mut self, wait: IdleWait) -> Option<Wakeup> {
        let wakeup = self.wakeups.iter_mut().find(|wakeup| wakeup.is_usable_for(&wait))?;
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
