//! Who holds an object, and who has held it while others wait for it.
//!
//! While threads wait, each change of holders adds a segment of time to a log. When a wait ends, the segments that it covers
//! are its shares. Nothing is logged while nobody waits. A release whose record is missing shows only at the next acquisition:
//! then the segments of that hold are changed, because nobody knows when it ended.

use super::ended_readers::{EndedReaders, ReadersKnown};
use super::holds::{FinishedWait, Hold, Knowledge, Release, Released, WATCH};
use super::pending_wait::PendingWait;
use super::segment_log::SegmentLog;
use super::small_vectors::push;
use super::wait_shares::{Holder, Occupant, WaitShares};

/// The most waits that ended without an acquisition and wait for the next change.
const GIVEN_UP_MAX: usize = 1 << 16;

/// Holders of an object, and the waits for it.
#[derive(Debug, Default)]
pub struct Occupancy {
    /// One, or several readers, those first that have held it longest.
    pub holds: Vec<Hold>,
    is_exclusive: bool,
    /// How many of the holds have ended, if some have that are readers'.
    pub(super) ended: Option<Box<EndedReaders>>,
    /// When the last hold was released, if nobody has had the object since as far as the records show.
    released_at: Option<u64>,
    /// The last recorded acquisition or release.
    changed_at: u64,
    /// The last recorded acquisition by a thread for itself.
    acquired_at: u64,
    /// When it was last certain that nobody had it for reading.
    pub(super) no_readers_at: u64,
    pub(super) readers_known: Option<Box<ReadersKnown>>,
    pub log: SegmentLog,
    waits: Vec<PendingWait>,
    /// How many of them are threads', not times that are watched.
    waiting: u32,
    /// Waits that ended without an acquisition.
    given_up: Vec<PendingWait>,
}

impl Occupancy {
    /// Who has it now.
    pub(super) fn occupant(&self, knowledge: Knowledge) -> Occupant {
        match self.holds[..] {
            [] if knowledge.leaves_calls_out() && !knowledge.is_handed_over => Occupant::Unknown,
            [] if self.released_at.is_some_and(|time| time >= knowledge.complete_from) => Occupant::Nobody,
            [] => Occupant::Unknown,
            // Readers whose records are missing would share the time.
            _ if !self.is_exclusive && (knowledge.only_blocked || self.no_readers_at < knowledge.complete_from) => {
                Occupant::Unknown
            }
            _ if let Some(ended) = &self.ended => ended.occupant(&self.holds),
            _ if self.holds.iter().any(Hold::is_doubtful) => Occupant::Unknown,
            [hold] => Occupant::One(hold.holder),
            _ => Occupant::Several(self.holds.iter().map(|hold| hold.holder).collect()),
        }
    }

    /// Logs the time up to `now`, which has been as it is.
    pub(super) fn advance(&mut self, now: u64, knowledge: Knowledge) {
        let passed = self.log.advance(now);
        if self.waits.is_empty() {
            return self.release_memory();
        }
        if let Some(passed) = passed {
            self.log.push(passed, self.occupant(knowledge));
        }
        if let Some(count) = self.log.excess() {
            self.log.fold(count, self.waits.iter_mut().chain(&mut self.given_up));
        }
    }

    /// Gives back the memory of waits when nobody waits: of a hundred thousand objects few have waiters at a time.
    fn release_memory(&mut self) {
        if self.given_up.is_empty() && self.waits.capacity() > 0 {
            self.waits = Vec::new();
            self.log.release();
        }
    }

    /// Ends all holds, because somebody else has the object although no release is recorded. Returns those that were recorded.
    pub fn lose_holds(&mut self) -> Vec<Hold> {
        if self.holds.is_empty() {
            // Its memory is for the next holder.
            return Vec::new();
        }
        let holds = std::mem::take(&mut self.holds);
        self.ended = None;
        for hold in &holds {
            // Where few releases are recorded, it went on for as long as waiters saw the owner.
            self.log.rewrite_hold(hold.holder, hold.seen, false);
        }
        self.released_at = None;
        holds.into_iter().filter(|hold| hold.is_recorded).collect()
    }

    /// Takes an acquisition whose depth is not known. Returns recorded holds whose release is missing.
    pub fn lose_track(&mut self, now: u64, knowledge: Knowledge) -> Vec<Hold> {
        let lost = self.lose_holds();
        self.advance(now, knowledge);
        (self.released_at, self.changed_at) = (None, now);
        lost
    }

