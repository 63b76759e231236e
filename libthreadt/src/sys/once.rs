//! Work that is done once, by the first thread that needs it, without a lock on which a signal handler could hang.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Release};

use super::process::{process_id, thread_exists, thread_id};
use super::time::{wait, wake_all};

/// Work that is done once. All zero means that it has not begun, so that a wiped page begins anew.
pub struct Once(AtomicU32);

const UNDONE: u32 = 0;
const DONE: u32 = 1;
const FAILED: u32 = 2;
/// The LWP that is at work is in the bits above.
const BUSY: u32 = 3;

/// How often another thread is waited for, ten milliseconds each time, before a record is given up. It only takes so
/// long if the machine is very busy, or if the other thread has been stopped.
const WAITS: u32 = 500;

impl Once {
    /// Work that has not begun.
    pub const fn new() -> Once {
        Once(AtomicU32::new(UNDONE))
    }

    /// Whether the work has been done.
    #[inline]
    pub fn is_done(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `run`: who sees it done sees what was done.
        self.0.load(Acquire) == DONE
    }

    /// Does the work unless it has been done, and returns whether it is done now.
    ///
    /// A thread that finds another one at work waits for it. A thread that finds itself at work (in a signal handler,
    /// or in an allocator that uses hooked functions) gets `false` at once. If the thread that was at work has gone, by
    /// cancellation or by a jump, the work has failed.
    pub fn run(&self, work: impl FnOnce() -> bool) -> bool {
        let me = thread_id();
        for _ in 0..WAITS {
            match self.0.compare_exchange(UNDONE, me << 2 | BUSY, Acquire, Acquire) {
                Ok(_) => {
                    let done = work();
                    self.0.store(if done { DONE } else { FAILED }, Release);
                    wake_all(&self.0);
                    return done;
                }
                Err(DONE) => return true,
                Err(FAILED) => return false,
                Err(busy) if busy >> 2 == me => return false,
                Err(busy) => {
                    wait(&self.0, busy, 10_000_000);
                    if self.0.load(Acquire) == busy && !thread_exists(process_id(), busy >> 2) {
                        let _ = self.0.compare_exchange(busy, FAILED, Acquire, Acquire);
                    }
                }
            }
        }
        // The work was left by a jump, or its thread has been stopped. The others must not wait for it at every call;
        // if the thread does finish, its result counts.
        let busy = self.0.load(Acquire);
        if busy & BUSY == BUSY {
            let _ = self.0.compare_exchange(busy, FAILED, Acquire, Acquire);
        }
        self.is_done()
    }
}

/// A value that is set while nobody can read it, and only read afterwards.
pub struct SetOnce<T>(UnsafeCell<T>);

// SAFETY: `get_mut` demands that nobody reads meanwhile; otherwise there are only shared references.
unsafe impl<T: Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    /// The value until it is set.
    pub const fn new(value: T) -> SetOnce<T> {
        SetOnce(UnsafeCell::new(value))
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> &T {
        // SAFETY: changed only under the conditions of `get_mut`.
        unsafe { &*self.0.get() }
    }

    /// The value, to be set or changed in place.
    ///
    /// # Safety
    /// Nobody may read it or hold another reference while this one lives: call it within a [`Once`] that all readers
    /// pass.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the caller's promise")]
    pub unsafe fn get_mut(&self) -> &mut T {
        // SAFETY: the caller's.
        unsafe { &mut *self.0.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_and_does_not_wait_for_itself() {
        let once = Once::new();
        assert!(once.run(|| {
            assert!(!once.run(|| true), "re-entered");
            true
        }));
        assert!(once.run(|| unreachable!()));
        let once = Once::new();
        assert!(!once.run(|| false));
        assert!(!once.run(|| unreachable!()));
    }
}
