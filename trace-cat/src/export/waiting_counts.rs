//! How many threads wait, and for what: counters, in the order of time.
//!
//! Waits are known when they end, so changes are sorted; each counter's samples are in the order of time. Where there are many, a
//! counter shows for each of some thousand slots of time the most threads that waited, and how many did in the end of the slot.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

use foldhash::fast::RandomState;

use crate::support::external_sort::ExternalSort;

/// How many objects have a counter: those with the most contention, and behind them those with the most idleness.
const OBJECTS_MAX: usize = 8;
/// With more changes than this, they are shown by slots.
const CHANGES_MAX: u64 = 1 << 16;
/// How many slots the time has.
const SLOTS: u64 = 1 << 12;
/// Bytes of changes that are in memory at most.
const SORT_MEMORY: usize = 16 << 20;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterSubject {
    /// Threads that wait for one of the most contended objects.
    WaitingFor(u32),
    /// All threads that wait.
    Waiting,
    /// All other threads that have begun and not ended.
    NotWaiting,
}

/// The value of a counter from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSample {
    pub time: u64,
    pub subject: CounterSubject,
    pub value: u64,
}

/// Stands for no object: a wait for the end of a thread, and a thread's life.
const NO_OBJECT: u32 = u32::MAX;
const LIFE: u32 = u32::MAX - 1;

/// The changes of all counters.
pub struct WaitingCounts {
    changes: ExternalSort<u64>,
    count: u64,
    span: Option<(u64, u64)>,
    /// How long threads waited for each object: contention, and all waits.
    waited: HashMap<u32, (u64, u64), RandomState>,
}

impl WaitingCounts {
    pub fn new() -> WaitingCounts {
        let time = |bytes: &[u8]| bytes.first_chunk().map_or(0, |time| u64::from_le_bytes(*time));
        let changes = ExternalSort::new(time, SORT_MEMORY);
        WaitingCounts { changes, count: 0, span: None, waited: HashMap::default() }
    }

    /// Takes a wait. One that is the rest of another is a wait of the same thread.
    pub fn add_wait(&mut self, object: Option<u32>, is_contention: bool, (from, to): (u64, u64)) -> io::Result<()> {
        if let Some(object) = object {
            let (contention, waited) = self.waited.entry(object).or_default();
            *contention += if is_contention { to - from } else { 0 };
            *waited += to - from;
        }
        self.push(from, object.unwrap_or(NO_OBJECT), true)?;
        self.push(to, object.unwrap_or(NO_OBJECT), false)
    }

    /// Takes the life of a thread.
    pub fn add_life(&mut self, from: u64, to: u64) -> io::Result<()> {
        self.push(from, LIFE, true)?;
        self.push(to, LIFE, false)
    }

    fn push(&mut self, time: u64, subject: u32, begins: bool) -> io::Result<()> {
        self.count += 1;
        let span = self.span.get_or_insert((time, time));
        *span = (span.0.min(time), span.1.max(time));
        let mut bytes = [0; 13];
        bytes[..8].copy_from_slice(&time.to_le_bytes());
        bytes[8..12].copy_from_slice(&subject.to_le_bytes());
        bytes[12] = begins.into();
        self.changes.push(&bytes)
    }

    /// Gives all samples to `take`, those of each counter in the order of time.
    pub fn finish(self, take: &mut dyn FnMut(CounterSample)) -> io::Result<()> {
        let WaitingCounts { changes, count, span, waited } = self;
        let Some((start, end)) = span else { return Ok(()) };
        let mut objects: Vec<(u32, (u64, u64))> = waited.into_iter().collect();
        objects.sort_unstable_by_key(|(object, waited)| (Reverse(*waited), *object));
        let objects = objects.into_iter().take(OBJECTS_MAX).map(|(object, _)| object);
        let slot = if count > CHANGES_MAX { (end - start) / SLOTS + 1 } else { 1 };
        let mut counters: Vec<WaitingCounter> = [CounterSubject::Waiting, CounterSubject::NotWaiting]
            .into_iter()
            .chain(objects.map(CounterSubject::WaitingFor))
            .map(|subject| WaitingCounter { subject, value: 0, changed: None, most: None, written: 0 })
            .collect();
        let mut slot_start = start;
        changes.finish(&mut |bytes| {
            let number = |from: usize| bytes[from..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            let time = u64::from(number(0)) | u64::from(number(4)) << 32;
            if time >= slot_start + slot {
                counters.iter_mut().for_each(|counter| counter.write(take));
                slot_start = time - (time - start) % slot;
            }
            let (subject, begins) = (number(8), bytes[12] != 0);
            for counter in &mut counters {
                let step = match (counter.subject, subject) {
                    (CounterSubject::Waiting, LIFE) => continue,
                    (CounterSubject::Waiting, _) => begins,
                    (CounterSubject::NotWaiting, LIFE) => begins,
                    (CounterSubject::NotWaiting, _) => !begins,
                    (CounterSubject::WaitingFor(object), subject) if object == subject => begins,
                    (CounterSubject::WaitingFor(_), _) => continue,
                };
                counter.change(time, if step { 1 } else { -1 });
            }
            Ok(())
        })?;
        counters.iter_mut().for_each(|counter| counter.write(take));
        Ok(())
    }
}

struct WaitingCounter {
    subject: CounterSubject,
    /// Between two changes at one time it may be below 0.
    value: i64,
    /// The time of the last change since the last sample.
    changed: Option<u64>,
    /// When the value was greatest since the last sample.
    most: Option<(u64, i64)>,
    written: i64,
}

impl WaitingCounter {
    fn change(&mut self, time: u64, step: i64) {
        if self.changed != Some(time) {
            self.settle();
        }
        self.changed = Some(time);
        self.value += step;
    }

