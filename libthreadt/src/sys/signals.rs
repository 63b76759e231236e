//! Signals that wait until a step is done which a handler must not leave by a jump.

use super::call::call;
use super::memory::SET_SIZE;
use super::process::{is_only_thread, process_id, thread_id};

/// All signals are blocked in the calling thread as long as this lives. They come when it is dropped.
pub struct BlockedSignals {
    before: u64,
}

impl BlockedSignals {
    /// As [`BlockedSignals::new`], but `None` in the first thread of a process that has others: the kernel gives it the signals that are sent to
    /// the process, and another thread gets them while it blocks them.
    pub fn unless_others_get_them() -> Option<BlockedSignals> {
        let is_first = thread_id() == process_id();
        if is_first && !is_only_thread() { None } else { BlockedSignals::new() }
    }

    /// `None` where the kernel must not be asked for it.
    pub fn new() -> Option<BlockedSignals> {
        let (all, mut before) = (u64::MAX, 0);
        let pointers = [(&raw const all).addr(), (&raw mut before).addr()];
        // SAFETY: the kernel reads one set and writes the other.
        // OBSERVABLE: a signal of this thread comes some microseconds later, after `drop`.
        let result =
            unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, pointers[0], pointers[1], SET_SIZE]) };
        result.is_ok().then_some(BlockedSignals { before })
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        let before = (&raw const self.before).addr();
        // SAFETY: the kernel reads the set.
        let _ = unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, before, 0, SET_SIZE]) };
    }
}
