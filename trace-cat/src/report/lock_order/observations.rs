//! The edges of the lock order, as they are observed.

use std::collections::HashMap;
use std::ops::Range;
use std::slice::from_ref;

use foldhash::fast::RandomState;

use super::edge_table::EdgeTable;
use super::held_sets::{HeldSets, exclude_each_other, member};
use super::thread_phases::ThreadPhases;

/// The most edges that are kept: as many as an index of 2^19 places takes; and the most observations of all and of one.
const EDGES_MAX: usize = 7 << 16;
const OBSERVATIONS_MAX: usize = 1 << 20;
const OBSERVATIONS_OF_EDGE: usize = 1 << 16;
/// From how many observations of an edge on they are found by a table.
const INDEXED_FROM: usize = 32;
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
    kept: KeptObservations,
}

/// The observations of an edge. Most have one, and half a million edges may have one each.
#[derive(Debug, Default)]
enum KeptObservations {
    #[default]
    None,
    One(Observation),
    Several(Box<ObservationList>),
}

#[derive(Debug, Default)]
struct ObservationList {
    observations: Vec<Observation>,
    recent: u32,
    /// How many observations were replaced.
    replaced: u32,
    /// Where they are, if there are many.
    indexes: Option<Box<ObservationIndexes>>,
}

/// The index of the latest observation with each key.
#[derive(Debug)]
struct ObservationIndexes(HashMap<ObservationKey, u32, RandomState>);

/// What tells the observations of one edge apart, besides the phase: thread, all that it held, whether it shares the two locks,
/// and whether all that it holds is recorded.
type ObservationKey = (u32, u32, [bool; 3]);

impl Observation {
    fn key(&self) -> ObservationKey {
        (self.thread, self.held, [self.from_is_shared, self.to_is_shared, self.knows_holds])
    }

    /// What other locks exclude in the same way, whatever the thread is.
    pub fn exclusion(&self) -> (u32, [bool; 3]) {
        let (_, held, kind) = self.key();
        (held, kind)
    }

    fn is_same(&self, other: &Observation) -> bool {
        self.phase == other.phase && self.key() == other.key()
    }
}

/// What became of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EdgeAddition {
    Known,
    New,
    /// Another one was forgotten for it.
    Replacing,
}

/// The order in which locks are taken.
#[derive(Debug, Default)]
pub struct LockOrder {
    pub edges: EdgeTable<OrderEdge>,
    pub phases: ThreadPhases,
    held_sets: HeldSets,
    /// The nodes of objects that were initialised again, and the objects of these nodes.
    renewed: HashMap<u32, u32, RandomState>,
    objects_of_renewed: Vec<u32>,
    observations: usize,
    /// How many observations were not kept: acquisitions that made no edge, and observations in the place of which others are.
    pub left_out: u64,
}

impl LockOrder {
    /// Takes an acquisition by a thread that holds other locks.
    pub fn add(&mut self, acquisition: Acquisition, held: &[HeldLock]) {
        let to = self.node(acquisition.object);
        let held = &held[held.len().saturating_sub(HELD_MAX)..];
        let members = &mut [0; HELD_MAX][..held.len()];
        held.iter()
            .zip(&mut *members)
            .for_each(|(lock, place)| *place = member(self.node(lock.object), lock.is_shared));
        members.sort_unstable();
        let is_known = |lock: &HeldLock| self.edges.get((self.node(lock.object), to)).is_some();
        let set = match self.edges.len() < EDGES_MAX || held.iter().any(is_known) {
            true => self.held_sets.intern(members),
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
            if self.edges.len() >= EDGES_MAX && self.edges.get(key).is_none() {
                self.left_out += 1;
                continue;
            }
            let edge = self.edges.get_or_add(key);
            match edge.add(observation, self.observations < OBSERVATIONS_MAX) {
                EdgeAddition::Known => {}
                EdgeAddition::New => self.observations += 1,
                EdgeAddition::Replacing => self.left_out += 1,
            }
        }
    }

