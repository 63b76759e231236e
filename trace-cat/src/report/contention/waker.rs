//! The thread that ended a wait, and those that end waits for an object.

use super::holds::Knowledge;

/// Who ended a wait, where and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    pub thread: u32,
    pub site: u32,
    pub time: u64,
}

impl Waker {
    /// Whether a release is the one that let a wait end that began at `entry`, and not an earlier one: where few releases are
    /// recorded, the last one known may be old.
    pub fn is_last_release(&self, entry: u64, knowledge: Knowledge) -> bool {
        self.time >= knowledge.complete_from && !knowledge.is_partial && (!knowledge.only_blocked || self.time > entry)
    }
}

/// The threads that end waits for an object, as far as there are few.
#[derive(Clone, Copy, Debug)]
pub struct Wakers {
    threads: [u32; MOST_WAKERS],
    /// How many there are; one more than have room if there are more.
    count: usize,
}

const MOST_WAKERS: usize = 4;

impl Wakers {
    pub const NONE: Wakers = Wakers { threads: [0; MOST_WAKERS], count: 0 };

    pub fn add(&mut self, thread: u32) {
        if self.threads().is_some_and(|known| known.contains(&thread)) {
            return;
        }
        match self.threads.get_mut(self.count) {
            Some(free) => (*free, self.count) = (thread, self.count + 1),
            None => self.count = MOST_WAKERS + 1,
        }
    }

    /// All of them; `None` if there are too many to be known.
    pub fn threads(&self) -> Option<&[u32]> {
        self.threads.get(..self.count)
    }
}
