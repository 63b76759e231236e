//! Signals that wait until a step is done which a handler must not leave by a jump.

use super::call::call;
use super::memory::SET_SIZE;

/// All signals are blocked in the calling thread as long as this lives. They come when it is dropped.
pub struct BlockedSignals {
    before: u64,
}

impl BlockedSignals {
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
