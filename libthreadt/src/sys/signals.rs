//! Signals that wait until a step is done which a handler must not leave by a jump.

use super::call::call;
use super::memory::SET_SIZE;
use super::process::{is_only_thread, process_id, thread_id};

/// All signals but glibc's own of changes of the user: its handler returns, and the thread that changes the user waits for it in all
/// threads (`SIGSETXID` of glibc's `nptl/nptl-signals.h`).
const ALL_BUT_USER_CHANGE: u64 = !(1 << (33 - 1));

/// No mask of a thread: the kernel does not block SIGKILL.
const UNKNOWN: u64 = !0;

/// Signals are blocked in the calling thread as long as this lives. They come when it is dropped.
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
        let (all, mut before) = (ALL_BUT_USER_CHANGE, UNKNOWN);
        let pointers = [(&raw const all).addr(), (&raw mut before).addr()];
        // SAFETY: the kernel reads one set and writes the other.
        // OBSERVABLE: a signal of this thread comes some microseconds later, after `drop`.
        let result =
            unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, pointers[0], pointers[1], SET_SIZE]) };
        // A filter may answer in the kernel's place. Not `then_some`: what that does not return is dropped, and would set the mask.
        (result.is_ok() && before != UNKNOWN).then(|| BlockedSignals { before })
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        let before = (&raw const self.before).addr();
        // SAFETY: the kernel reads the set.
        let set = unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, before, 0, SET_SIZE]) };
        if set.is_err() {
            // A filter refuses that.
            let blocked = ALL_BUT_USER_CHANGE & !self.before;
            let pointer = (&raw const blocked).addr();
            // SAFETY: as above.
            let _ = unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_UNBLOCK as usize, pointer, 0, SET_SIZE]) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process::thread_id;

    fn blocked() -> u64 {
        let status = std::fs::read_to_string(format!("/proc/self/task/{}/status", thread_id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    }

    #[test]
    fn a_change_of_the_user_does_not_wait() {
        let before = blocked();
        let signals = BlockedSignals::new().unwrap();
        let bit = |signal: i32| 1 << (signal - 1);
        assert_eq!(blocked() & bit(33), 0, "SIGSETXID");
        // SIGKILL and SIGSTOP are never blocked.
        assert_eq!(!blocked(), bit(33) | bit(libc::SIGKILL) | bit(libc::SIGSTOP));
        drop(signals);
        assert_eq!(blocked(), before);
    }
}
