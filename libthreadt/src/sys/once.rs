//! Things that are done once, by whoever comes first, without a lock that a signal handler could hang on.

use core::cell::UnsafeCell;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

use crate::sys;

/// How far a stage has come. All zero is the beginning, so that a wiped page begins anew.
pub struct Stage(AtomicU32);

const UNDONE: u32 = 0;
const DONE: u32 = 1;
const FAILED: u32 = 2;
/// The LWP that is at work is in the bits above.
const BUSY: u32 = 3;

/// How long another thread is waited for before a record is given up, in waits of ten milliseconds. It only takes so long
/// if the machine is very busy, or if the other thread has been stopped.
const WAITS: u32 = 500;

impl Stage {
    /// A stage at its beginning.
    pub const fn new() -> Stage {
        Stage(AtomicU32::new(UNDONE))
    }

    /// Whether the stage has been done.
    #[inline]
    pub fn is_done(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `run`: who sees it done sees what was done.
        self.0.load(Acquire) == DONE
    }

    /// Does it unless it has been done, and tells whether it is done now.
    ///
    /// A thread that finds another one at work waits for it; one that finds itself at work (a signal handler, or an
    /// allocator that uses what we hook) gets `false` at once. If the one that was at it has gone, cancelled or by a jump,
    /// the stage has failed.
    pub fn run(&self, work: impl FnOnce() -> bool) -> bool {
        let me = sys::thread_id();
        for _ in 0..WAITS {
            match self.0.compare_exchange(UNDONE, me << 2 | BUSY, Acquire, Acquire) {
                Ok(_) => {
                    let done = work();
                    self.0.store(if done { DONE } else { FAILED }, Release);
                    sys::wake_all(&self.0);
                    return done;
                }
                Err(DONE) => return true,
                Err(FAILED) => return false,
                Err(busy) if busy >> 2 == me => return false,
                Err(busy) => {
                    sys::wait(&self.0, busy, 10_000_000);
                    if self.0.load(Acquire) == busy && !sys::thread_lives(sys::process_id(), busy >> 2) {
                        let _ = self.0.compare_exchange(busy, FAILED, Acquire, Acquire);
                    }
                }
            }
        }
        // It was left by a jump, or its thread has been stopped. The others must not wait for it at every call; if it does
        // come to its end, what it stores counts.
        let busy = self.0.load(Acquire);
        if busy & BUSY == BUSY {
            let _ = self.0.compare_exchange(busy, FAILED, Acquire, Acquire);
        }
        self.is_done()
    }

    /// Goes back to the beginning unless it has been done; for a forked child, in which whoever was at it is not.
    pub fn reset_unless_done(&self) {
        if !self.is_done() {
            self.reset();
        }
    }

    /// Goes back to the beginning.
    pub fn reset(&self) {
        self.0.store(UNDONE, Release);
    }
}

/// A value that is written while there is nobody else to read it, and only read afterwards.
pub struct Settled<T>(UnsafeCell<T>);

// SAFETY: `settle` demands that nobody reads meanwhile; after that, there are only shared references.
unsafe impl<T: Sync> Sync for Settled<T> {}

impl<T> Settled<T> {
    /// The value until it is settled.
    pub const fn new(value: T) -> Settled<T> {
        Settled(UnsafeCell::new(value))
    }

    /// Changes the value.
    ///
    /// # Safety
    /// Nobody may hold a reference or read meanwhile: call it from within a [`Stage`] that readers have to pass.
    pub unsafe fn settle(&self, value: T) {
        // SAFETY: the caller's.
        unsafe { *self.0.get() = value };
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> &T {
        // SAFETY: written only under the conditions of `settle`.
        unsafe { &*self.0.get() }
    }

    /// The value, to be filled in place.
    ///
    /// # Safety
    /// As for [`Settled::settle`], for as long as the reference lives.
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
    fn a_stage_is_run_once_and_not_by_itself() {
        let stage = Stage::new();
        assert!(stage.run(|| {
            assert!(!stage.run(|| true), "re-entered");
            true
        }));
        assert!(stage.run(|| unreachable!()));
        stage.reset();
        assert!(!stage.run(|| false));
        assert!(!stage.run(|| unreachable!()));
    }
}
