//! Holds of objects, and waits for them, as they are accounted.

use super::wait_shares::{Holder, WaitShares};

/// A hold of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    pub holder: Holder,
    /// When it began; if its acquisition is not recorded, from when on it is known.
    pub from: u64,
    /// Its acquisition is recorded.
    pub is_recorded: bool,
    /// When it was known for the last time that it went on: when it began, or when another waiter saw the owner,
    /// or a reader counted it.
    pub seen: u64,
    /// How often the thread has the object.
    pub depth: u32,
    /// Another process may have the object instead, since processes may share it.
    pub may_be_elsewhere: bool,
    /// It is a reader's, and may have ended without a release by that thread.
    pub may_have_ended: bool,
}

impl Hold {
    /// A hold that begins now.
    pub fn new(holder: Holder, now: u64, is_recorded: bool, depth: u32) -> Hold {
        Hold { holder, from: now, is_recorded, seen: now, depth, may_be_elsewhere: false, may_have_ended: false }
    }

    /// Whether the thread may not have the object.
    pub fn is_doubtful(&self) -> bool {
        self.may_be_elsewhere || self.may_have_ended
    }
}

/// The result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The hold ended; of its own thread, or of another one if that released what it does not hold.
    Hold(Hold),
    /// The thread still has the object.
    Inner,
    /// No acquisition of the thread is known.
    NotHeld,
    /// The hold of one of several other readers ended.
    OfReader,
    /// Another thread has it, so that the call fails.
    HeldByAnother,
}

/// How a thread releases an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Once: it may have it several times.
    Once,
    /// However often it has it.
    Complete,
    /// Once, for a wait for a condition, which fails if another thread has it.
    ForWait,
    /// Once; if its acquisition is not recorded, it may have been one of several readers.
    PerhapsShared,
    /// Once; if its acquisition is not recorded, it may still have it.
    PerhapsInner,
    /// Once, a read lock of another thread's.
    OfReader,
}

/// What is known of the records that concern an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knowledge {
    /// From when on the records of all threads are complete.
    pub complete_from: u64,
    /// Acquisitions are recorded only where they waited, and releases only where others wait.
    pub only_blocked: bool,
    /// A release gives the object to one of those that wait, so that nobody else has it in between.
    pub is_handed_over: bool,
    /// Some kinds of acquisitions or releases are not recorded.
    pub is_partial: bool,
    /// Some calls on locks, waits for conditions or barriers, creations or joins of threads are not recorded.
    pub is_selective: bool,
    /// Acquisitions or releases of mutexes, or of recursive ones, are not recorded, of which waits for conditions are.
    pub misses_mutexes: bool,
    pub misses_rmutexes: bool,
    /// Waits for conditions, which release mutexes and acquire them, are not recorded.
    pub misses_conds: bool,
    /// Some waits that may be part of a deadlock are not recorded: calls on locks, waits for conditions, joins or pthread_once.
    pub misses_waits: bool,
    /// It is a forked child.
    pub is_forked: bool,
    /// It is none: its parent's memory is not its own.
    pub is_spawned: bool,
    /// It is one, and forks are not recorded: nothing shows whose child it is, or what the thread had that forked it.
    pub misses_forks: bool,
    /// Ends of threads, or waits for semaphores or barriers, are not recorded.
    pub misses_ends: bool,
    /// There may be threads without a record, and ends of threads have none.
    pub misses_threads: bool,
    /// Cancellations, which end waits, are not recorded.
    pub misses_cancels: bool,
    /// Its trinfo is not beside its records: nobody knows what was recorded but by the records themselves.
    pub lacks_settings: bool,
    /// Which boot and PID namespace LWPs are numbered in: equal where that is the same.
    pub system: u64,
    /// By how much the times of records are ahead of the clocks of time limits, nanoseconds; `None` if that is not known.
    pub realtime_ahead: i64,
    pub monotonic_ahead: Option<i64>,
    /// The ID of the process on its own host, if it is known by another number.
    pub own_pid: Option<u32>,
}

impl Knowledge {
    /// Whether acquisitions or releases are not recorded, so that none that is absent is missing.
    pub fn leaves_calls_out(&self) -> bool {
        self.only_blocked || self.is_partial || self.misses_conds
    }
}

/// The keys of waits are threads; times that are watched have this or greater keys.
pub const WATCH: u64 = 1 << 32;

/// A wait that ended.
#[derive(Debug)]
pub struct FinishedWait {
    pub key: u64,
    pub entry: u64,
    pub end: u64,
    pub shares: WaitShares,
    pub has_timed_out: bool,
    /// Where the thread waited.
    pub site: u32,
    /// How many waited when it began, itself included.
    pub rank: u32,
}
