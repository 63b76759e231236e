//! Who holds an object, and who has held it while others wait for it.
//!
//! While threads wait, each change of holders adds a segment of time to a log. When a wait ends, the segments that it covers
//! are its shares. Nothing is logged while nobody waits. A release whose record is missing shows only at the next acquisition:
//! then the segments of that hold are changed, because nobody knows when it ended.

use std::collections::VecDeque;

use super::holds::{FinishedWait, Hold, Knowledge, Release, Released, WATCH};
use super::pending_wait::PendingWait;
use super::small_vectors::{push, push_back};
use super::wait_shares::{Holder, Occupant, Segment, WaitShares};

/// The most waits that ended without an acquisition and wait for the next change.
const GIVEN_UP_MAX: usize = 1 << 16;
/// The most segments of a log; of more, the older ones are added to the shares of the waits that cover them.
const SEGMENTS_MAX: usize = 4096;

/// Holders of an object, and the waits for it.
#[derive(Debug, Default)]
pub struct Occupancy {
    /// One, or several readers, those first that have held it longest.
    pub holds: Vec<Hold>,
    is_exclusive: bool,
    /// When the last hold was released, if nobody has had the object since as far as the records show.
    released_at: Option<u64>,
    /// The last recorded acquisition or release.
    changed_at: u64,
    /// When it was last certain that nobody had it for reading.
    no_readers_at: u64,
    /// The end of the log.
    logged_until: u64,
    log: VecDeque<Segment>,
    /// How many segments were removed from the beginning of the log.
    removed: u64,
    waits: Vec<PendingWait>,
    /// How many of them are threads', not times that are watched.
    waiting: u32,
    /// Waits that ended without an acquisition.
    given_up: Vec<PendingWait>,
    /// Only the parts of waits from the first time on and before the second are divided.
    pub divided_times: (u64, Option<u64>),
}

impl Occupancy {
    fn occupant(&self, knowledge: Knowledge) -> Occupant {
        match self.holds[..] {
            [] if knowledge.leaves_calls_out() && !knowledge.is_handed_over => Occupant::Unknown,
            [] if self.released_at.is_some_and(|time| time >= knowledge.complete_from) => Occupant::Nobody,
            [] => Occupant::Unknown,
            // Readers whose records are missing would share the time.
            _ if !self.is_exclusive && (knowledge.only_blocked || self.no_readers_at < knowledge.complete_from) => {
                Occupant::Unknown
            }
            [hold] => Occupant::One(hold.holder),
            _ => Occupant::Several(self.holds.iter().map(|hold| hold.holder).collect()),
        }
    }

    /// Logs the time up to `now`, which has been as it is.
    fn advance(&mut self, now: u64, knowledge: Knowledge) {
        let from = self.logged_until;
        self.logged_until = now.max(from);
        if self.waits.is_empty() || now <= from {
            return;
        }
        let occupant = self.occupant(knowledge);
        match self.log.back_mut() {
            Some(last) if last.occupant == occupant => last.to = now,
            _ => push_back(&mut self.log, Segment { from, to: now, occupant }),
        }
        if self.log.len() > SEGMENTS_MAX {
            self.fold(SEGMENTS_MAX / 2);
        }
    }

    /// Adds the first `count` segments to the shares of the waits that cover them, and removes them.
    fn fold(&mut self, count: usize) {
        let until = self.log[count].from;
        let (mut waits, mut given_up) = (std::mem::take(&mut self.waits), std::mem::take(&mut self.given_up));
        for wait in waits.iter_mut().chain(&mut given_up) {
            let until = wait.end.map_or(until, |end| end.min(until));
            wait.shares = self.shares(wait, until);
            wait.divided_until = until.max(wait.divided_until);
        }
        (self.waits, self.given_up) = (waits, given_up);
        self.log.drain(..count);
        self.removed += count as u64;
    }

    /// The shares of a wait up to `until`, which is not after the end of the log.
    fn shares(&self, wait: &PendingWait, until: u64) -> WaitShares {
        let until = self.divided_times.1.map_or(until, |end| end.min(until));
        let mut shares = wait.shares.clone();
        let mut divided_until = wait.divided_until;
        let first = wait.first.saturating_sub(self.removed) as usize;
        for segment in self.log.iter().skip(first) {
            let (from, to) = (segment.from.max(divided_until), segment.to.min(until));
            if from < to {
                shares.add(&Occupant::Unknown, from - divided_until);
                shares.add(&segment.occupant, to - from);
                divided_until = to;
            } else if segment.from >= until {
                break;
            }
        }
        shares.add(&Occupant::Unknown, until.saturating_sub(divided_until));
        shares
    }

    /// Replaces the occupants of the log's segments from `from` on.
    fn rewrite(&mut self, from: u64, change: impl Fn(&Occupant) -> Option<Occupant>) {
        let mut index = self.log.len();
        while index > 0 && self.log[index - 1].to > from {
            index -= 1;
            let segment = &mut self.log[index];
            let Some(occupant) = change(&segment.occupant) else { continue };
            let old = std::mem::replace(&mut segment.occupant, occupant);
            if segment.from < from {
                let before = Segment { from: segment.from, to: from, occupant: old };
                segment.from = from;
                // Waits whose first segment has a later number begin one segment earlier, which their times leave out.
                self.log.insert(index, before);
                break;
            }
        }
    }

