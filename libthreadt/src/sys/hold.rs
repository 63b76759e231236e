//! What one thread has at a time, and what can be found again when that thread has left it by a jump, or has gone.

use core::ops::Range;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::process::{marker_exists, thread_id};
use super::stack::{is_interrupted_at, is_span_abandoned, stack_pointer};

/// A right that one thread has at a time; all zero if none has it.
///
/// The word holds the LWP in its upper 22 bits (the kernel has no more) and where the stack was, in units of 64 bytes,
/// below them: addresses in user space have 47 bits.
#[derive(Debug)]
pub struct Hold(AtomicU64);

const LWP_AT: u32 = 42;
const UNIT_BITS: u32 = 6;
/// How far above the place in the word the stack of the functions may reach that take part in the work, bytes.
const FRAMES: usize = 4096;

/// Who holds something, and since which place of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder(u64);

impl Holder {
    /// The thread `lwp`, with its stack at `place`.
    pub fn new(lwp: u32, place: usize) -> Holder {
        Holder(u64::from(lwp) << LWP_AT | (place as u64) >> UNIT_BITS)
    }

    /// The holder that a word names.
    pub fn from_word(word: u64) -> Option<Holder> {
        (word != 0).then_some(Holder(word))
    }

    pub fn word(self) -> u64 {
        self.0
    }

    pub fn lwp(self) -> u32 {
        (self.0 >> LWP_AT) as u32
    }

    /// The same place, held by another thread: the one that a forked child has.
    pub fn of_thread(self, lwp: u32) -> Holder {
        Holder(self.0 & ((1 << LWP_AT) - 1) | u64::from(lwp) << LWP_AT)
    }

    fn span(self) -> Range<usize> {
        let place = ((self.0 & ((1 << LWP_AT) - 1)) << UNIT_BITS) as usize;
        place..place + FRAMES
    }

    /// Whether the stack at `here`, of the same thread, has been taken back beyond the holder's place: no function of the
    /// holder's work can still be running.
    pub fn is_popped(self, here: usize) -> bool {
        here >= self.span().start && is_span_abandoned(&self.span(), here)
    }

    /// The same, or no signal handler has interrupted the holder's work, all of whose functions have their stack below its place.
    /// For work that nothing else can lead out of to `here`, also from deeper in the stack.
    pub fn is_left(self, here: usize) -> bool {
        let place = self.span().start;
        // The word has the place in units.
        is_span_abandoned(&(place..place + (1 << UNIT_BITS)), here)
    }

    /// Whether a signal handler at `here` has interrupted the holder on its own stack, whichever thread that is.
    pub fn is_interrupted_at(self, here: usize) -> bool {
        is_interrupted_at(&self.span(), here)
    }

    /// Whether the holder was certainly left by a jump, or has gone. The caller is the thread `me`, at `here`.
    pub fn is_abandoned(self, me: u32, here: usize) -> bool {
        if self.lwp() == me { is_span_abandoned(&self.span(), here) } else { !marker_exists(self.lwp()) }
    }
}

impl Hold {
    pub const fn new() -> Hold {
        Hold(AtomicU64::new(0))
    }

    /// Takes the right; `false` if another thread has it, or this one does (a handler that has interrupted itself).
    ///
    /// To be inlined, so that the place is one of the function that holds the right.
    #[inline(always)]
    pub fn take(&self) -> bool {
        let me = thread_id();
        self.take_at(me, stack_pointer())
    }

    #[inline(never)]
    fn take_at(&self, me: u32, here: usize) -> bool {
        let new = Holder::new(me, here).word();
        // ORDERING: Acquire pairs with the Release in `release`: what the last holder has left is seen.
        match self.0.compare_exchange(0, new, Acquire, Acquire) {
            Ok(_) => true,
            Err(word) => {
                Holder(word).is_abandoned(me, here) && self.0.compare_exchange(word, new, AcqRel, Relaxed).is_ok()
            }
        }
    }

    pub fn holder(&self) -> Option<Holder> {
        Holder::from_word(self.0.load(Acquire))
    }

    pub fn release(&self) {
        self.0.store(0, Release);
    }

    /// Makes `holder` the one that has the right, in a forked child, where nobody else can take it.
    pub fn hand_on(&self, holder: Holder) {
        self.0.store(holder.word(), Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_that_was_left_is_found_again() {
        let hold = Hold::new();
        assert!(deeper(&hold));
        assert!(hold.take(), "the stack where it was taken has been given back");
        assert!(!std::thread::scope(|scope| scope.spawn(|| hold.take()).join().unwrap()), "this thread has it");
        hold.release();
        assert!(std::thread::scope(|scope| scope.spawn(|| hold.take()).join().unwrap()));
        // The kernel lets a thread be joined a little before it is gone.
        while !hold.take() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_handler_does_not_take_what_it_has_interrupted() {
        static HOLD: Hold = Hold::new();
        static TAKEN: AtomicU64 = AtomicU64::new(2);
        extern "C" fn take(_signal: libc::c_int) {
            TAKEN.store(HOLD.take().into(), Relaxed);
        }
        assert!(HOLD.take());
        #[expect(clippy::disallowed_methods, reason = "this thread of the test is meant to be interrupted here")]
        // SAFETY: the handler only takes the hold.
        unsafe {
            libc::signal(libc::SIGWINCH, take as *const () as libc::sighandler_t);
            libc::raise(libc::SIGWINCH);
        }
        assert_eq!(TAKEN.load(Relaxed), 0);
    }

    #[inline(never)]
    fn deeper(hold: &Hold) -> bool {
        let room = std::hint::black_box([0u8; 8192]);
        hold.take() && std::hint::black_box(&room)[0] == 0
    }
}
