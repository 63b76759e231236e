//! What calls of futex(2) that have not returned do.

/// What a call of futex(2) that has not returned does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FutexCall {
    #[default]
    Other,
    Lock,
    TryLock,
    Unlock,
    /// Waits for the word, and then for this lock.
    WaitForLock(u32),
    Requeue(Requeue),
}

/// A call that wakes the first waiters of a word and lets the others wait for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeue {
    pub target: u32,
    /// How many threads it may wake.
    pub wakes: u32,
    /// How many known waiters it was taken to wake, and to move, until its result was known.
    pub woken: u32,
    pub moved: u32,
}

/// A release whose call has not returned: it may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingUnlock {
    pub thread: u32,
    pub site: u32,
    pub time: u64,
}
