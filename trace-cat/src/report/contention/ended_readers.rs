//! Read locks that have ended without a release by the thread that took them.
//!
//! A read lock has no owner: glibc lets any thread release it. And a program may make a lock anew by an assignment, of which there is
//! no record, as a forked child does that has its parent's. Then there are more holds than readers. That shows when a thread releases
//! what it does not have, and when a thread counts fewer readers after it has acquired the lock (rw_readers). Which of the holds have
//! ended is only known if all have.

use super::holds::Hold;
use super::wait_shares::Occupant;

/// How many of an object's holds have ended at least, of those that began until a time. Any of them may have ended, also if that is 0:
/// a release took effect just before a count, or it did not, and another hold had ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndedReaders {
    /// As the releases show, and counts that no later release can be in. A recursive hold counts as often as the thread has acquired
    /// the lock.
    certain: u32,
    /// As the last count of the readers shows, while a later release may be in it.
    counted: u32,
    until: u64,
    /// The thread that has counted the readers, and when it acquired the lock. It counted them after that, and before its next record.
    pub counted_by: Option<(u32, u64)>,
}

/// What a count of the readers shows of the holds that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderCount {
    /// More of them have ended than was known.
    Fewer,
    /// They go on, and there are no others. It could be otherwise if a reader's record came only after the count, just where one was
    /// missing; the next count would show that.
    All,
    /// So many others hold it, whose acquisitions have no record.
    More(u32),
    Unclear,
}

/// The last count of the readers that had all those which are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadersKnown {
    /// The thread that has counted them, and when it acquired the lock. It counted them after that, and before its next record.
    pub counted_by: u32,
    pub counted_at: u64,
    /// How many others it counted, whose acquisitions have no record, and which have not released the lock since.
    pub others: u32,
}

impl EndedReaders {
    fn is_in_question(&self, hold: &Hold) -> bool {
        hold.from <= self.until
    }

    fn at_least(&self) -> u32 {
        self.certain.max(self.counted)
    }

    fn in_question(&self, holds: &[Hold]) -> u32 {
        holds.iter().filter(|hold| self.is_in_question(hold)).map(|hold| hold.depth).sum()
    }

    /// Whether a hold has ended for certain.
    pub fn has_ended(&self, hold: &Hold, holds: &[Hold]) -> bool {
        self.is_in_question(hold) && self.in_question(holds) <= self.at_least()
    }

    /// Who has the object.
    pub fn occupant(&self, holds: &[Hold]) -> Occupant {
        let readers: Vec<&Hold> = holds.iter().filter(|hold| !self.has_ended(hold, holds)).collect();
        match readers[..] {
            [] => Occupant::Unknown,
            _ if readers.iter().any(|hold| hold.is_doubtful()) => Occupant::Unknown,
            [hold] => Occupant::One(hold.holder),
            _ => Occupant::Several(readers.iter().map(|hold| hold.holder).collect()),
        }
    }

    /// Takes a release at `now` by a thread that has no hold. Where the readers may be being counted, it may be in the count.
    pub fn end_unknown(&mut self, holds: &mut [Hold], now: u64) {
        self.certain += 1;
        self.doubt(holds, now);
    }

    /// Takes that any of the holds may have ended until `now`.
    pub fn doubt(&mut self, holds: &mut [Hold], now: u64) {
        self.until = now;
        holds.iter_mut().for_each(|hold| hold.may_have_ended = true);
    }

    /// Takes how many readers a thread has counted that acquired the lock at `now`, itself included.
    pub fn count(&mut self, holds: &mut [Hold], thread: u32, readers: u64, now: u64) -> ReaderCount {
        let others = u32::try_from(readers.saturating_sub(1)).unwrap_or(u32::MAX);
        // What others have acquired at the same time may have been later.
        let is_before = |hold: &Hold| hold.from < now;
        let before = holds.iter().filter(|hold| is_before(hold));
        let known: u32 = before.map(|hold| hold.depth - u32::from(hold.holder.thread == thread)).sum();
        let excess = known.saturating_sub(others);
        if excess > self.at_least() {
            // A release that may be in an earlier count may be in this one, too.
            (self.counted, self.until, self.counted_by) = (excess, self.until.max(now - 1), Some((thread, now)));
            for hold in holds.iter_mut().filter(|hold| hold.holder.thread != thread && is_before(hold)) {
                hold.may_have_ended = true;
            }
            return ReaderCount::Fewer;
        }
        let is_clear = self.at_least() == 0 && holds.iter().all(|hold| hold.holder.thread == thread || is_before(hold));
        match others.checked_sub(known) {
            Some(0) if is_clear => {}
            Some(more) if is_clear => return ReaderCount::More(more),
            _ => return ReaderCount::Unclear,
        }
        for hold in holds.iter_mut() {
            (hold.seen, hold.may_have_ended) = (now, false);
        }
        ReaderCount::All
    }

    /// Takes that no later release can be in the count of the readers.
    pub fn end_count(&mut self) {
        (self.certain, self.counted, self.counted_by) = (self.at_least(), 0, None);
    }

    /// Takes that a thread releases its own hold once. Where the readers may be being counted, the release may be in the count.
    pub fn end_known(&mut self, hold: &Hold) {
        if self.is_in_question(hold) {
            self.counted = self.counted.saturating_sub(1);
        }
    }

    /// Takes that a hold is removed of which nobody knows whether it had ended.
    pub fn forget(&mut self, hold: &Hold) {
        if self.is_in_question(hold) {
            self.certain = self.certain.saturating_sub(hold.depth);
            self.counted = self.counted.saturating_sub(hold.depth);
        }
    }

    /// Removes the holds that have ended for certain, and returns them; `None` if some are left that may have ended.
    pub fn remove_from(&self, holds: &mut Vec<Hold>) -> Option<Vec<Hold>> {
        let in_question = self.in_question(holds);
        if in_question > self.at_least() || in_question > 0 && self.counted_by.is_some() {
            return None;
        }
        let removed = holds.extract_if(.., |hold| self.is_in_question(hold)).collect();
        holds.iter_mut().for_each(|hold| hold.may_have_ended = false);
        Some(removed)
    }
}