    /// Takes the value after all changes at a time.
    fn settle(&mut self) {
        if let Some(time) = self.changed
            && self.most.is_none_or(|(_, most)| self.value > most)
        {
            self.most = Some((time, self.value));
        }
    }

    fn write(&mut self, take: &mut dyn FnMut(CounterSample)) {
        self.settle();
        let last = self.changed.take().map(|time| (time, self.value));
        for (time, value) in self.most.take().into_iter().chain(last) {
            if value != self.written {
                take(CounterSample { time, subject: self.subject, value: value.max(0) as u64 });
                self.written = value;
            }
        }
    }
}

impl Default for WaitingCounts {
    fn default() -> WaitingCounts {
        WaitingCounts::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(waits: &[(Option<u32>, u64, u64)], lives: &[(u64, u64)]) -> Vec<(CounterSubject, u64, u64)> {
        let mut counts = WaitingCounts::new();
        waits.iter().for_each(|&(object, from, to)| counts.add_wait(object, false, (from, to)).unwrap());
        lives.iter().for_each(|&(from, to)| counts.add_life(from, to).unwrap());
        let mut samples = Vec::new();
        counts.finish(&mut |sample| samples.push((sample.subject, sample.time, sample.value))).unwrap();
        samples
    }

    #[test]
    fn counters_have_each_change_by_time() {
        use CounterSubject::{NotWaiting, Waiting, WaitingFor};
        let found = samples(&[(Some(7), 20, 30), (Some(7), 10, 30), (None, 30, 40)], &[(0, 50), (5, 50)]);
        let of = |subject| {
            found.iter().filter(|sample| sample.0 == subject).map(|sample| (sample.1, sample.2)).collect::<Vec<_>>()
        };
        assert_eq!(of(Waiting), [(10, 1), (20, 2), (30, 1), (40, 0)]);
        assert_eq!(of(NotWaiting), [(0, 1), (5, 2), (10, 1), (20, 0), (30, 1), (40, 2), (50, 0)]);
        assert_eq!(of(WaitingFor(7)), [(10, 1), (20, 2), (30, 0)]);
    }

    #[test]
    fn contended_objects_come_before_those_that_idle_threads_wait_for() {
        let mut counts = WaitingCounts::new();
        (0..20).for_each(|object| counts.add_wait(Some(object), false, (0, 1_000_000)).unwrap());
        counts.add_wait(Some(50), true, (10, 11)).unwrap();
        let mut objects = Vec::new();
        counts.finish(&mut |sample| objects.push(sample.subject)).unwrap();
        assert!(objects.contains(&CounterSubject::WaitingFor(50)), "{objects:?}");
    }

    #[test]
    fn many_changes_show_the_most_of_each_slot() {
        let waits: Vec<(Option<u32>, u64, u64)> =
            (0..100_000).map(|wait| (Some(1), wait * 10, wait * 10 + 25)).collect();
        let found = samples(&waits, &[]);
        assert!(found.len() as u64 <= 6 * SLOTS, "{}", found.len());
        assert_eq!(found.iter().map(|sample| sample.2).max(), Some(3));
        assert_eq!(found.last().map(|sample| (sample.1, sample.2)), Some((999_990 + 25, 0)));
    }
}
