//! The lock order of random programs against a slow search that works from records with full vector clocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::analysis::Analysis;
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::wait_selection::WaitSelection;
use crate::testing::seeded_random::SeededRandom;

const THREADS: usize = 5;
/// Objects by address: a mutex if it is even, else an rwlock.
const OBJECTS: u64 = 5;
const BARRIER: u64 = 99;

/// A thread took an object while it held others.
#[derive(Clone, Debug)]
struct Nesting {
    thread: usize,
    /// What it knows of each thread, and how many steps it has made itself.
    clock: [u64; THREADS],
    /// Objects with whether they are shared.
    held: BTreeMap<u64, bool>,
    taken: (u64, bool),
}

/// The records of a random program, and what the search needs to know of it.
struct RandomProgram {
    records: Vec<NumericRecord>,
    nestings: Vec<Nesting>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Unborn,
    Running,
    Ended,
    Joined,
}

impl RandomProgram {
    fn new(random: &mut SeededRandom, steps: usize) -> RandomProgram {
        let mut program = RandomProgram { records: Vec::new(), nestings: Vec::new() };
        let mut states = [State::Unborn; THREADS];
        states[0] = State::Running;
        let mut clocks = [[0u64; THREADS]; THREADS];
        let mut holds: Vec<BTreeMap<u64, bool>> = vec![BTreeMap::new(); THREADS];
        // With many locks to choose from, most programs have no cycle; with few of them, most have one.
        let objects = 2 + random.below(OBJECTS as usize - 1);
        let mut time = 1000;
        for _ in 0..steps {
            let thread = random.below(THREADS);
            if states[thread] != State::Running {
                continue;
            }
            time += 10;
            clocks[thread][thread] += 1;
            let mut put = |thread: usize, event, which, arguments: [u64; 5]| {
                let lwp = thread as u32 + 1;
                program.records.push(NumericRecord { time, tid: u64::from(lwp), arguments, pid: 1, lwp, event, which });
            };
            let other = random.below(THREADS);
            match random.below(40) {
                0..4 if states[other] == State::Unborn => {
                    put(thread, (1, 1), 1, [0; 5]);
                    put(thread, (1, 1), 2, [0, other as u64 + 1, 0, 0, 0]);
                    put(other, (1, 30), 0, [0; 5]);
                    states[other] = State::Running;
                    clocks[other] = clocks[thread];
                    clocks[other][other] = 1;
                    clocks[thread][thread] += 1;
                }
                4 if thread > 0 && holds[thread].is_empty() => {
                    put(thread, (1, 2), 0, [0; 5]);
                    states[thread] = State::Ended;
                }
                5..12 if states[other] == State::Ended => {
                    put(thread, (1, 3), 1, [other as u64 + 1, 0, 0, 0, 0]);
                    put(thread, (1, 3), 2, [other as u64 + 1, 0, 0, 0, 0]);
                    states[other] = State::Joined;
                    join(&mut clocks, thread, other);
                }
                12 if other != thread && states[other] == State::Running => {
                    put(thread, (7, 2), 1, [BARRIER, 2, 0, 0, 0]);
                    put(other, (7, 2), 1, [BARRIER, 1, 0, 0, 0]);
                    put(thread, (7, 2), 2, [0; 5]);
                    put(other, (7, 2), 2, [0; 5]);
                    clocks[other][other] += 1;
                    join(&mut clocks, thread, other);
                    clocks[other] = clocks[thread];
                    clocks[thread][thread] += 1;
                    clocks[other][other] += 1;
                }
                13..26 if !holds[thread].is_empty() => {
                    let object = *holds[thread].keys().nth(random.below(holds[thread].len())).unwrap();
                    holds[thread].remove(&object);
                    put(thread, (if object.is_multiple_of(2) { 2 } else { 5 }, 4), 0, [object, 0, 0, 0, 0]);
                }
                _ => {
                    let object = 2 + random.below(objects) as u64;
                    let is_shared = object % 2 == 1 && random.below(2) == 0;
                    let is_free = holds.iter().all(|held| held.get(&object).is_none_or(|held| *held && is_shared));
                    if !is_free || holds[thread].contains_key(&object) {
                        continue;
                    }
                    let event = match (object.is_multiple_of(2), is_shared) {
                        (true, _) => (2, 2),
                        (false, true) => (5, 2),
                        (false, false) => (5, 3),
                    };
                    let is_try = random.below(8) == 0;
                    if is_try {
                        let number = [3, 5, 6][usize::from(event.0 == 5) + usize::from(event == (5, 3))];
                        put(thread, (event.0, number), 0, [object, 0, 0, 0, 0]);
                    } else {
                        put(thread, event, 1, [object, 0, 0, 0, 0]);
                        put(thread, event, 2, [0, 0, 0, 0, 0]);
                        if !holds[thread].is_empty() {
                            let (clock, held) = (clocks[thread], holds[thread].clone());
                            program.nestings.push(Nesting { thread, clock, held, taken: (object, is_shared) });
                        }
                    }
                    holds[thread].insert(object, is_shared);
                }
            }
        }
        program
    }

