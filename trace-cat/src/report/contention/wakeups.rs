//! Which signal, post or wake-up ended which wait.
//!
//! A wait was ended by the earliest one since it began that no wait took which returned earlier. A broadcast ends all waits that
//! had begun. Who gets a semaphore without waiting takes the latest post, for which a thread that waits may have been woken in vain.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use super::barrier_rounds::BarrierRounds;
use super::waiter_wakes::WaiterWakes;
use super::waker::Waker;

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
    /// When it began in the queue that it was in before it was moved.
    pub before_move: u64,
    /// The mutex of a wait for a condition.
    pub mutex: Option<u32>,
}

/// The waits and wake-ups of an object. Locks have none, and are most of a hundred thousand objects: of these it is a pointer.
#[derive(Debug, Default)]
pub struct Wakeups(Option<Box<WakeupQueue>>);

impl Deref for Wakeups {
    type Target = WakeupQueue;

    fn deref(&self) -> &WakeupQueue {
        static NONE: WakeupQueue = WakeupQueue::EMPTY;
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Wakeups {
    fn deref_mut(&mut self) -> &mut WakeupQueue {
        self.0.get_or_insert_default()
    }
}

#[derive(Debug)]
pub struct WakeupQueue {
    /// In the order in which they began.
    pub waits: Vec<IdleWait>,
    /// Those that waits may still take, in the order of time.
    wakeups: VecDeque<Wakeup>,
    /// How many waits they can end.
    remaining: u32,
    /// How many later posts there were while all waits had earlier ones.
    surplus: u32,
    /// Of a barrier.
    pub rounds: BarrierRounds,
    /// A post is recorded.
    pub has_posts: bool,
    /// Of a futex: whether its waiters wake each other.
    pub waiter_wakes: WaiterWakes,
}

impl Default for WakeupQueue {
    fn default() -> WakeupQueue {
        WakeupQueue::EMPTY
    }
}

impl WakeupQueue {
    const EMPTY: WakeupQueue = WakeupQueue {
        waits: Vec::new(),
        wakeups: VecDeque::new(),
        remaining: 0,
        surplus: 0,
        rounds: BarrierRounds::EMPTY,
        has_posts: false,
        waiter_wakes: WaiterWakes::NONE,
    };

    /// Whether nobody waits, and no wake-up is left.
    pub fn is_quiet(&self) -> bool {
        self.waits.is_empty() && self.wakeups.is_empty() && self.rounds.is_quiet()
    }

    /// Whether a wait was ended that has not returned.
    pub fn has_pending(&self) -> bool {
        self.remaining > 0
    }

    /// Takes the beginning of a wait.
    pub fn begin_wait(&mut self, wait: IdleWait) {
        self.waits.push(wait);
    }

    /// Removes a thread's wait.
    pub fn end_wait(&mut self, thread: u32) -> Option<IdleWait> {
        let index = self.waits.iter().rposition(|wait| wait.thread == thread)?;
        let wait = self.waits.remove(index);
        if self.waits.is_empty() {
            self.surplus = 0;
        }
        Some(wait)
    }

    /// Ends all waits.
    pub fn end_all_waits(&mut self) -> Vec<IdleWait> {
        std::mem::take(&mut self.waits)
    }

    /// The first wait that may take the next wake-up, and how many waits may: those for which no earlier one is left.
    pub fn next_wait(&self) -> Option<(IdleWait, u32)> {
        let room = (self.waits.len() as u32).saturating_sub(self.remaining);
        Some((*self.waits.first()?, room)).filter(|(_, room)| *room > 0)
    }

    /// How many waits wake-ups have ended that have not returned.
    pub fn count_of_woken(&self) -> u32 {
        self.remaining
    }

    /// Takes back that a wake-up of a thread ended so many waits, as far as none has taken it.
    pub fn reduce(&mut self, thread: u32, time: u64, count: u32) {
        let is_of_call = |wakeup: &&mut Wakeup| (wakeup.thread, wakeup.time) == (thread, time);
        if let Some(wakeup) = self.wakeups.iter_mut().find(is_of_call) {
            let count = count.min(wakeup.remaining);
            (wakeup.remaining, wakeup.capacity) = (wakeup.remaining - count, wakeup.capacity - count);
            self.remaining -= count;
        }
    }

    /// Takes a wake-up for which waits are left.
    pub fn push(&mut self, wakeup: Wakeup) {
        self.remaining += wakeup.remaining;
        self.wakeups.push_back(wakeup);
    }

    /// The wake-up that ended a wait, which gives it to no other wait unless it is a broadcast's.
    pub fn take(&mut self, wait: IdleWait) -> Option<Wakeup> {
        let wakeup = self.wakeups.iter_mut().find(|wakeup| wakeup.is_usable_for(&wait))?;
        wakeup.remaining -= 1;
        self.remaining -= 1;
        Some(*wakeup)
    }

    /// Takes a post for which all waits have an earlier one.
    pub fn push_surplus(&mut self) {
        self.surplus += u32::from(!self.waits.is_empty());
    }

    /// Takes the latest post for a thread that got the semaphore without waiting: nobody else was let go on by it.
    pub fn take_without_wait(&mut self) {
        if self.surplus > 0 {
            self.surplus -= 1;
        } else if let Some(wakeup) = self.wakeups.pop_back() {
            self.remaining -= wakeup.remaining;
        }
    }

    /// Removes the wake-ups that no wait can take any more: the waits that had begun before take earlier ones.
    pub fn take_expired(&mut self) -> Vec<Wakeup> {
        let (mut expired, mut begun) = (Vec::new(), 0);
        self.remaining = 0;
        self.wakeups.retain_mut(|wakeup| {
            begun += self.waits[begun..].iter().take_while(|wait| wait.entry <= wakeup.time).count();
            let unused = wakeup.remaining.saturating_sub(begun as u32 - self.remaining.min(begun as u32));
            if unused < wakeup.remaining {
                wakeup.remaining -= unused;
                wakeup.capacity -= unused;
                self.remaining += wakeup.remaining;
                return true;
            }
            expired.push(*wakeup);
            false
        });
        expired
    }
}
