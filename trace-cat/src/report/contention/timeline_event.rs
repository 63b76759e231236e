//! What a viewer draws: waits, holds, threads, and who let whom go on, as the analysis accounts them.
//!
//! An interval is logged when the analysis accounts it, which is at its end or, where nobody knew before whether a release is missing,
//! a little later. So intervals are in the order of their ends but for these. The inner of two nested ones comes first.

use std::ops::Range;

use super::tables::ImageEnd;
use super::waker::Waker;

/// Something that a viewer draws. Threads, objects, sites and processes are indexes of the analysis; times are nanoseconds since the
/// Epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineEvent {
    /// The first record of a thread, and of its process if that has no other thread.
    ThreadBegin {
        thread: u32,
    },
    /// Until when a thread lived as far as it is known: if it did not exit, until its process ended or the records do.
    ThreadEnd {
        thread: u32,
        time: u64,
    },
    /// The end of a process's program, after the ends of its threads.
    ProcessEnd {
        process: u32,
        time: u64,
        how: ImageEnd,
    },
    Wait(WaitInterval),
    Hold(HoldInterval),
    /// A hold that ended nobody knows when, because its release is missing. The report counts no time for it.
    LostHold {
        thread: u32,
        object: u32,
        site: u32,
        from: u64,
    },
    /// A thread created another one, by a call that began at `time`.
    Creation {
        creator: u32,
        created: u32,
        time: u64,
    },
    /// A thread's join of an ended one returned at `time`.
    Join {
        joiner: u32,
        joined: u32,
        time: u64,
    },
    /// A thread forked a process, whose first record is by `child` at `time`, by a call that began at `forked_at`, if that is known.
    Fork {
        parent: u32,
        child: u32,
        forked_at: Option<u64>,
        time: u64,
    },
    /// So many records of a thread are lost from `time` on; 0 if it was changed what is recorded of it. Its next record shows until
    /// when.
    Loss {
        thread: u32,
        time: u64,
        lost: u64,
    },
    /// The records of a thread are complete again.
    LossEnd {
        thread: u32,
        time: u64,
    },
    /// A return record has no entry record.
    MissingEntry {
        thread: u32,
        time: u64,
        event: (u8, u8),
    },
    /// An entry record has no return record although the thread went on: that was lost, or the call was left by a jump.
    MissingReturn {
        thread: u32,
        time: u64,
        event: (u8, u8),
    },
}

/// A wait. `to - from` is what the report adds to the waits for the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitInterval {
    pub thread: u32,
    /// `None` is the end of a thread.
    pub object: Option<u32>,
    /// 0 if it is not known.
    pub site: u32,
    pub from: u64,
    pub to: u64,
    /// The wait began before the selected time, or ended after it; then `from` or `to` is the edge.
    pub is_cut: (bool, bool),
    /// It is contention, not idleness.
    pub is_contention: bool,
    /// The thread that is to blame for most of it.
    pub holder: Option<u32>,
    pub waker: Option<Waker>,
    /// The call did not return: the wait lasted until its process ended or the records do.
    pub is_open: bool,
    /// The end of a wait for a condition, in which the thread waited for the mutex. The interval of that wait ends where this begins.
    pub is_rest: bool,
    pub has_timed_out: bool,
}

/// A hold. `to - from` is what the report adds to the holds of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldInterval {
    pub thread: u32,
    pub object: u32,
    pub site: u32,
    pub from: u64,
    pub to: u64,
    /// As in [`WaitInterval`].
    pub is_cut: (bool, bool),
    /// When it began and ended, whatever is selected.
    pub complete: (u64, u64),
    /// Others waited for the object when it ended.
    pub has_waiters: bool,
}

impl WaitInterval {
    /// Who ended the wait, if both that and its end are in the selected times.
    pub fn drawn_waker(&self, times: &Range<u64>) -> Option<Waker> {
        self.waker.filter(|waker| !self.is_cut.1 && times.contains(&waker.time))
    }

    /// What is unusual about the interval, for people.
    pub fn note(&self) -> Option<&'static str> {
        Some(match self {
            WaitInterval { is_cut: (true, true), .. } => "began earlier and ended later",
            WaitInterval { is_cut: (true, _), .. } => "began earlier",
            WaitInterval { is_cut: (_, true), .. } => "ended later",
            WaitInterval { is_open: true, .. } => "did not return",
            WaitInterval { has_timed_out: true, .. } => "timed out",
            _ => return None,
        })
    }
}

impl HoldInterval {
    /// What is unusual about the interval, for people.
    pub fn note(&self) -> Option<&'static str> {
        Some(match self.is_cut {
            (true, true) => "began earlier and ended later",
            (true, _) => "began earlier",
            (_, true) => "ended later",
            _ => return None,
        })
    }
}