    /// Forgets a hold from `from` on: then somebody unknown had the object, or nobody if `is_free`.
    fn rewrite_hold(&mut self, holder: Holder, from: u64, is_free: bool) {
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

    /// Ends all holds, because somebody else has the object although no release is recorded. Returns those that were recorded.
    pub fn lose_holds(&mut self) -> Vec<Hold> {
        let holds = std::mem::take(&mut self.holds);
        if !holds.is_empty() {
            holds.iter().for_each(|hold| self.rewrite_hold(hold.holder, hold.from, false));
            self.released_at = None;
        }
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
        let is_complete = knowledge.complete_from == 0 && !knowledge.only_blocked && !knowledge.misses_conds;
        self.holds.is_empty() && (is_complete || self.occupant(knowledge) == Occupant::Nobody)
    }

    /// Ends the hold of a thread that died at `end`, which the next owner learns.
    pub fn end_dead_hold(&mut self, end: u64, now: u64, knowledge: Knowledge) -> Option<Hold> {
        self.advance(now, knowledge);
        let hold = self.holds.pop()?;
        self.rewrite_hold(hold.holder, end.max(hold.from), true);
        self.released_at = Some(now);
        Some(hold)
    }

    /// Ends a thread's hold at `now`: what the thread does then is not recorded.
    pub fn forget_thread(&mut self, thread: u32, now: u64, knowledge: Knowledge) -> Option<Hold> {
        self.advance(now, knowledge);
        let index = self.position(thread)?;
        (self.released_at, self.changed_at) = (None, now);
        Some(self.holds.remove(index))
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

    /// Whether threads wait for it, or were woken and want it.
    pub fn has_waiters(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Whether threads wait for it.
    pub fn has_waiting_threads(&self) -> bool {
        self.waiting > 0
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
        push(&mut self.holds, Hold { holder, from: now, is_recorded: true, depth });
        (self.is_exclusive, self.released_at, self.changed_at) = (is_exclusive, None, now);
        if is_exclusive {
            self.no_readers_at = now;
        }
        lost
    }

    /// Takes a release. Where no acquisition is known, the thread had the object since the last
    /// change, or since records are complete. Returns also recorded holds whose release is missing.
    pub fn release(&mut self, thread: u32, how: Release, now: u64, knowledge: Knowledge) -> (Released, Vec<Hold>) {
        if let Some(index) = self.position(thread) {
            if self.holds[index].depth > 1 && how != Release::Complete {
                self.holds[index].depth -= 1;
                return (Released::Inner, Vec::new());
            }
            self.advance(now, knowledge);
            let hold = self.holds.remove(index);
            self.changed_at = now;
            // Other readers may hold it whose records are missing.
            let is_outer = how != Release::PerhapsInner || hold.is_recorded;
            let is_free = is_outer && (self.is_exclusive || self.no_readers_at >= knowledge.complete_from);
            self.released_at = (self.holds.is_empty() && is_free).then_some(now);
            if self.is_exclusive {
                self.no_readers_at = now;
            }
            return (Released::Hold(hold), Vec::new());
        }
        let mut lost = Vec::new();
        if let Some(&hold) = self.holds.first() {
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
            self.rewrite(from, |occupant| (*occupant == Occupant::Unknown).then_some(Occupant::One(holder)));
        }
        let is_outer = how != Release::PerhapsInner || knowledge.complete_from == 0;
        (self.changed_at, self.released_at) = (now, is_outer.then_some(now));
        (Released::NotHeld, lost)
    }

    /// Takes what a waiting thread saw: this thread holds the object. It counts only where acquisitions may not be recorded.
    /// Returns recorded holds whose release is missing.
    pub fn observe_owner(&mut self, thread: u32, now: u64, knowledge: Knowledge) -> Vec<Hold> {
        let is_complete = !knowledge.only_blocked && knowledge.complete_from <= self.changed_at;
        if is_complete || knowledge.is_partial || self.position(thread).is_some() {
            return Vec::new();
        }
        let lost = self.lose_holds();
        self.advance(now, knowledge);
        push(&mut self.holds, Hold { holder: Holder { thread, site: 0 }, from: now, is_recorded: false, depth: 1 });
        (self.is_exclusive, self.changed_at) = (true, now);
        lost
    }

    /// Takes the beginning of a wait, or of a time that is watched, with a key that no other wait for the object has.
    pub fn begin_wait(&mut self, key: u64, site: u32, now: u64, knowledge: Knowledge) {
        self.advance(now, knowledge);
        if self.waits.is_empty() && self.given_up.is_empty() {
            self.removed += self.log.len() as u64;
            self.log.clear();
        }
        if self.waits.is_empty() && knowledge.only_blocked {
            // While nobody waited, neither a release nor an acquisition made a record.
            (self.holds, self.released_at) = Default::default();
        }
        // A thread that is woken while nobody holds the mutex does not wait for it.
        let rank = self.waiting + u32::from(key < WATCH || !self.holds.is_empty());
        self.waiting += u32::from(key < WATCH);
        let first = (self.removed + self.log.len() as u64).saturating_sub(1);
        let divided_until = now.max(self.divided_times.0);
        push(&mut self.waits, PendingWait { key, entry: now, divided_until, site, first, rank, ..Default::default() });
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

    /// The shares of the time watched under a key, up to `now`, and how many threads waited when it began if one was woken.
    pub fn watched(&mut self, key: u64, now: u64, knowledge: Knowledge) -> (WaitShares, u32) {
        self.advance(now, knowledge);
        let wait = self.waits.iter().find(|wait| wait.key == key);
        wait.map_or_else(Default::default, |wait| (self.shares(wait, now), wait.rank))
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
        let given_up = std::mem::take(&mut self.given_up);
        given_up.into_iter().map(|wait| self.finish(wait.end.unwrap_or(wait.entry), wait)).collect()
    }

    fn finish(&self, end: u64, wait: PendingWait) -> FinishedWait {
        let shares = self.shares(&wait, end);
        wait.finished(end, shares)
    }
}