    /// Whether it is certain that nobody has the object.
    pub fn is_free(&self, knowledge: Knowledge) -> bool {
        let is_complete = knowledge.complete_from == 0 && !knowledge.leaves_calls_out();
        self.holds.is_empty() && (is_complete || self.occupant(knowledge) == Occupant::Nobody)
    }

    /// Ends the hold of a thread that died at `end`, which the next owner learns.
    pub fn end_dead_hold(&mut self, end: u64, now: u64, knowledge: Knowledge) -> Option<Hold> {
        self.advance(now, knowledge);
        let hold = self.holds.pop()?;
        self.log.rewrite_hold(hold.holder, end.max(hold.from), true);
        self.released_at = Some(now);
        Some(hold)
    }

    /// Ends a thread's hold at `now`: what the thread does then is not recorded.
    pub fn forget_thread(&mut self, thread: u32, now: u64, knowledge: Knowledge) -> Option<Hold> {
        self.advance(now, knowledge);
        let index = self.position(thread)?;
        (self.released_at, self.changed_at) = (None, now);
        let hold = self.holds.remove(index);
        self.forget_reader(&hold);
        Some(hold)
    }

    fn position(&self, thread: u32) -> Option<usize> {
        self.holds.iter().position(|hold| hold.holder.thread == thread)
    }

    /// Whether the one holder has the object for itself.
    pub fn is_exclusive(&self) -> bool {
        self.is_exclusive && !self.holds.is_empty()
    }

    /// Whether nobody has it, waits for it, or has given up a wait that is not accounted.
    pub fn is_quiet(&self) -> bool {
        self.holds.is_empty() && self.waits.is_empty() && self.given_up.is_empty()
    }

    /// When a thread last acquired it for itself, as far as that is recorded.
    pub fn acquired_at(&self) -> u64 {
        self.acquired_at
    }

    /// When a thread last acquired or released it, as far as that is recorded.
    pub fn changed_at(&self) -> u64 {
        self.changed_at
    }

