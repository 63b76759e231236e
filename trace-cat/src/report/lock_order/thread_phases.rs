//! Phases of threads: what the creation of a thread, a join and a barrier keep apart in time.
//!
//! A phase of a thread lasts from one of these to the next. What a phase comes before, or after, is found when it is asked for, by one
//! pass over the log of these: a vector clock for each thread would need a number for each other thread.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::slice::from_ref;

use foldhash::fast::RandomState;

/// The most participants of rounds of barriers that are logged. What later rounds keep apart is not known.
const PARTICIPANTS_MAX: usize = 1 << 22;

/// The most phases for which it is kept what they come before, or after.
const PHASES_MAX: usize = 256;

/// The threads that a phase comes before, each from when on, or the threads that it comes after, each until when.
type ReachedThreads = HashMap<u32, u64, RandomState>;

/// What is known of some phases of threads.
type ReachedFrom = RefCell<HashMap<(u32, u32), ReachedThreads, RandomState>>;

#[derive(Clone, Copy, Debug)]
enum Change {
    /// What a thread did before, another one does not do again until then: it creates it, or is joined by it.
    Passed { from: u32, to: u32 },
    /// The participants of a round of a barrier, as a range of all participants.
    Round { first: usize, end: usize },
}

/// The phases of all threads.
#[derive(Debug, Default)]
pub struct ThreadPhases {
    /// The number of each thread's phase.
    phases: Vec<u32>,
    log: Vec<(u64, Change)>,
    participants: Vec<u32>,
    /// The threads that wait at each barrier.
    arrived: HashMap<u32, Vec<u32>, RandomState>,
    /// The threads that took part in rounds that are not logged.
    unlogged: HashSet<u32, RandomState>,
    successors: ReachedFrom,
    predecessors: ReachedFrom,
    work: Cell<usize>,
}

impl ThreadPhases {
    /// The phase that a thread is in.
    pub fn phase(&self, thread: u32) -> u32 {
        self.phases.get(thread as usize).copied().unwrap_or(0)
    }

    /// Ends a thread's phase.
    pub fn end_phase(&mut self, thread: u32) {
        let index = thread as usize;
        if index >= self.phases.len() {
            self.phases.resize(index + 1, 0);
        }
        self.phases[index] += 1;
    }

    /// Takes the creation of a thread, which began at `time`.
    pub fn create(&mut self, creator: u32, created: u32, time: u64) {
        self.log.push((time, Change::Passed { from: creator, to: created }));
    }

    /// Takes a join, which ended at `time`.
    pub fn join(&mut self, joiner: u32, joined: u32, time: u64) {
        self.end_phase(joiner);
        self.log.push((time, Change::Passed { from: joined, to: joiner }));
    }

    /// Takes the beginning of a wait at a barrier.
    pub fn arrive(&mut self, barrier: u32, thread: u32) {
        self.arrived.entry(barrier).or_default().push(thread);
    }

    /// Takes the end of a wait at a barrier: when the first thread goes on, all of the round have arrived.
    pub fn depart(&mut self, barrier: u32, thread: u32, time: u64) {
        let Some(arrived) = self.arrived.get_mut(&barrier).filter(|arrived| arrived.contains(&thread)) else { return };
        let arrived = std::mem::take(arrived);
        arrived.iter().for_each(|thread| self.end_phase(*thread));
        if self.participants.len() + arrived.len() > PARTICIPANTS_MAX {
            self.unlogged.extend(arrived);
            return;
        }
        let first = self.participants.len();
        self.participants.extend(arrived);
        self.log.push((time, Change::Round { first, end: self.participants.len() }));
    }

    /// Brings the log into the order of time, before anything is asked.
    pub fn finish(&mut self) {
        self.log.sort_by_key(|(time, _)| *time);
    }

    /// From when on what another thread does comes after all of a phase, which has this time.
    pub fn first_after(&self, ((thread, phase), time): ((u32, u32), u64), other: u32) -> Option<u64> {
        if self.is_unlogged(thread, other) {
            return Some(time);
        }
        Self::reached(&self.successors, (thread, phase), other, || self.successors_of(thread, time))
    }

    /// Until when what another thread does comes before all of a phase, which has this time.
    pub fn last_before(&self, ((thread, phase), time): ((u32, u32), u64), other: u32) -> Option<u64> {
        if self.is_unlogged(thread, other) {
            return Some(time);
        }
        Self::reached(&self.predecessors, (thread, phase), other, || self.predecessors_of(thread, time))
    }

    fn is_unlogged(&self, thread: u32, other: u32) -> bool {
        self.unlogged.contains(&thread) && self.unlogged.contains(&other)
    }

    fn reached(
        known: &ReachedFrom,
        phase: (u32, u32),
        other: u32,
        find: impl FnOnce() -> ReachedThreads,
    ) -> Option<u64> {
        let mut known = known.borrow_mut();
        if known.len() >= PHASES_MAX && !known.contains_key(&phase) {
            known.clear();
        }
        known.entry(phase).or_insert_with(find).get(&other).copied()
    }

    fn successors_of(&self, thread: u32, time: u64) -> ReachedThreads {
        let mut reached = ReachedThreads::default();
        reached.insert(thread, time);
        let begin = self.log.partition_point(|(change, _)| *change < time);
        for (now, change) in &self.log[begin..] {
            let is_reached = |thread: &u32| reached.get(thread).is_some_and(|since| since <= now);
            let (from, to) = self.ends(change);
            if from.iter().any(is_reached) {
                to.iter().for_each(|thread| _ = reached.entry(*thread).or_insert(*now));
            }
        }
        reached
    }

    fn predecessors_of(&self, thread: u32, time: u64) -> ReachedThreads {
        let mut reached = ReachedThreads::default();
        reached.insert(thread, time);
        let end = self.log.partition_point(|(change, _)| *change <= time);
        for (now, change) in self.log[..end].iter().rev() {
            let is_reached = |thread: &u32| reached.get(thread).is_some_and(|until| until >= now);
            let (from, to) = self.ends(change);
            if to.iter().any(is_reached) {
                from.iter().for_each(|thread| _ = reached.entry(*thread).or_insert(*now));
            }
        }
        reached
    }

    /// The threads of which something before a change comes before everything after it of other threads; and these.
    fn ends<'a>(&'a self, change: &'a Change) -> (&'a [u32], &'a [u32]) {
        let ends = match change {
            Change::Passed { from, to } => (from_ref(from), from_ref(to)),
            Change::Round { first, end } => {
                let participants = &self.participants[*first..*end];
                (participants, participants)
            }
        };
        self.work.set(self.work.get() + ends.0.len());
        ends
    }

    /// How many changes, by their threads, have been read to answer questions.
    pub fn work(&self) -> usize {
        self.work.get()
    }
}
