//! The soft mark: a buffer that is nearly full goes to its file where its thread holds no lock, if that comes soon.
//!
//! A write takes tens of microseconds. If the thread holds a lock meanwhile, others wait for it that would not have waited
//! without us. So a region's limit stands some records below where it is full. From there on the locks that the thread
//! takes and gives back are counted. How many it held before is not known, so the write is made when it holds fewer than
//! at the mark; when no such moment has come in half of the room that is left, when it gives back the last lock that it
//! has taken since; and when the region is full, in any case.

use core::sync::atomic::Ordering::Relaxed;

use spec::LockEffect;
use spec::encode::UntimedRecord;

use crate::slot::Slot;

/// Bytes between the mark and where a region is full: some fifty records.
pub const SLACK: u32 = 4096;

/// Counts what `lines` take and give back, and says whether this is the moment to write. `end` is how full the region was
/// before them, and `full` how full it may become.
pub fn is_moment(slot: &Slot, lines: &[UntimedRecord], end: u32, full: u32) -> bool {
    let change: i32 = lines.iter().map(change).sum();
    // ORDERING: only the slot's owner looks at these two.
    let held = slot.held_since_flush_point.load(Relaxed) + change;
    let fewest = slot.fewest_held_since_flush_point.load(Relaxed);
    slot.held_since_flush_point.store(held, Relaxed);
    slot.fewest_held_since_flush_point.store(fewest.min(held), Relaxed);
    held < fewest || held == fewest && change <= 0 && end + SLACK / 2 >= full
}

/// The region has been written: the count begins anew.
pub fn reset(slot: &Slot) {
    slot.held_since_flush_point.store(0, Relaxed);
    slot.fewest_held_since_flush_point.store(0, Relaxed);
}

/// By how much this record changes the number of locks that its thread holds.
fn change(line: &UntimedRecord) -> i32 {
    let failed = |rval: usize| line.arguments.get(rval).is_some_and(|rval| *rval != 0);
    match line.kind.lock_effect {
        LockEffect::None => 0,
        LockEffect::Acquires { rval } | LockEffect::Releases { rval } if failed(rval) => 0,
        LockEffect::Acquires { .. } => 1,
        LockEffect::Releases { .. } => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::id;

    const LOCK: [UntimedRecord; 2] = [
        UntimedRecord { kind: &id::MUTEX_LOCK_1, arguments: [7, 0, 0, 0, 0] },
        UntimedRecord { kind: &id::MUTEX_LOCK_2, arguments: [0; 5] },
    ];
    const UNLOCK: [UntimedRecord; 1] = [UntimedRecord { kind: &id::MUTEX_UNLOCK_0, arguments: [7, 0, 0, 0, 0] }];
    const FAILED_TRY: [UntimedRecord; 1] = [UntimedRecord { kind: &id::RW_TRYRDLOCK_0, arguments: [7, 16, 0, 0, 0] }];
    const POST: [UntimedRecord; 1] = [UntimedRecord { kind: &id::SEMA_POST_0, arguments: [7, 0, 0, 0, 0] }];

    /// After how many of these, each of 100 bytes, the region is written.
    fn written_after(calls: &[&[UntimedRecord]]) -> Option<usize> {
        // SAFETY: zeros are a valid slot, and only two of its words are looked at.
        let slot: Box<Slot> = unsafe { Box::new(std::mem::zeroed()) };
        let mut ends = (0..).map(|turn| turn * 100);
        calls.iter().position(|lines| is_moment(&slot, lines, ends.next().unwrap(), SLACK)).map(|at| at + 1)
    }

    #[test]
    fn the_write_waits_for_the_lock_that_was_held_to_be_given_back() {
        assert_eq!(written_after(&[&POST, &UNLOCK]), Some(2));
        // An outer lock is held: not between the inner ones.
        assert_eq!(written_after(&[&LOCK, &UNLOCK, &LOCK, &FAILED_TRY, &UNLOCK, &UNLOCK]), Some(6));
    }

    #[test]
    fn without_such_a_moment_the_next_best_is_taken() {
        let pairs: Vec<&[UntimedRecord]> = [&LOCK[..], &UNLOCK].into_iter().cycle().take(100).collect();
        // Half of the slack is 2,048 bytes: the first that begins there is the 22nd, an unlock.
        assert_eq!(written_after(&pairs), Some(22));
        let posts: Vec<&[UntimedRecord]> = [&POST[..]].into_iter().cycle().take(100).collect();
        assert_eq!(written_after(&posts), Some(22));
        // A thread that only takes has none.
        assert_eq!(written_after(&[&LOCK[..]; 40]), None);
    }
}
