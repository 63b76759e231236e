//! Whether the program has put itself under a seccomp filter, which may kill it for a system call that it did not need.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::call::call;

/// A filter was in force when the program began, as it always is in a container.
static HAD_FILTER: AtomicBool = AtomicBool::new(false);

/// Notes whether a filter is in force, before the program can install one.
pub fn note_filter() {
    HAD_FILTER.store(has_filter(), Relaxed);
}

/// Whether a filter is in force that was not when [`note_filter`] was called.
pub fn has_new_filter() -> bool {
    !HAD_FILTER.load(Relaxed) && has_filter()
}

/// Whether a filter is in force, or refuses the question.
pub fn has_filter() -> bool {
    // SAFETY: the call takes no pointer.
    let mode = unsafe { call(libc::SYS_prctl, [libc::PR_GET_SECCOMP as usize]) };
    mode != Ok(0)
}