    /// Whether threads wait for it, or were woken and want it.
    pub fn has_waiters(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Whether threads wait for it.
    pub fn has_waiting_threads(&self) -> bool {
        self.waiting > 0
    }

    /// Takes whether another process may have the object instead of a thread that has it as far as is known.
    pub fn set_doubt(&mut self, thread: u32, may_be_elsewhere: bool) {
        let of_thread = self.holds.iter_mut().filter(|hold| hold.holder.thread == thread);
        of_thread.for_each(|hold| hold.may_be_elsewhere = may_be_elsewhere);
    }

    /// How often a thread has the object.
    pub fn depth(&self, thread: u32) -> u32 {
        self.position(thread).map_or(0, |index| self.holds[index].depth)
    }

    /// Takes an acquisition; `depth` is how often the thread has the object then. Returns recorded holds whose release is missing.
    pub fn acquire(
        &mut self,
        holder: Holder,
        depth: u32,
        is_exclusive: bool,
        now: u64,
        knowledge: Knowledge,
    ) -> Vec<Hold> {
        let own = self.position(holder.thread).map(|index| self.holds[index]);
        let mut lost = Vec::new();
        if knowledge.is_partial {
            self.advance(now, knowledge);
            return lost;
        }
        match own {
            // Its acquisition was recorded after others had seen the owner.
            Some(own) if !own.is_recorded && self.holds.len() == 1 => {
                self.advance(now, knowledge);
                self.holds.clear();
            }
            Some(own) if depth > 1 || (!is_exclusive && !self.is_exclusive) => {
                if let Some(hold) = self.holds.iter_mut().find(|hold| hold.holder.thread == holder.thread) {
                    hold.depth = if is_exclusive { depth } else { own.depth + 1 };
                }
                return lost;
            }
            _ if is_exclusive || self.is_exclusive => {
                lost = self.lose_holds();
                self.advance(now, knowledge);
            }
            _ => self.advance(now, knowledge),
        }
        push(&mut self.holds, Hold::new(holder, now, true, depth));
        (self.is_exclusive, self.released_at, self.changed_at) = (is_exclusive, None, now);
        if is_exclusive {
            (self.acquired_at, self.no_readers_at) = (now, now);
        }
        lost
    }

    /// Takes a release. Where no acquisition is known, the thread had the object since the last
    /// change, or since records are complete. Returns also recorded holds whose release is missing.
    pub fn release(&mut self, thread: u32, how: Release, now: u64, knowledge: Knowledge) -> (Released, Vec<Hold>) {
        if let Some(index) = self.position(thread) {
            if self.holds[index].depth > 1 && how != Release::Complete {
                let hold = self.holds[index];
                self.holds[index].depth -= 1;
                return (Released::Inner, self.end_reader(&hold));
            }
            self.advance(now, knowledge);
            let hold = self.holds.remove(index);
            let ended = self.end_reader(&hold);
            self.changed_at = now;
            // Other readers may hold it whose records are missing.
            let is_outer = how != Release::PerhapsInner || hold.is_recorded;
            let is_free = is_outer && (self.is_exclusive || self.no_readers_at >= knowledge.complete_from);
            self.released_at = (self.holds.is_empty() && is_free).then_some(now);
            if self.is_exclusive {
                self.no_readers_at = now;
            }
            return (Released::Hold(hold), ended);
        }
        let mut lost = Vec::new();
        if let Some(&hold) = self.holds.first() {
            if !self.is_exclusive && how == Release::OfReader {
                self.advance(now, knowledge);
                self.ended.get_or_insert_default().end_unknown(&mut self.holds, now);
                lost = self.remove_ended();
                self.changed_at = now;
                self.released_at = (self.holds.is_empty()).then_some(now);
                return match lost[..] {
                    [hold] => (Released::Hold(hold), Vec::new()),
                    _ => (Released::OfReader, lost),
                };
            }
            if !self.is_exclusive {
                return (Released::NotHeld, lost);
            }
            let is_certain = !knowledge.only_blocked && hold.from >= knowledge.complete_from && hold.is_recorded;
            if is_certain && how == Release::ForWait {
                // A wait for a condition without the mutex, which fails.
                return (Released::HeldByAnother, lost);
            }
            if is_certain {
                self.advance(now, knowledge);
                self.holds.clear();
                (self.changed_at, self.released_at) = (now, Some(now));
                return (Released::Hold(hold), lost);
            }
            lost = self.lose_holds();
        }
        self.advance(now, knowledge);
        if knowledge.is_partial {
            return (Released::NotHeld, lost);
        }
        if how == Release::PerhapsShared && !knowledge.only_blocked {
            // Others may still have it for reading.
            (self.changed_at, self.released_at) = (now, None);
            return (Released::NotHeld, lost);
        }
        let from = if knowledge.only_blocked { 0 } else { knowledge.complete_from }.max(self.changed_at);
        if from < now {
            let holder = Holder { thread, site: 0 };
            self.log.rewrite(from, |occupant| (*occupant == Occupant::Unknown).then_some(Occupant::One(holder)));
        }
        let is_outer = how != Release::PerhapsInner || knowledge.complete_from == 0;
        (self.changed_at, self.released_at) = (now, is_outer.then_some(now));
        (Released::NotHeld, lost)
    }

    /// Takes what a waiting thread saw: this thread holds the object. It counts only where acquisitions may not be recorded.
    /// Returns recorded holds whose release is missing.
    pub fn observe_owner(&mut self, thread: u32, now: u64, knowledge: Knowledge) -> Vec<Hold> {
        let is_complete = !knowledge.only_blocked && knowledge.complete_from <= self.changed_at;
        if let Some(index) = self.position(thread) {
            self.holds[index].seen = now;
        }
        if is_complete || knowledge.is_partial || self.position(thread).is_some() {
            return Vec::new();
        }
        let lost = self.lose_holds();
        self.advance(now, knowledge);
        let holder = Holder { thread, site: 0 };
        push(&mut self.holds, Hold::new(holder, now, false, 1));
        (self.is_exclusive, self.changed_at) = (true, now);
        lost
    }

    /// Takes a call of a thread that does not wait for the object.
    pub fn pass(&mut self, now: u64, knowledge: Knowledge) {
        self.advance(now, knowledge);
        if self.waits.is_empty() && self.given_up.is_empty() {
            self.log.clear();
        }
    }

    /// Takes the beginning of a wait, or of a time that is watched, with a key that no other wait for the object has.
    pub fn begin_wait(&mut self, key: u64, site: u32, now: u64, knowledge: Knowledge) {
        self.pass(now, knowledge);
        if self.waits.is_empty() && knowledge.only_blocked {
            // While nobody waited, neither a release nor an acquisition made a record.
            (self.holds, self.released_at) = Default::default();
        }
        // A thread that is woken while nobody holds the mutex does not wait for it. While somebody does, those that were woken
        // before do.
        let has_watches = self.waits.len() > self.waiting as usize && !self.holds.is_empty();
        let woken: u32 = if has_watches { self.waits.iter().map(|wait| wait.woken).sum() } else { 0 };
        let rank = self.waiting + woken + u32::from(key < WATCH || !self.holds.is_empty());
        self.waiting += u32::from(key < WATCH);
        let (first, divided_until) = (self.log.current(), self.log.divided_from(now));
        push(&mut self.waits, PendingWait { key, entry: now, divided_until, site, first, rank, ..Default::default() });
    }

    /// Takes the beginning of a time that is watched for some threads that were woken, and want the object next.
    pub fn begin_watch(&mut self, key: u64, woken: u32, now: u64, knowledge: Knowledge) {
        self.begin_wait(key, 0, now, knowledge);
        self.waits.last_mut().into_iter().for_each(|watch| watch.woken = woken);
    }

    /// The threads that wait for the object.
    pub fn waiting_threads(&self) -> Vec<u32> {
        self.waits.iter().filter(|wait| wait.end.is_none() && wait.key < WATCH).map(|wait| wait.key as u32).collect()
    }

    /// Ends a wait at `now`, when the thread has not acquired the object yet.
    pub fn end_wait(&mut self, key: u64, now: u64, knowledge: Knowledge) -> Option<FinishedWait> {
        self.advance(now, knowledge);
        self.remove_wait(key).map(|(_, wait)| self.finish(now, wait))
    }

    /// Removes the wait that has begun last with a key; returns also its place.
    fn remove_wait(&mut self, key: u64) -> Option<(usize, PendingWait)> {
        let index = self.waits.iter().rposition(|wait| wait.key == key)?;
        self.waiting -= u32::from(key < WATCH);
        Some((index, self.waits.remove(index)))
    }

    /// The shares of the time watched under a key, up to `now`, when one of the woken threads has the object, and how many threads
    /// waited when it began if one was woken.
    pub fn watched(&mut self, key: u64, now: u64, knowledge: Knowledge) -> (WaitShares, u32) {
        self.advance(now, knowledge);
        let wait = self.waits.iter_mut().find(|wait| wait.key == key);
        wait.map_or_else(Default::default, |wait| {
            wait.woken = wait.woken.saturating_sub(1);
            (self.log.shares(wait, now), wait.rank)
        })
    }

    /// Forgets what had been taken for a wait.
    pub fn cancel_wait(&mut self, key: u64) {
        if let Some((index, _)) = self.remove_wait(key).filter(|_| key < WATCH) {
            // Those that began later had one waiter less before them.
            self.waits[index..].iter_mut().for_each(|wait| wait.rank = wait.rank.saturating_sub(1));
        }
    }

    /// Ends a wait without an acquisition. `take_finished` returns it after the next change, which may show a missing release.
    pub fn give_up_wait(&mut self, key: u64, has_timed_out: bool, now: u64, knowledge: Knowledge) {
        self.advance(now, knowledge);
        if let Some((_, wait)) = self.remove_wait(key) {
            self.given_up.push(PendingWait { end: Some(now), has_timed_out, ..wait });
        }
    }

    /// Whether so many waits ended without an acquisition that they have to be accounted before the next change.
    pub fn has_many_given_up(&self) -> bool {
        self.given_up.len() >= GIVEN_UP_MAX
    }

    /// Removes the waits that ended without an acquisition.
    pub fn take_finished(&mut self) -> Vec<FinishedWait> {
        if self.given_up.is_empty() {
            return Vec::new();
        }
        let given_up = std::mem::take(&mut self.given_up);
        given_up.into_iter().map(|wait| self.finish(wait.end.unwrap_or(wait.entry), wait)).collect()
    }

    fn finish(&self, end: u64, wait: PendingWait) -> FinishedWait {
        let shares = self.log.shares(&wait, end);
        wait.finished(end, shares)
    }
}
