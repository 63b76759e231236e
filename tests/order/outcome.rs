//! What the check of a timeline finds.

use std::fmt;

/// What cannot have been.
#[derive(Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The record that shows it, counted from 0.
    pub at: usize,
    /// What it is.
    pub why: String,
}

impl fmt::Display for Impossible {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "record {}: {}", self.at, self.why)
    }
}

/// How often each thing happened in a timeline, so that an empty one does not pass for a good one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Mutexes, recursive mutexes and spin locks acquired.
    pub locks: usize,
    /// Those of them that another thread had had before.
    pub handed_on: usize,
    /// Read and write locks acquired.
    pub rwlocks: usize,
    /// Semaphore tokens taken, of semaphores whose first value is known.
    pub tokens: usize,
    /// Waits on condition variables that were woken.
    pub wakes: usize,
    /// Barriers passed, once for each thread.
    pub barriers: usize,
    /// Threads joined.
    pub joins: usize,
}