    /// The length of the shortest possible deadlock of each group of objects that are in cycles with each other.
    fn shortest_cycles(&self) -> BTreeMap<BTreeSet<u64>, usize> {
        let mut reach: HashMap<u64, BTreeSet<u64>> = HashMap::new();
        for nesting in &self.nestings {
            for from in nesting.held.keys() {
                reach.entry(*from).or_default().insert(nesting.taken.0);
            }
        }
        for _ in 0..OBJECTS {
            for from in 2..2 + OBJECTS {
                let nexts: Vec<u64> = reach.get(&from).into_iter().flatten().copied().collect();
                let further: Vec<u64> =
                    nexts.iter().flat_map(|next| reach.get(next).into_iter().flatten().copied()).collect();
                reach.entry(from).or_default().extend(further);
            }
        }
        let mut shortest = BTreeMap::new();
        for start in 2..2 + OBJECTS {
            let reaches = |from: u64, to: u64| reach.get(&from).is_some_and(|reached| reached.contains(&to));
            let group: BTreeSet<u64> =
                (2..2 + OBJECTS).filter(|other| reaches(start, *other) && reaches(*other, start)).collect();
            let found = (2..=THREADS).find(|length| self.has_cycle(&mut vec![(start, None)], *length));
            if let Some(length) = found {
                let known = shortest.entry(group).or_insert(length);
                *known = length.min(*known);
            }
        }
        shortest
    }

    /// Whether the path, objects with the nestings that lead to them, can be extended to a cycle of this length.
    fn has_cycle<'a>(&'a self, path: &mut Vec<(u64, Option<&'a Nesting>)>, length: usize) -> bool {
        let (from, start) = (path[path.len() - 1].0, path[0].0);
        self.nestings.iter().any(|new| {
            let (to, _) = new.taken;
            let is_end = path.len() == length;
            let Some(&from_is_shared) = new.held.get(&from) else { return false };
            let visited = path.iter().any(|(object, _)| *object == to);
            if is_end != (to == start) || (visited && !is_end) {
                return false;
            }
            let waits = |waiter: &Nesting, holder_shares: bool| !waiter.taken.1 || !holder_shares;
            let is_blocked = path[path.len() - 1].1.is_none_or(|last| waits(last, from_is_shared));
            let first = path.get(1).and_then(|(_, nesting)| *nesting);
            let blocks = !is_end || first.is_none_or(|first| waits(new, first.held[&start]));
            let coincide = path.iter().filter_map(|(_, nesting)| *nesting).all(|known| {
                let gate = new
                    .held
                    .iter()
                    .any(|(object, shared)| known.held.get(object).is_some_and(|known| !(*known && *shared)));
                let before = |a: &Nesting, b: &Nesting| b.clock[a.thread] >= a.clock[a.thread];
                known.thread != new.thread && !gate && !before(known, new) && !before(new, known)
            });
            if !is_blocked || !blocks || !coincide {
                return false;
            }
            path.push((to, Some(new)));
            let is_found = is_end || self.has_cycle(path, length);
            path.pop();
            is_found
        })
    }
}

fn join(clocks: &mut [[u64; THREADS]; THREADS], thread: usize, other: usize) {
    let others = clocks[other];
    clocks[thread].iter_mut().zip(others).for_each(|(own, other)| *own = other.max(*own));
}

#[test]
fn possible_deadlocks_are_those_that_a_slow_search_finds() {
    let mut random = SeededRandom::seeded("lock order", 11);
    let (mut with_cycle, mut without, mut long) = (0, 0, 0);
    for _ in 0..4000 {
        let steps = 20 + random.below(150);
        let program = RandomProgram::new(&mut random, steps);
        let expected = program.shortest_cycles();
        let mut analysis = Analysis::new(HashMap::from([(1, Knowledge::default())]), WaitSelection::default());
        program.records.iter().for_each(|record| analysis.add(record));
        analysis.finish(&[]);
        let mut found = BTreeMap::new();
        for cycle in &analysis.cycles {
            let address = analysis.objects[cycle.steps[0].from as usize].address;
            let group = expected.keys().find(|group| group.contains(&address)).cloned().unwrap_or_default();
            assert_eq!(found.insert(group, cycle.steps.len()), None);
        }
        assert_eq!(found, expected, "{:#?}", program.records);
        with_cycle += usize::from(!expected.is_empty());
        without += usize::from(expected.is_empty() && program.nestings.len() > 5);
        long += expected.values().filter(|length| **length > 2).count();
    }
    assert!(with_cycle > 100 && without > 100 && long > 5, "{with_cycle} {without} {long}");
}
