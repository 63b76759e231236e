//! Work that is done once, by the first thread that needs it, without a lock on which a signal handler could hang.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::hold::Holder;
use super::judgements::end_judgements;
use super::left_files::close_abandoned;
use super::process::{marker_exists, thread_id};
use super::stack::stack_pointer;
use super::thread_progress::{Pace, Progress, asleep_since_noted};
use super::time::{wait, wake_all};

/// Work that is done once. All zero means that it has not begun, so that a wiped page begins anew.
///
/// The word is one of the three below, or the word of the [`Holder`] that is at work, which is greater.
pub struct Once(AtomicU64);

const UNDONE: u64 = 0;
const DONE: u64 = 1;
const FAILED: u64 = 2;

/// How often another thread is waited for, and for how many nanoseconds each time, before a record is given up. It only takes so
/// long if the machine is very busy, or a disk.
const WAITS: u32 = 2500;
const WAIT: i64 = 2_000_000;

/// What may lead a thread from work that it is doing to the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reentry {
    /// A signal handler alone: the work makes system calls and nothing else that is not this library's.
    BySignals,
    /// Also functions that the work calls, which may be another interposer's, or the user's.
    ByCalls,
}

/// How another thread gets on that is at work, as far as can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    GoesOn,
    /// It may go on later.
    Sleeps,
    /// It does something else.
    IsElsewhere,
    HasGone,
}

impl Once {
    /// Work that has not begun.
    pub const fn new() -> Once {
        Once(AtomicU64::new(UNDONE))
    }

    /// Whether the work has been done.
    #[inline]
    pub fn is_done(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `run`: who sees it done sees what was done.
        self.0.load(Acquire) == DONE
    }

    /// Whether a thread is at work, or has left the work by a jump.
    pub fn is_busy(&self) -> bool {
        self.0.load(Acquire) > FAILED
    }

    /// Whether the work was done in vain, or another thread has waited for it too long.
    pub fn has_failed(&self) -> bool {
        self.0.load(Acquire) == FAILED
    }

    /// Does the work unless it has been done, and returns whether it is done now.
    ///
    /// A thread that finds another one at work waits for it. A thread that finds itself at work in a signal handler gets
    /// `false` at once. If the work was left, by a jump of this thread or because the other one has gone, it begins anew.
    pub fn run(&self, work: impl FnOnce() -> bool) -> bool {
        self.run_or_wait(None, Reentry::BySignals, || true, |_| (), work)
    }

    /// As [`Once::run`], for work that may lead to itself without a signal, in an allocator that uses hooked functions for example.
    /// That it was left by a jump is then certain only where the stack has been taken back.
    pub fn run_calling_others(&self, work: impl FnOnce() -> bool) -> bool {
        self.run_or_wait(None, Reentry::ByCalls, || true, |_| (), work)
    }

    /// As [`Once::run`], but does not wait for a thread that sleeps: a signal handler may have interrupted its work, and may
    /// wait for this thread. Then this one gets `false`, and the next time, too, as long as that one sleeps.
    ///
    /// Nor for one that computes instead, or has slept for `patience` nanoseconds: it has left the work by a jump, or a signal handler has
    /// interrupted it. The work begins anew after `take_over`, which gets that thread's LWP and sees to it that it takes no further step
    /// should it return to the work.
    ///
    /// The work begins only if it still `may_begin`. A child that a signal handler has forked leaves the work that was its parent's.
    pub fn run_unless_asleep(
        &self,
        reentry: Reentry,
        patience: u64,
        may_begin: impl Fn() -> bool,
        take_over: impl Fn(u32),
        work: impl FnOnce() -> bool,
    ) -> bool {
        // What other functions do in between is not known: who sleeps there may go on.
        let patience = if reentry == Reentry::ByCalls { u64::MAX } else { patience };
        self.run_or_wait(Some(patience), reentry, may_begin, take_over, work)
    }

    /// Whether the thread `lwp` is at work, or has left the work by a jump.
    pub fn is_begun_by(&self, lwp: u32) -> bool {
        self.word_of(lwp).is_some()
    }

    /// Lets work begin anew that the thread `lwp` has left, or that was interrupted there.
    pub fn give_up(&self, lwp: u32) {
        if let Some(word) = self.word_of(lwp) {
            let _ = self.0.compare_exchange(word, UNDONE, Acquire, Acquire);
        }
    }

    fn word_of(&self, lwp: u32) -> Option<u64> {
        let word = self.0.load(Acquire);
        (word > FAILED && Holder::from_word(word)?.lwp() == lwp).then_some(word)
    }

