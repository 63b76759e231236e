//! The log of an object's occupants while threads wait for it.

use std::collections::VecDeque;
use std::ops::Range;

use super::pending_wait::PendingWait;
use super::small_vectors::push_back;
use super::wait_shares::{Holder, Occupant, Segment, WaitShares};

/// The most segments of a log; of more, the older ones are added to the shares of the waits that cover them.
const SEGMENTS_MAX: usize = 4096;
/// So many holders of a wait are noted before they are brought in order: many readers hold in many segments.
const APPENDED_MAX: usize = 64;

/// Segments of time without a gap, in order, and who had the object in each.
#[derive(Debug, Default)]
pub struct SegmentLog {
    segments: VecDeque<Segment>,
    /// How many segments were removed from the beginning.
    removed: u64,
    /// The end of the log.
    logged_until: u64,
    /// Only the parts of waits in these times are divided, if there are some.
    pub divided_times: Option<Box<Range<u64>>>,
}

impl SegmentLog {
    /// Moves the end to `now`. Returns the time that passed, if any did.
    pub fn advance(&mut self, now: u64) -> Option<(u64, u64)> {
        let from = self.logged_until;
        self.logged_until = now.max(from);
        (now > from).then_some((from, now))
    }

    /// Logs that time, in which the occupant has not changed.
    pub fn push(&mut self, (from, to): (u64, u64), occupant: Occupant) {
        match self.segments.back_mut() {
            Some(last) if last.occupant == occupant => last.to = to,
            _ => push_back(&mut self.segments, Segment { from, to, occupant }),
        }
    }

    /// How many older segments are to be folded, if there are many.
    pub fn excess(&self) -> Option<usize> {
        (self.segments.len() > SEGMENTS_MAX).then_some(SEGMENTS_MAX / 2)
    }

    /// Adds the first `count` segments to the shares of the waits that cover them, and removes them.
    pub fn fold<'a>(&mut self, count: usize, waits: impl Iterator<Item = &'a mut PendingWait>) {
        let until = self.segments[count].from;
        for wait in waits {
            let until = wait.end.map_or(until, |end| end.min(until));
            wait.shares = self.shares(wait, until);
            wait.divided_until = until.max(wait.divided_until);
        }
        self.segments.drain(..count);
        self.removed += count as u64;
    }

    /// The number of the segment that a wait begins in which begins now.
    pub fn current(&self) -> u64 {
        (self.removed + self.segments.len() as u64).saturating_sub(1)
    }

    /// From when on a wait is divided that begins at `now`.
    pub fn divided_from(&self, now: u64) -> u64 {
        now.max(self.divided_times.as_ref().map_or(0, |times| times.start))
    }

    /// Removes all segments.
    pub fn clear(&mut self) {
        if self.segments.is_empty() {
            return;
        }
        self.removed += self.segments.len() as u64;
        self.segments.clear();
    }

    /// Removes all segments, and gives back their memory.
    pub fn release(&mut self) {
        self.clear();
        self.segments = VecDeque::new();
    }

    /// The shares of a wait up to `until`, which is not after the end of the log. Its holders are not in order.
    pub fn shares(&self, wait: &PendingWait, until: u64) -> WaitShares {
        let until = self.divided_times.as_ref().map_or(until, |times| times.end.min(until));
        let mut shares = wait.shares.clone();
        let mut divided_until = wait.divided_until;
        let first = wait.first.saturating_sub(self.removed) as usize;
        let mut appended_max = shares.blamed.len() + APPENDED_MAX;
        shares.blamed.reserve_exact(self.segments.len().saturating_sub(first).min(APPENDED_MAX));
        let mut has_readers = false;
        for segment in self.segments.iter().skip(first) {
            let (from, to) = (segment.from.max(divided_until), segment.to.min(until));
            has_readers |= matches!(segment.occupant, Occupant::Several(_));
            if from < to {
                shares.unknown += from - divided_until;
                shares.append(&segment.occupant, to - from);
                divided_until = to;
                if shares.blamed.len() > appended_max {
                    shares.put_in_order();
                    appended_max = 2 * shares.blamed.len() + APPENDED_MAX;
                }
            } else if segment.from >= until {
                break;
            }
        }
        shares.unknown += until.saturating_sub(divided_until);
        if has_readers {
            shares.put_in_order();
        }
        shares
    }

    /// Replaces the occupants of the segments from `from` on.
    pub fn rewrite(&mut self, from: u64, change: impl Fn(&Occupant) -> Option<Occupant>) {
        let mut index = self.segments.len();
        while index > 0 && self.segments[index - 1].to > from {
            index -= 1;
            let segment = &mut self.segments[index];
            let Some(occupant) = change(&segment.occupant) else { continue };
            let old = std::mem::replace(&mut segment.occupant, occupant);
            if segment.from < from {
                let before = Segment { from: segment.from, to: from, occupant: old };
                segment.from = from;
                // Waits whose first segment has a later number begin one segment earlier, which their times leave out.
                self.segments.insert(index, before);
                break;
            }
        }
    }

    /// Forgets a hold from `from` on: then somebody unknown had the object, or nobody if `is_free`.
    pub fn rewrite_hold(&mut self, holder: Holder, from: u64, is_free: bool) {
        self.rewrite(from, |occupant| match occupant {
            Occupant::One(known) if *known == holder => {
                Some(if is_free { Occupant::Nobody } else { Occupant::Unknown })
            }
            Occupant::Several(holders) if holders.contains(&holder) => {
                let others: Box<[Holder]> = holders.iter().copied().filter(|known| *known != holder).collect();
                Some(if let [one] = others[..] { Occupant::One(one) } else { Occupant::Several(others) })
            }
            _ => None,
        });
    }
}
