//! Random programs that create and join threads and use all kinds of objects, as records in the order of time.

use std::collections::BTreeMap;

use spec::event_numbers::{
    BARRIER_WAIT, MUTEX_LOCK, MUTEX_TRYLOCK, MUTEX_UNLOCK, PROC_EXIT, SEMA_POST, THR_BEGIN, THR_CREATE, THR_EXIT,
    THR_JOIN, THR_KEYCREATE,
};

use super::numeric_record::NumericRecord;
use crate::testing::seeded_random::SeededRandom;

const TIMED_OUT: u64 = libc::ETIMEDOUT as u64;
/// Locks by address, which are taken in this order: mutexes, a recursive mutex and an rwlock.
const LOCKS: [(u64, u8); 4] = [(1, 2), (2, 2), (3, 6), (4, 5)];
/// The mutex of the conditions.
const MUTEX: u64 = 1;
const CONDS: [u64; 2] = [20, 21];
const SEMAPHORES: [u64; 2] = [10, 11];
const BARRIER: u64 = 30;
pub const BARRIER_COUNT: u64 = 2;
const THREADS_MAX: u32 = 12;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Running,
    /// Waits for a lock: the event, and whether to write.
    Locking(u64, (u8, u8), bool),
    /// Waits for a semaphore, and may time out.
    Waiting(u64, bool),
    /// Waits for a condition, and has been woken, or may time out.
    Sleeping {
        cond: u64,
        woken: bool,
        timed: bool,
    },
    /// Waits at the barrier; others have arrived.
    Arrived {
        is_over: bool,
    },
    Joining(u32),
    Creating(u32),
    Ended,
}

/// A random program.
pub struct RandomThreads<'a> {
    random: &'a mut SeededRandom,
    time: u64,
    records: Vec<NumericRecord>,
    steps: BTreeMap<u32, Step>,
    /// By lock: threads, whether for writing, and how often.
    holds: BTreeMap<u64, Vec<(u32, bool, u64)>>,
    counts: BTreeMap<u64, u64>,
    missing: u64,
}

