//! Judgements whether something was left by a jump, which jumps may leave in their turn.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::thread_word::thread_pointer;

/// How often in a row a thread's judgements may be left by jumps. Then only each one of so many is begun: a program may try a call anew
/// until it returns in time.
const LEFT_MAX: u32 = 30;
const SELDOM: u32 = 1024;

/// How many judgements have been begun and not ended since [`end_judgements`], by threads with the same hash of their thread pointer.
static UNFINISHED: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

/// What `judge` finds; `uncertain` if jumps leave that again and again.
pub(super) fn judged(uncertain: bool, judge: impl FnOnce() -> bool) -> bool {
    let unfinished = unfinished();
    // ORDERING: Relaxed, and no addition that is atomic: a number that another thread spoils is wrong for a while.
    let count = unfinished.load(Relaxed);
    unfinished.store(count.wrapping_add(1), Relaxed);
    if count >= LEFT_MAX && !count.is_multiple_of(SELDOM) {
        return uncertain;
    }
    let answer = judge();
    unfinished.store(count, Relaxed);
    answer
}

fn unfinished() -> &'static AtomicU32 {
    &UNFINISHED[hash_of_pointer(thread_pointer()) as usize >> 58]
}

/// What was judged not to be left lately, each with a hash of the thread, of what it was and of the place from which it was seen, and above
/// that how often it need not be judged again. A handler that records again and again asks at each record.
static LIVE: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// How often it need not be, at most. In vain it costs some room: what was left counts as live so long.
const LIVE_MAX: u64 = 63;
const LIVE_SHIFT: u32 = 58;

/// Whether what began with the stack at `begun` was left, as `judge` finds, which also answers `false` where it is not certain. The answer
/// `false` holds for some further questions from the same place, `here`.
pub(super) fn judged_left(begun: usize, here: usize, judge: impl FnOnce() -> bool) -> bool {
    /// Bytes of stack that are one place. Between a handler's frame and what it has interrupted there is more.
    const PLACE: usize = 256;
    let pointers = [thread_pointer(), begun, here / PLACE];
    let hash = pointers.iter().fold(0, |hash: u64, &pointer| hash_of_pointer(hash.rotate_left(23) as usize ^ pointer));
    let (live, hash) = (&LIVE[(hash >> LIVE_SHIFT) as usize], hash & ((1 << LIVE_SHIFT) - 1));
    // ORDERING: Relaxed; the word is all that is known, and another thread's has another hash.
    let noted = live.load(Relaxed);
    if noted & ((1 << LIVE_SHIFT) - 1) == hash && noted >> LIVE_SHIFT != 0 {
        live.store(noted - (1 << LIVE_SHIFT), Relaxed);
        return false;
    }
    let is_left = judge();
    if !is_left {
        live.store(hash | LIVE_MAX << LIVE_SHIFT, Relaxed);
    }
    is_left
}

/// The thread has done that for which it had to know what was left.
pub fn end_judgements() {
    unfinished().store(0, Relaxed);
}

/// A hash of a thread pointer, whose upper bits are good.
pub(super) fn hash_of_pointer(pointer: usize) -> u64 {
    (pointer as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is live is judged once for many questions from one place; what is left is judged each time.
    #[test]
    fn what_is_live_is_not_judged_at_each_question() {
        let judgements = |begun, here, is_left| {
            let count = core::cell::Cell::new(0);
            let judge = || {
                count.set(count.get() + 1);
                is_left
            };
            assert!((0..128).all(|_| judged_left(begun, here, judge) == is_left));
            count.get()
        };
        assert_eq!(judgements(0x7000, 0x6000, false), 2);
        assert_eq!(judgements(0x7100, 0x6000, false), 2, "another record");
        assert_eq!(judgements(0x7000, 0x6100, false), 2, "another place");
        assert_eq!(judgements(0x7200, 0x6000, true), 128);
    }

    /// Judgements that are not done when the next one begins: as if jumps had left them.
    #[test]
    fn what_is_left_again_and_again_is_judged_seldom() {
        fn begun_within(others: u32) -> bool {
            judged(false, || others == 0 || begun_within(others - 1))
        }
        assert!(begun_within(LEFT_MAX - 1));
        assert!(!begun_within(LEFT_MAX + 5), "the last one is begun after so many that are not done");
        assert!(begun_within(0), "the others were done");
        unfinished().store(LEFT_MAX, Relaxed);
        let first = (1..).find(|_| judged(false, || true));
        assert_eq!(first, Some(SELDOM - LEFT_MAX + 1));
        end_judgements();
        assert!(judged(false, || true));
    }
}