    // Not inlined: a call within the work then has its stack below this one.
    #[inline(never)]
    fn run_or_wait(
        &self,
        patience: Option<u64>,
        reentry: Reentry,
        may_begin: impl Fn() -> bool,
        take_over: impl Fn(u32),
        work: impl FnOnce() -> bool,
    ) -> bool {
        // First, without the right to change it: the kernel would copy its page for a forked child.
        if self.is_done() {
            return true;
        }
        let (me, here) = (thread_id(), stack_pointer());
        let mut progress = Progress::default();
        for _ in 0..WAITS {
            let own = Holder::new(me, here).word();
            match self.0.compare_exchange(UNDONE, own, Acquire, Acquire) {
                Ok(_) => {
                    if !may_begin() {
                        let _ = self.0.compare_exchange(own, UNDONE, Release, Relaxed);
                        return self.is_done();
                    }
                    let done = work();
                    // A child that a signal handler forked returns here, too. What it went on with was its parent's work.
                    // Where the kernel must not be asked the ID is 0.
                    let now = thread_id();
                    if now != me && now != 0 && me != 0 {
                        // The parent's thread is not there to go on with it.
                        let _ = self.0.compare_exchange(own, UNDONE, Release, Relaxed);
                        return self.is_done();
                    }
                    // Whoever has lost patience has made it FAILED. Any other word is that of a child which has the IDs that
                    // its parent has in another PID namespace.
                    let result = if done { DONE } else { FAILED };
                    if [own, FAILED].iter().any(|word| self.0.compare_exchange(*word, result, Release, Relaxed).is_ok())
                    {
                        wake_all(self.low_half());
                        return done;
                    }
                    return self.is_done();
                }
                Err(DONE) => return true,
                Err(FAILED) => return false,
                Err(busy) => {
                    let Some(holder) = Holder::from_word(busy) else { continue };
                    let left = if holder.lwp() == me {
                        let was_left = match reentry {
                            Reentry::BySignals => holder.is_left(here),
                            Reentry::ByCalls => holder.is_popped(here),
                        };
                        if !was_left {
                            return false;
                        }
                        close_abandoned(me, Some(here));
                        end_judgements();
                        true
                    } else {
                        match self.observe_other(busy, patience, &mut progress) {
                            Other::Sleeps => return self.is_done(),
                            Other::IsElsewhere if reentry == Reentry::BySignals => {
                                // By one of those who wait.
                                if self.0.compare_exchange(busy, own, Acquire, Acquire).is_ok() {
                                    take_over(holder.lwp());
                                    self.give_up(me);
                                }
                                continue;
                            }
                            other => other == Other::HasGone,
                        }
                    };
                    if left {
                        let _ = self.0.compare_exchange(busy, UNDONE, Acquire, Acquire);
                    }
                }
            }
        }
        // The work was left by a jump, or its thread has been stopped. The others must not wait for it at every call;
        // if the thread does finish, its result counts.
        let busy = self.0.load(Acquire);
        if busy > FAILED {
            let _ = self.0.compare_exchange(busy, FAILED, Acquire, Acquire);
        }
        self.is_done()
    }

    /// Waits a while for the other thread that is at work, as the word `busy` shows, unless it is known to sleep. With a `patience` it need not
    /// be at work: a signal handler may have interrupted it, or a jump have led out of it.
    fn observe_other(&self, busy: u64, patience: Option<u64>, progress: &mut Progress) -> Other {
        let Some(holder) = Holder::from_word(busy) else { return Other::GoesOn };
        if let Some(patience) = patience
            && let Some(asleep) = asleep_since_noted(holder.lwp())
        {
            return if asleep >= patience { Other::IsElsewhere } else { Other::Sleeps };
        }
        wait(self.low_half(), busy as u32, WAIT);
        if self.0.load(Acquire) != busy {
            return Other::GoesOn;
        }
        match (patience.map(|_| progress.observe(holder.lwp())), patience) {
            (Some(Pace::Computes), _) | (Some(Pace::Stopped), Some(0)) => Other::IsElsewhere,
            (Some(Pace::Stopped), _) => Other::Sleeps,
            _ if marker_exists(holder.lwp()) => Other::GoesOn,
            _ => Other::HasGone,
        }
    }

    /// What threads wait for: the half of the word that differs between the states.
    fn low_half(&self) -> &AtomicU32 {
        // SAFETY: within the word, and aligned; it is only an address for the kernel.
        unsafe { &*self.0.as_ptr().cast::<AtomicU32>() }
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
    /// Nobody may read it or hold another reference while this one lives: as within a [`Once`] that all readers pass.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the caller's promise")]
    pub unsafe fn get_mut(&self) -> &mut T {
        // SAFETY: the caller's.
        unsafe { &mut *self.0.get() }
    }
}

#[cfg(test)]
mod tests;
