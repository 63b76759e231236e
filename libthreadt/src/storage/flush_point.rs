//! Where a buffer that is nearly full is written: at a record after which its thread holds no lock, if that comes soon.
//!
//! A write takes tens of microseconds. If the thread held a lock meanwhile, other threads would wait for it that would
//! not have waited without this library. So a region's flush threshold is some records below where the region is full.
//! From there on the locks that the thread takes and releases are counted. How many it held before is unknown, so the
//! write is made when the thread holds fewer than at the threshold; if half of the remaining room is used up before
//! that, when it releases the last lock that it has taken since; and in any case when the region is full.

use core::sync::atomic::Ordering::Relaxed;

use spec::LockEffect;
use spec::encode::UntimedRecord;

use super::layout::FLUSH_POINT_SLACK;
use super::slot_control::SlotControl;

/// Counts the locks that `lines` take and release, and returns whether the region is to be written after them. `end` is
/// how full it was before them, and `full` how full it may become.
pub fn is_flush_point(slot: &SlotControl, lines: &[UntimedRecord], end: u32, full: u32) -> bool {
    let change: i32 = lines.iter().map(change).sum();
    // ORDERING: Relaxed; only the slot's owner uses these two.
    let held = slot.held_since_flush_point.load(Relaxed) + change;
    let fewest = slot.fewest_held_since_flush_point.load(Relaxed);
    slot.held_since_flush_point.store(held, Relaxed);
    slot.fewest_held_since_flush_point.store(fewest.min(held), Relaxed);
    held < fewest || held == fewest && change <= 0 && end + FLUSH_POINT_SLACK / 2 >= full
}

/// The region has been written: the count begins anew.
pub fn restart_count(slot: &SlotControl) {
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
    use super::super::tests::new_slot;
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
        let directory = tempfile::tempdir().unwrap();
        let slot = new_slot(directory.path(), 5);
        let mut ends = (0..).map(|line| line * 100);
        calls
            .iter()
            .position(|lines| is_flush_point(&slot, lines, ends.next().unwrap(), FLUSH_POINT_SLACK))
            .map(|at| at + 1)
    }

    #[test]
    fn the_write_waits_for_the_lock_that_was_held_to_be_given_back() {
        assert_eq!(written_after(&[&POST, &UNLOCK]), Some(2));
        // An outer lock is held: not between the inner ones.
        assert_eq!(written_after(&[&LOCK, &UNLOCK, &LOCK, &FAILED_TRY, &UNLOCK, &UNLOCK]), Some(6));
    }

    #[test]
    fn without_such_a_point_the_next_best_is_taken() {
        let pairs: Vec<&[UntimedRecord]> = [&LOCK[..], &UNLOCK].into_iter().cycle().take(100).collect();
        // Half of the slack is 2,048 bytes: the first that begins there is the 22nd, an unlock.
        assert_eq!(written_after(&pairs), Some(22));
        let posts: Vec<&[UntimedRecord]> = [&POST[..]].into_iter().cycle().take(100).collect();
        assert_eq!(written_after(&posts), Some(22));
        // A thread that only takes locks has none.
        assert_eq!(written_after(&[&LOCK[..]; 40]), None);
    }
}
