//! Judgements whether something was left by a jump, which jumps may leave in their turn.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

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
