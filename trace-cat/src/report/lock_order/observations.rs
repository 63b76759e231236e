//! The edges of the lock order, as they are observed.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::held_sets::{HeldSets, exclude_each_other, member};
use super::thread_phases::ThreadPhases;

/// The most edges that are kept: as many as a hash table of 2^19 places takes; and the most observations of all and of one.
const EDGES_MAX: usize = 7 << 16;
const OBSERVATIONS_MAX: usize = 1 << 20;
const OBSERVATIONS_OF_EDGE: usize = 32;
/// The most locks that a thread holds for which an acquisition makes edges.
const HELD_MAX: usize = 64;
/// Objects from this number on are earlier ones that were initialised again.
const RENEWED: u32 = 1 << 30;

/// A lock that a thread holds, and where it took it.
#[derive(Clone, Copy, Debug)]
pub struct HeldLock {
    pub object: u32,
    pub site: u32,
    pub is_shared: bool,
}

/// An acquisition that might have waited.
#[derive(Clone, Copy, Debug)]
pub struct Acquisition {
    pub object: u32,
    pub thread: u32,
    pub site: u32,
    pub is_shared: bool,
    pub time: u64,
    /// All that the thread holds is recorded.
    pub knows_holds: bool,
    /// All that other threads do is recorded.
    pub knows_others: bool,
}

/// From when until when a thread lived; the end is the greatest number if it has not ended.
#[derive(Clone, Copy, Debug)]
pub struct ThreadLife {
    pub begin: u64,
    pub end: u64,
}

/// What a thread did in one phase: it took a lock while it held another one, once or several times.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    pub thread: u32,
    pub phase: u32,
    pub first: u64,
    pub last: u64,
    /// All that it held, as the number of a set.
    pub held: u32,
    pub site_from: u32,
    pub site_to: u32,
    pub from_is_shared: bool,
    pub to_is_shared: bool,
    knows_holds: bool,
    knows_others: bool,
}

/// An edge: a lock was taken by threads that held another one.
#[derive(Debug, Default)]
pub struct OrderEdge {
    pub count: u64,
    pub observations: Vec<Observation>,
    recent: u32,
    /// How many observations were replaced.
    replaced: u32,
}

/// The order in which locks are taken.
#[derive(Debug, Default)]
pub struct LockOrder {
    pub edges: HashMap<(u32, u32), OrderEdge, RandomState>,
    pub phases: ThreadPhases,
    held_sets: HeldSets,
    /// The nodes of objects that were initialised again, and the objects of these nodes.
    renewed: HashMap<u32, u32, RandomState>,
    objects_of_renewed: Vec<u32>,
    observations: usize,
    /// How often a lock was taken inside another one where that was not taken into account.
    pub left_out: u64,
}

impl LockOrder {
    /// Takes an acquisition by a thread that holds other locks.
    pub fn add(&mut self, acquisition: Acquisition, held: &[HeldLock]) {
        let to = self.node(acquisition.object);
        let held = match held.len().checked_sub(HELD_MAX) {
            Some(others) => &held[others..],
            None => held,
        };
        let mut members: Vec<u32> = held.iter().map(|lock| member(self.node(lock.object), lock.is_shared)).collect();
        members.sort_unstable();
        let is_known = |lock: &HeldLock| self.edges.contains_key(&(self.node(lock.object), to));
        let set = match self.edges.len() < EDGES_MAX || held.iter().any(is_known) {
            true => self.held_sets.intern(&members),
            false => None,
        };
        let Some(set) = set else {
            self.left_out += held.len() as u64;
            return;
        };
        let Acquisition { thread, site, is_shared, time, knows_holds, knows_others, .. } = acquisition;
        let phase = self.phases.phase(thread);
        for lock in held {
            let observation = Observation {
                thread,
                phase,
                first: time,
                last: time,
                held: set,
                site_from: lock.site,
                site_to: site,
                from_is_shared: lock.is_shared,
                to_is_shared: is_shared,
                knows_holds,
                knows_others,
            };
            let key = (self.node(lock.object), to);
            if self.edges.len() >= EDGES_MAX && !self.edges.contains_key(&key) {
                self.left_out += 1;
                continue;
            }
            let edge = self.edges.entry(key).or_default();
            if edge.add(observation, self.observations < OBSERVATIONS_MAX) {
                self.observations += 1;
            }
        }
    }

    /// Takes the initialisation of an object: if its address was used before without a destruction, it was another object.
    pub fn renew(&mut self, object: u32) {
        self.objects_of_renewed.push(object);
        self.renewed.insert(object, RENEWED + self.objects_of_renewed.len() as u32 - 1);
    }

