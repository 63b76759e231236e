//! How a forked child was made, as the hook that has made it lets it know. It stands in the child's page, where no parent's can be.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use crate::process_state::PROCESS;
use crate::sys::noted_forks;

/// What is known for certain of how the calling process was made, in bits; none of them where no hook has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u32);

impl Origin {
    /// The child goes on as the thread that has made it, with a copy of its stack; and nothing was asked of the kernel but that.
    pub const FORK: Origin = Origin(GOES_ON | OWN_TABLE);

    /// Of a child by `clone` with these flags that goes on as the thread does that has made it.
    pub const fn of_copy(flags: c_int) -> Origin {
        Origin(GOES_ON | table_by(flags))
    }

    /// Of a child by `clone` with these flags that runs a function, and goes on with nothing that its parent has begun.
    pub const fn of_function(flags: c_int) -> Origin {
        Origin(BEGINS_ANEW | table_by(flags))
    }

    pub const fn bits(self) -> u32 {
        self.0
    }

    /// From [`Origin::bits`].
    pub const fn from_bits(bits: u32) -> Origin {
        Origin(bits)
    }

    /// Of the calling process, a forked child that is not initialised yet.
    pub fn of_this_process() -> Origin {
        let origin = Origin(PROCESS.origin.load(Relaxed));
        // A jump out of a handler of `pthread_atfork` leaves the note of a fork that has made no child.
        let is_noted = !origin.begins_anew() && noted_forks::is_noted();
        Origin(origin.0 | if is_noted { GOES_ON } else { 0 })
    }

    /// Lets the calling process, a forked child, have this origin.
    pub fn note(self) {
        PROCESS.origin.store(self.0, Relaxed);
    }

    /// Whether the child's thread-local variables are its own, as far as that is known: two processes cannot go on on one stack.
    pub fn has_own_variables(self) -> bool {
        self.0 & (GOES_ON | OWN_VARIABLES) != 0
    }

    /// The same, with variables that are the child's own.
    pub fn with_own_variables(self) -> Origin {
        Origin(self.0 | OWN_VARIABLES)
    }

    /// Whether nothing goes on in the child that its parent's thread has begun.
    pub fn begins_anew(self) -> bool {
        self.0 & BEGINS_ANEW != 0
    }

    /// Whether the child uses its parent's table of descriptors, if that is known.
    pub fn has_parents_table(self) -> Option<bool> {
        (self.0 & (PARENTS_TABLE | OWN_TABLE) != 0).then_some(self.0 & PARENTS_TABLE != 0)
    }
}

const GOES_ON: u32 = 1;
const BEGINS_ANEW: u32 = 1 << 1;
const OWN_TABLE: u32 = 1 << 2;
const PARENTS_TABLE: u32 = 1 << 3;
const OWN_VARIABLES: u32 = 1 << 4;

const fn table_by(flags: c_int) -> u32 {
    if flags & libc::CLONE_FILES != 0 { PARENTS_TABLE } else { OWN_TABLE }
}