impl RandomThreads<'_> {
    /// The records of a program that makes about so many steps.
    pub fn records(random: &mut SeededRandom, steps: usize) -> Vec<NumericRecord> {
        let mut program = RandomThreads {
            random,
            time: 1000,
            records: Vec::new(),
            steps: BTreeMap::from([(1, Step::Running)]),
            holds: BTreeMap::new(),
            counts: BTreeMap::new(),
            missing: BARRIER_COUNT,
        };
        program.put(1, THR_KEYCREATE, 0, &[]);
        for _ in 0..steps {
            let lwp = 1 + program.random.below(program.steps.len()) as u32;
            program.time += 1 + program.random.below(30) as u64;
            program.step(lwp);
        }
        if program.random.below(2) == 0 && program.steps[&1] == Step::Running {
            program.time += 10;
            program.put(1, PROC_EXIT, 0, &[0]);
        }
        program.records
    }

    fn put(&mut self, lwp: u32, event: (u8, u8), which: u8, arguments: &[u64]) {
        let mut record =
            NumericRecord { time: self.time, tid: u64::from(lwp), pid: 1, lwp, event, which, ..Default::default() };
        record.arguments[..arguments.len()].copy_from_slice(arguments);
        self.records.push(record);
    }

    fn is_free(&self, lwp: u32, lock: u64, write: bool) -> bool {
        let held = self.holds.get(&lock).map_or(&[][..], |held| held);
        held.iter().all(|(owner, owned, _)| (lock == 3 && *owner == lwp) || (!write && !*owned))
    }

    /// Returns how often the lock is held.
    fn acquire(&mut self, lwp: u32, lock: u64, write: bool) -> u64 {
        let held = self.holds.entry(lock).or_default();
        match held.iter_mut().find(|hold| hold.0 == lwp) {
            Some(hold) => hold.2 += 1,
            None => held.push((lwp, write, 1)),
        }
        // Of the rwlock all readers are counted.
        held.iter().filter(|hold| hold.0 == lwp || lock == 4).map(|hold| hold.2).sum()
    }

    fn release(&mut self, lwp: u32, lock: u64) {
        let held = self.holds.entry(lock).or_default();
        let index = held.iter().position(|hold| hold.0 == lwp).unwrap();
        held[index].2 -= 1;
        if held[index].2 == 0 {
            held.remove(index);
        }
    }

    fn held_by(&self, lwp: u32) -> Vec<u64> {
        let held = self.holds.iter().filter(|(_, held)| held.iter().any(|hold| hold.0 == lwp));
        held.map(|(lock, _)| *lock).collect()
    }

    fn step(&mut self, lwp: u32) {
        match self.steps[&lwp] {
            Step::Running => self.act(lwp),
            Step::Locking(lock, event, write) => {
                if self.is_free(lwp, lock, write) {
                    let depth = self.acquire(lwp, lock, write);
                    self.put(lwp, event, 2, &[0, 1, depth]);
                    self.steps.insert(lwp, Step::Running);
                } else if event.1 >= 30 && self.random.below(4) == 0 {
                    self.put(lwp, event, 2, &[TIMED_OUT, 1]);
                    self.steps.insert(lwp, Step::Running);
                }
            }
            Step::Waiting(semaphore, timed) => {
                let event = (4, if timed { 30 } else { 2 });
                let count = self.counts.entry(semaphore).or_default();
                if *count > 0 {
                    *count -= 1;
                    self.put(lwp, event, 2, &[0]);
                    self.steps.insert(lwp, Step::Running);
                } else if timed && self.random.below(4) == 0 {
                    self.put(lwp, event, 2, &[TIMED_OUT]);
                    self.steps.insert(lwp, Step::Running);
                }
            }
            Step::Sleeping { woken, timed, .. } => {
                let has_timed_out = !woken && timed && self.random.below(3) == 0;
                if (woken || has_timed_out) && self.is_free(lwp, MUTEX, true) {
                    self.acquire(lwp, MUTEX, true);
                    self.put(lwp, (3, if timed { 5 } else { 4 }), 2, &[if woken { 0 } else { TIMED_OUT }]);
                    self.steps.insert(lwp, Step::Running);
                }
            }
            Step::Arrived { is_over: true } => {
                self.put(lwp, BARRIER_WAIT, 2, &[0]);
                self.steps.insert(lwp, Step::Running);
            }
            Step::Joining(joined) if self.steps[&joined] == Step::Ended => {
                self.put(lwp, THR_JOIN, 2, &[u64::from(joined), 0, 0]);
                self.steps.insert(lwp, Step::Running);
            }
            Step::Creating(created) => {
                self.put(lwp, THR_CREATE, 2, &[0, u64::from(created)]);
                self.steps.insert(lwp, Step::Running);
            }
            Step::Joining(_) | Step::Arrived { .. } | Step::Ended => {}
        }
    }

    /// Lets a running thread do something.
    fn act(&mut self, lwp: u32) {
        let held = self.held_by(lwp);
        match self.random.below(18) {
            0..4 if !held.is_empty() => {
                let lock = held[self.random.below(held.len())];
                self.release(lwp, lock);
                let category = LOCKS[lock as usize - 1].1;
                self.put(lwp, (category, 4), 0, &[lock]);
            }
            0..7 => self.lock(lwp, &held),
            7 => {
                let semaphore = SEMAPHORES[self.random.below(2)];
                let timed = !held.is_empty() || self.random.below(3) == 0;
                let count = self.counts.entry(semaphore).or_default();
                let before = *count;
                *count = before.saturating_sub(1);
                let event = (4, if timed { 30 } else { 2 });
                self.put(lwp, event, 1, &[semaphore, before]);
                if before > 0 {
                    self.put(lwp, event, 2, &[0]);
                } else {
                    self.steps.insert(lwp, Step::Waiting(semaphore, timed));
                }
            }
            8 | 9 | 16 | 17 => {
                let semaphore = SEMAPHORES[self.random.below(2)];
                *self.counts.entry(semaphore).or_default() += 1;
                self.put(lwp, SEMA_POST, 0, &[semaphore]);
            }
            10 if held == [MUTEX] => {
                let (cond, timed) = (CONDS[self.random.below(2)], lwp == 1 || self.random.below(3) > 0);
                self.release(lwp, MUTEX);
                self.put(lwp, (3, if timed { 5 } else { 4 }), 1, &[cond, MUTEX]);
                self.steps.insert(lwp, Step::Sleeping { cond, woken: false, timed });
            }
            10 | 11 => {
                let (cond, broadcast) = (CONDS[self.random.below(2)], self.random.below(3) == 0);
                self.put(lwp, (3, if broadcast { 3 } else { 2 }), 0, &[cond]);
                for step in self.steps.values_mut() {
                    match step {
                        Step::Sleeping { cond: other, woken, .. } if *other == cond && !*woken => {
                            *woken = true;
                            if !broadcast {
                                break;
                            }
                        }
                        _ => {}
                    }
                }
            }
            12 if held.is_empty() && lwp > 1 => {
                // Who arrives at the same time may be counted as missing.
                let missing = self.missing + u64::from(self.random.below(4) == 0);
                self.put(lwp, BARRIER_WAIT, 1, &[BARRIER, missing.min(BARRIER_COUNT)]);
                self.missing -= 1;
                if self.missing > 0 {
                    self.steps.insert(lwp, Step::Arrived { is_over: false });
                } else {
                    self.put(lwp, BARRIER_WAIT, 2, &[u64::MAX]);
                    self.missing = BARRIER_COUNT;
                    for step in self.steps.values_mut().filter(|step| matches!(step, Step::Arrived { .. })) {
                        *step = Step::Arrived { is_over: true };
                    }
                }
            }
            13 | 14 if self.steps.len() < THREADS_MAX as usize => {
                let created = self.steps.len() as u32 + 1;
                self.put(lwp, THR_CREATE, 1, &[]);
                self.steps.insert(lwp, Step::Creating(created));
                self.steps.insert(created, Step::Running);
                self.time += 1;
                self.put(created, THR_BEGIN, 0, &[]);
            }
            15 if lwp == 1 => {
                let joined = 2 + self.random.below(THREADS_MAX as usize) as u32;
                if self.steps.get(&joined).is_some_and(|step| matches!(step, Step::Ended | Step::Running)) {
                    self.put(lwp, THR_JOIN, 1, &[u64::from(joined)]);
                    self.steps.insert(lwp, Step::Joining(joined));
                }
            }
            15 if held.is_empty() && self.random.below(3) == 0 => {
                self.put(lwp, THR_EXIT, 0, &[]);
                self.steps.insert(lwp, Step::Ended);
                if self.is_free(lwp, 2, true) && self.random.below(2) == 0 {
                    // A destructor locks.
                    self.time += 1;
                    self.put(lwp, MUTEX_LOCK, 1, &[2]);
                    self.put(lwp, MUTEX_LOCK, 2, &[0, 0]);
                    self.time += 5;
                    self.put(lwp, MUTEX_UNLOCK, 0, &[2]);
                }
            }
            _ => {}
        }
    }

    fn lock(&mut self, lwp: u32, held: &[u64]) {
        let (lock, category) = LOCKS[self.random.below(4)];
        let may_take = held.iter().all(|other| *other < lock) || (lock == 3 && held.contains(&lock));
        if !may_take {
            return;
        }
        let write = category != 5 || self.random.below(2) == 0;
        let number = match (category, write) {
            (5, false) => 2,
            (5, true) => 3,
            _ if self.random.below(4) == 0 => 30,
            _ => 2,
        };
        let event = (category, number);
        let is_free = self.is_free(lwp, lock, write);
        if category == 2 && self.random.below(6) == 0 {
            let rval = if is_free { 0 } else { libc::EBUSY as u64 };
            if is_free {
                self.acquire(lwp, lock, write);
            }
            self.put(lwp, MUTEX_TRYLOCK, 0, &[lock, rval]);
            return;
        }
        self.put(lwp, event, 1, &[lock]);
        if is_free {
            let depth = self.acquire(lwp, lock, write);
            self.put(lwp, event, 2, &[0, 0, depth]);
        } else {
            self.steps.insert(lwp, Step::Locking(lock, event, write));
        }
    }
}
