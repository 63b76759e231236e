//! What a writer is about to take of its file, in private memory; [`super::range_taking`] has the rules.

use core::ops::Range;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

use spec::buffer::pack_range;

use crate::sys;

/// What the writer of a region is about to take. Only the writer uses it, and the signal handlers that interrupt it.
pub struct RangeRequest {
    /// The range of the region's text, packed; 0 for no request.
    pub text: AtomicU64,
    /// Where in the file the range begins, or [`UNKNOWN`].
    pub begin: AtomicU64,
    /// `RecordFileEntry::sole_user` when it was made.
    pub sole_user: AtomicU64,
}

/// Nobody has looked yet where the file ends.
pub const UNKNOWN: u64 = u64::MAX;

impl RangeRequest {
    pub fn make(&self, text: &Range<u32>, sole_user: u64) {
        self.sole_user.store(sole_user, Relaxed);
        self.begin.store(UNKNOWN, Relaxed);
        step();
        self.text.store(pack_range(text.clone()), Relaxed);
        step();
    }

    /// Forgets the request: it was completed, or whoever made it has been left by a jump.
    pub fn clear(&self) {
        self.text.store(0, Relaxed);
    }

    pub fn is_made(&self) -> bool {
        self.text.load(Relaxed) != 0
    }
}

/// A place between two steps, where a signal handler may come.
pub fn step() {
    // ORDERING: whoever comes here is a signal handler of this thread, for which the compiler has to keep the order.
    compiler_fence(SeqCst);
    sys::observable_step();
}