    fn node(&self, object: u32) -> u32 {
        if self.renewed.is_empty() {
            return object;
        }
        self.renewed.get(&object).copied().unwrap_or(object)
    }

    /// The object of a node.
    pub fn object(&self, node: u32) -> u32 {
        match node.checked_sub(RENEWED) {
            Some(index) => self.objects_of_renewed[index as usize],
            None => node,
        }
    }

    /// Whether two threads may have been where they were observed, at the same time.
    pub fn may_coincide(&self, a: &Observation, b: &Observation) -> bool {
        a.thread != b.thread && !self.may_be_excluded(a, b) && !self.phases_are_ordered(a, b)
    }

    fn may_be_excluded(&self, a: &Observation, b: &Observation) -> bool {
        let [a_held, b_held] = [a, b].map(|observation| self.held_sets.members(observation.held));
        // What a thread has held since before its first record may be a gate lock.
        let may_have_gate = match (a.knows_holds, b.knows_holds) {
            (true, true) => false,
            (true, false) => a_held.len() > 1,
            (false, true) => b_held.len() > 1,
            (false, false) => true,
        };
        may_have_gate || exclude_each_other(a_held, b_held)
    }

    fn phases_are_ordered(&self, a: &Observation, b: &Observation) -> bool {
        let comes_before =
            |a: &Observation, b: &Observation| self.phases.is_before((a.thread, a.phase, a.last), (b.thread, b.first));
        comes_before(a, b) || comes_before(b, a)
    }

    /// Whether two threads both lived when either was observed, where creations and joins by other threads may be missing.
    pub fn lives_overlap(a: &Observation, b: &Observation, life: &dyn Fn(u32) -> ThreadLife) -> bool {
        let contains = |life: ThreadLife, other: &Observation| life.begin <= other.first && other.last <= life.end;
        (a.knows_others && b.knows_others) || (contains(life(a.thread), b) && contains(life(b.thread), a))
    }
}

impl OrderEdge {
    /// Adds an observation; returns whether there is one more.
    fn add(&mut self, new: Observation, has_room: bool) -> bool {
        self.count += 1;
        let is_same = |known: &Observation| {
            (known.thread, known.phase, known.held, known.from_is_shared, known.to_is_shared, known.knows_holds)
                == (new.thread, new.phase, new.held, new.from_is_shared, new.to_is_shared, new.knows_holds)
        };
        if !self.observations.get(self.recent as usize).is_some_and(is_same) {
            match self.observations.iter().rposition(is_same) {
                Some(index) => self.recent = index as u32,
                None if self.observations.is_empty() || self.observations.len() < OBSERVATIONS_OF_EDGE && has_room => {
                    self.recent = self.observations.len() as u32;
                    // Most edges have one, for which the library's rule would be room for four.
                    self.observations.reserve_exact(if self.observations.is_empty() { 1 } else { 0 });
                    self.observations.push(new);
                    return true;
                }
                // The earliest ones stay; of the others, the latest.
                None => {
                    let kept = self.observations.len() / 2;
                    let place = kept + self.replaced as usize % (self.observations.len() - kept);
                    self.replaced = self.replaced.wrapping_add(1);
                    self.recent = place as u32;
                    self.observations[place] = new;
                }
            }
        }
        self.observations[self.recent as usize].last = new.last;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_locks_beyond_the_limit_are_counted() {
        let mut order = LockOrder::default();
        let count = EDGES_MAX as u32;
        let mut take = |object: u32, held: &[u32]| {
            let lock = |object: &u32| HeldLock { object: *object, site: 0, is_shared: false };
            let held: Vec<HeldLock> = held.iter().map(lock).collect();
            let (thread, site, is_shared, time) = (0, 0, false, u64::from(object));
            order.add(
                Acquisition { object, thread, site, is_shared, time, knows_holds: true, knows_others: true },
                &held,
            );
            (order.edges.len(), order.left_out)
        };
        for object in 1..=count {
            assert_eq!(take(object, &[0]), (object as usize, 0));
        }
        assert_eq!(take(count + 1, &[0]), (EDGES_MAX, 1));
        // One of both is known.
        assert_eq!(take(7, &[0, count + 2]), (EDGES_MAX, 2));
        assert_eq!(take(count + 1, &[5, 6]), (EDGES_MAX, 4));
        assert_eq!((order.edges[&(0, 7)].count, order.edges[&(0, 8)].count), (2, 1));
    }
}
