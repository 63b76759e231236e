//! The holds of readers, of which some may have ended without a release.

use super::ended_readers::{ReaderCount, ReadersKnown};
use super::holds::{Hold, Knowledge};
use super::occupancy::Occupancy;

impl Occupancy {
    fn note_readers(&mut self, known: ReadersKnown) {
        **self.readers_known.get_or_insert_default() = known;
    }

    /// Takes that a thread releases the lock that is no reader as far as is known. Returns whether it was counted as a reader.
    pub fn take_unknown_reader(&mut self) -> bool {
        let known = self.readers_known.as_mut().filter(|known| known.others > 0);
        known.map(|known| known.others -= 1).is_some()
    }

    /// Takes that any of the readers may have ended: a thread released the lock that may have been none of them.
    pub fn doubt_readers(&mut self, now: u64, knowledge: Knowledge) {
        self.advance(now, knowledge);
        self.ended.get_or_insert_default().doubt(&mut self.holds, now);
    }

    /// Whether a hold has ended for certain, although the thread has not released it.
    pub fn has_ended(&self, hold: &Hold) -> bool {
        self.ended.as_ref().is_some_and(|ended| ended.has_ended(hold, &self.holds))
    }

    /// Takes how many readers a thread has counted that acquired the lock at `now`, itself included; 0 if that is not known.
    pub fn count_readers(&mut self, thread: u32, readers: u64, now: u64, knowledge: Knowledge) {
        if readers == 0 || self.is_exclusive() || knowledge.only_blocked || knowledge.is_partial {
            return;
        }
        let mut ended = self.ended.as_deref().copied().unwrap_or_default();
        if self.ended.is_some() {
            self.advance(now, knowledge);
        }
        match ended.count(&mut self.holds, thread, readers, now) {
            ReaderCount::Fewer => {}
            ReaderCount::All => {
                self.note_readers(ReadersKnown { counted_by: thread, counted_at: now, others: 0 });
                return self.ended = None;
            }
            ReaderCount::More(others) => {
                return self.note_readers(ReadersKnown { counted_by: thread, counted_at: now, others });
            }
            ReaderCount::Unclear => return,
        }
        self.advance(now, knowledge);
        for hold in self.holds.iter().filter(|hold| hold.may_have_ended) {
            // Nobody knows since when.
            self.log.rewrite_hold(hold.holder, hold.seen, false);
        }
        self.ended = Some(Box::new(ended));
    }

    /// The thread that has counted the readers, and when it acquired the lock, if a later release may be in its count.
    pub fn counting(&self) -> Option<(u32, u64)> {
        self.ended.as_ref()?.counted_by
    }

    /// Takes that the thread has done so.
    pub fn end_count(&mut self) -> Vec<Hold> {
        self.ended.iter_mut().for_each(|ended| ended.end_count());
        self.remove_ended()
    }

    /// Ends the holds that have ended for certain. Returns them.
    pub(super) fn remove_ended(&mut self) -> Vec<Hold> {
        let removed = self.ended.as_ref().and_then(|ended| ended.remove_from(&mut self.holds));
        if removed.is_some() {
            self.ended = None;
        }
        removed.unwrap_or_default()
    }

    /// Takes that a thread releases its own hold. Returns those that have ended for certain.
    pub(super) fn end_reader(&mut self, hold: &Hold) -> Vec<Hold> {
        self.ended.iter_mut().for_each(|ended| ended.end_known(hold));
        self.remove_ended()
    }

    /// Takes that a hold was removed of which nobody knows whether it had ended.
    pub(super) fn forget_reader(&mut self, hold: &Hold) {
        self.ended.iter_mut().for_each(|ended| ended.forget(hold));
        if self.holds.is_empty() {
            self.ended = None;
        }
    }
}
