//! For which process work is done that a signal handler may interrupt, and fork.

use core::sync::atomic::Ordering::Relaxed;

use super::page::id;
use crate::sys::{Errno, INHERITED, Result};

/// The process for which work of several steps is done.
///
/// A signal handler may fork between any two steps. The child returns into the work, too, but the files, the names and the
/// memory are its parent's: it takes no further step, and reports nothing. Nor does a thread that returns into work which has begun
/// anew meanwhile ([`begin_elsewhere`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkingProcess {
    id: u32,
    /// With the next one: which memory the work is done in ([`of_process`]).
    place: u32,
    attempt: u32,
}

/// How many places there are for what the work of a process is done in ([`of_process`]).
pub const PLACES: usize = 4;

/// The process's own among the places for what its work is done in. A child has another one than its parent: when it returns into
/// the parent's work, what that still stores is not in the child's.
pub fn of_process<T>(of_each: &[T; PLACES], process: WorkingProcess) -> &T {
    &of_each[process.place.wrapping_add(process.attempt) as usize & (PLACES - 1)]
}

/// Lets this process have another place than its parent.
pub fn change_place() {
    INHERITED.place.fetch_add(1, Relaxed);
}

/// Lets this process have another place for work that begins anew: a thread that was at it may still return to it.
pub fn begin_elsewhere() {
    INHERITED.attempts.fetch_add(1, Relaxed);
}

/// How often work has begun anew so, in this process or in one that it was forked from.
pub fn attempts() -> u32 {
    INHERITED.attempts.load(Relaxed)
}

impl WorkingProcess {
    /// The calling process, which has been found to be initialised.
    pub fn current() -> WorkingProcess {
        WorkingProcess { id: id(), place: INHERITED.place.load(Relaxed), attempt: INHERITED.attempts.load(Relaxed) }
    }

    /// The process ID, also in a child.
    pub fn id(self) -> u32 {
        self.id
    }

    /// Whether the caller is still this process, or a vfork child that works for it, and the work has not begun anew elsewhere.
    pub fn is_current(self) -> bool {
        self.is_caller() && INHERITED.attempts.load(Relaxed) == self.attempt
    }

    /// Whether the caller is still this process, or a vfork child that works for it. A forked child finds its page wiped, or has
    /// initialised itself.
    pub fn is_caller(self) -> bool {
        let now = WorkingProcess::current();
        // One without an ID is a child that was forked just before it was asked for; or a test, which has no process of its own.
        (self.id != 0 || cfg!(test)) && (now.id, now.place) == (self.id, self.place)
    }

    /// `ECHILD` in a child, or where the work has begun anew.
    pub fn check(self) -> Result {
        if self.is_current() { Ok(()) } else { Err(Errno(libc::ECHILD)) }
    }
}
