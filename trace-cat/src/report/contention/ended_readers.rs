//! Read locks that have ended without a release by the thread that took them.
//!
//! A read lock has no owner: glibc lets any thread release it. And a program may make a lock anew by an assignment, of which there is
//! no record, as a forked child does that has its parent's. Then there are more holds than readers. That shows when a thread releases
//! what it does not have, and when a thread counts fewer readers after it has acquired the lock (rw_readers). Which of the holds have
//! ended is only known if all have.

use super::holds::Hold;
use super::wait_shares::Occupant;

/// How many of an object's holds have ended, of those that began until a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndedReaders {
    /// A recursive hold counts as often as the thread has acquired the lock.
    count: u32,
    until: u64,
    /// The thread that has counted the readers, and when it acquired the lock. It counted them after that, and before its next record.
    pub counted_by: Option<(u32, u64)>,
}

impl EndedReaders {
    fn is_in_question(&self, hold: &Hold) -> bool {
        self.count > 0 && hold.from <= self.until
    }

    fn in_question(&self, holds: &[Hold]) -> u32 {
        holds.iter().filter(|hold| self.is_in_question(hold)).map(|hold| hold.depth).sum()
    }

    /// Whether a hold has ended for certain.
    pub fn has_ended(&self, hold: &Hold, holds: &[Hold]) -> bool {
        self.is_in_question(hold) && self.in_question(holds) <= self.count
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

    /// Takes a release at `now` by a thread that has no hold.
    pub fn end_unknown(&mut self, holds: &mut [Hold], now: u64) {
        (self.count, self.until, self.counted_by) = (self.count + 1, now, None);
        holds.iter_mut().for_each(|hold| hold.may_have_ended = true);
    }

    /// Takes how many readers a thread has counted that acquired the lock at `now`, itself included. Returns whether that shows that
    /// more holds have ended than was known.
    pub fn count(&mut self, holds: &mut [Hold], thread: u32, readers: u64, now: u64) -> bool {
        // What others have acquired at the same time may have been later.
        let before = holds.iter().filter(|hold| hold.from < now);
        let known: u32 = before.map(|hold| hold.depth - u32::from(hold.holder.thread == thread)).sum();
        let excess = known.saturating_sub(u32::try_from(readers.saturating_sub(1)).unwrap_or(u32::MAX));
        if excess <= self.count {
            return false;
        }
        (self.count, self.until, self.counted_by) = (excess, now - 1, Some((thread, now)));
        for hold in holds.iter_mut().filter(|hold| hold.holder.thread != thread && hold.from < now) {
            hold.may_have_ended = true;
        }
        true
    }

    /// Takes that a thread releases its own hold. Where the readers may be being counted, the release may be in the count.
    pub fn end_known(&mut self, hold: &Hold) {
        if self.is_in_question(hold) && self.counted_by.is_some() {
            self.count -= 1;
        }
    }

    /// Removes the holds that have ended for certain, and returns them; `None` if nothing is certain yet.
    pub fn remove_from(&self, holds: &mut Vec<Hold>) -> Option<Vec<Hold>> {
        let in_question = self.in_question(holds);
        if self.count > 0 && (in_question > self.count || in_question > 0 && self.counted_by.is_some()) {
            return None;
        }
        let removed = holds.extract_if(.., |hold| self.is_in_question(hold)).collect();
        holds.iter_mut().for_each(|hold| hold.may_have_ended = false);
        Some(removed)
    }
}