    /// Forgets the edges, after cycles have been searched for. How many were left out stays.
    pub fn forget_edges(&mut self) {
        (self.edges, self.held_sets) = Default::default();
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

    /// Whether locks may keep two threads apart, of which one or both held others.
    pub fn may_be_excluded(&self, a: &Observation, b: &Observation) -> bool {
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

    /// Those of a thread's observations, which are in the order of time, that neither come before another thread's observation
    /// nor after it.
    pub fn range_beside(&self, other: &Observation, observations: &[&Observation]) -> Range<usize> {
        let Some(thread) = observations.first().map(|observation| observation.thread) else { return 0..0 };
        let at = (other.thread, other.phase);
        let until = self.phases.last_before((at, other.first), thread);
        let since = self.phases.first_after((at, other.last), thread);
        let begin = observations.partition_point(|observation| until.is_some_and(|until| observation.last <= until));
        let end = observations.partition_point(|observation| since.is_none_or(|since| observation.first < since));
        begin..end.max(begin)
    }

    /// Whether two threads both lived when either was observed, where creations and joins by other threads may be missing.
    pub fn lives_overlap(a: &Observation, b: &Observation, life: &dyn Fn(u32) -> ThreadLife) -> bool {
        let contains = |life: ThreadLife, other: &Observation| life.begin <= other.first && other.last <= life.end;
        (a.knows_others && b.knows_others) || (contains(life(a.thread), b) && contains(life(b.thread), a))
    }
}

impl OrderEdge {
    pub fn observations(&self) -> &[Observation] {
        match &self.kept {
            KeptObservations::None => &[],
            KeptObservations::One(observation) => from_ref(observation),
            KeptObservations::Several(list) => &list.observations,
        }
    }

    /// Adds an observation.
    fn add(&mut self, new: Observation, has_room: bool) -> EdgeAddition {
        self.count += 1;
        match &mut self.kept {
            KeptObservations::None => {
                self.kept = KeptObservations::One(new);
                EdgeAddition::New
            }
            KeptObservations::One(known) if known.is_same(&new) => {
                known.last = new.last;
                EdgeAddition::Known
            }
            KeptObservations::One(known) if !has_room => {
                *known = new;
                EdgeAddition::Replacing
            }
            KeptObservations::One(known) => {
                let observations = vec![*known, new];
                let list = ObservationList { observations, recent: 1, ..ObservationList::default() };
                self.kept = KeptObservations::Several(Box::new(list));
                EdgeAddition::New
            }
            KeptObservations::Several(list) => list.add(new, has_room),
        }
    }
}

impl ObservationList {
    fn add(&mut self, new: Observation, has_room: bool) -> EdgeAddition {
        let mut addition = EdgeAddition::Known;
        if !self.observations.get(self.recent as usize).is_some_and(|known| known.is_same(&new)) {
            match self.find(&new) {
                Some(index) => self.recent = index as u32,
                None if self.observations.len() < OBSERVATIONS_OF_EDGE && has_room => {
                    (self.recent, addition) = (self.observations.len() as u32, EdgeAddition::New);
                    self.observations.push(new);
                }
                // The earliest ones stay; of the others, the latest.
                None => {
                    let kept = self.observations.len() / 2;
                    let place = kept + self.replaced as usize % (self.observations.len() - kept);
                    (self.replaced, addition) = (self.replaced.wrapping_add(1), EdgeAddition::Replacing);
                    self.recent = place as u32;
                    let old = std::mem::replace(&mut self.observations[place], new);
                    if let Some(ObservationIndexes(indexes)) = self.indexes.as_deref_mut()
                        && indexes.get(&old.key()) == Some(&self.recent)
                    {
                        indexes.remove(&old.key());
                    }
                }
            }
            self.note_index();
        }
        self.observations[self.recent as usize].last = new.last;
        addition
    }

    fn find(&self, new: &Observation) -> Option<usize> {
        match self.indexes.as_deref() {
            // The thread will not be in an earlier phase again.
            Some(ObservationIndexes(indexes)) => {
                let index = *indexes.get(&new.key())? as usize;
                self.observations[index].is_same(new).then_some(index)
            }
            None => self.observations.iter().rposition(|known| known.is_same(new)),
        }
    }

    fn note_index(&mut self) {
        match self.indexes.as_deref_mut() {
            Some(ObservationIndexes(indexes)) => {
                indexes.insert(self.observations[self.recent as usize].key(), self.recent);
            }
            None if self.observations.len() > INDEXED_FROM => {
                let indexes = self.observations.iter().zip(0..).map(|(observation, index)| (observation.key(), index));
                self.indexes = Some(Box::new(ObservationIndexes(indexes.collect())));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_are_found_again_and_counted_where_they_are_not_kept() {
        let mut order = LockOrder::default();
        let add = |order: &mut LockOrder, thread: u32| {
            let [knows_holds, knows_others] = [true; 2];
            let acquisition =
                Acquisition { object: 2, thread, site: 0, is_shared: false, time: 5, knows_holds, knows_others };
            order.add(acquisition, &[HeldLock { object: 1, site: 0, is_shared: false }]);
        };
        let most = OBSERVATIONS_OF_EDGE as u32;
        // Those of one phase, in turn.
        for thread in (0..100).chain(0..100) {
            add(&mut order, thread);
        }
        let kept = |order: &LockOrder| {
            (order.edges.get((1, 2)).unwrap().observations().len(), order.observations, order.left_out)
        };
        assert_eq!(kept(&order), (100, 100, 0));
        (100..most).for_each(|thread| add(&mut order, thread));
        assert_eq!(kept(&order), (OBSERVATIONS_OF_EDGE, OBSERVATIONS_OF_EDGE, 0));
        (most..most + 7).chain(most..most + 7).for_each(|thread| add(&mut order, thread));
        assert_eq!(kept(&order), (OBSERVATIONS_OF_EDGE, OBSERVATIONS_OF_EDGE, 7));
        // One that was replaced is another one when it comes again.
        add(&mut order, most / 2);
        assert_eq!(kept(&order).2, 8);
    }

    #[test]
    fn an_edge_with_one_observation_takes_little_more_than_that() {
        assert!(size_of::<OrderEdge>() <= size_of::<Observation>() + 8);
    }

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
        assert_eq!([(0, 7), (0, 8)].map(|key| order.edges.get(key).unwrap().count), [2, 1]);
    }
}
