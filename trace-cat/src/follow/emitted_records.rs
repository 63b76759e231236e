//! Which records of a file have been printed before they were in it.
//!
//! A record is printed when it stands in its thread's buffer, and comes to the file later, perhaps much later. By its text
//! it is known again: two records that are the same to the last digit are as good as each other.
//!
//! A ring would be too much to remember. But its first region holds a thread's records in the order of time: between the
//! first and the last one that were read one after the other, all have been seen.

use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;
use std::ops::RangeInclusive;

use foldhash::fast::FixedState;

use crate::record::columns;

/// The most that is remembered: more records than the regions of a slot hold. If the records that a region was seen to hold
/// never come to the file, for it could not be written, the oldest are forgotten.
const MOST: usize = 8192;
/// Stretches of rings that are remembered; of more, the oldest is forgotten.
const STRETCHES: usize = 64;

/// What has been seen.
#[derive(Debug, Default)]
pub struct EmittedRecords {
    /// How often, by time and hash of the line.
    lines: BTreeMap<(u64, u64), u32>,
    /// What has been seen of rings, the latest last.
    rings: VecDeque<EmittedSpan>,
}

/// Times between which all that a thread has recorded has been seen.
#[derive(Debug)]
struct EmittedSpan {
    lwp: u32,
    times: RangeInclusive<u64>,
}

/// What a line is known by.
fn key(time: u64, line: &[u8]) -> (u64, u64) {
    (time, FixedState::default().hash_one(line))
}

impl EmittedRecords {
    /// Notes a record.
    pub fn note(&mut self, time: u64, line: &[u8]) {
        *self.lines.entry(key(time, line)).or_default() += 1;
        if self.lines.len() > MOST {
            self.lines.pop_first();
        }
    }

    /// Notes that all records of these times have been seen in the first region of an LWP's ring, and if it `continues`, also all
    /// since the last one that was.
    pub fn note_ring(&mut self, lwp: u32, times: RangeInclusive<u64>, continues: bool) {
        let known = self.rings.iter_mut().rfind(|stretch| stretch.lwp == lwp);
        match known.filter(|stretch| continues || stretch.times.contains(times.start())) {
            Some(EmittedSpan { times: known, .. }) => {
                *known = *times.start().min(known.start())..=*times.end().max(known.end());
            }
            None => self.rings.push_back(EmittedSpan { lwp, times }),
        }
        if self.rings.len() > STRETCHES {
            self.rings.pop_front();
        }
    }

    /// Whether a record that stands in a buffer has been seen there before.
    pub fn has(&self, time: u64, line: &[u8]) -> bool {
        !self.lines.is_empty() && self.lines.contains_key(&key(time, line))
    }

    /// Whether one that stands in a ring's first region has been.
    pub fn ring_has(&self, time: u64, line: &[u8]) -> bool {
        let lwp = columns::lwpid(line);
        self.rings.iter().any(|stretch| stretch.lwp == lwp && stretch.times.contains(&time))
    }

    /// Whether a record that has come to the file has been seen before. It does not come a second time.
    pub fn take(&mut self, time: u64, line: &[u8]) -> bool {
        let first = self.lines.first_key_value().map_or(u64::MAX, |(&(time, _), _)| time);
        if time >= first {
            let key = key(time, line);
            if let Some(count) = self.lines.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.lines.remove(&key);
                }
                return true;
            }
        }
        !self.rings.is_empty() && self.ring_has(time, line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    #[test]
    fn each_record_is_known_as_often_as_it_was_seen() {
        let mut seen = EmittedRecords::default();
        let [a, b] = [7, 8].map(|object| record(5, 1, "02:04:0", object));
        assert!(!seen.has(5, a.as_bytes()) && !seen.take(5, a.as_bytes()));
        seen.note(5, a.as_bytes());
        seen.note(5, a.as_bytes());
        seen.note(5, b.as_bytes());
        assert!(seen.has(5, a.as_bytes()) && !seen.has(6, a.as_bytes()));
        let taken = [&a, &a, &a, &b, &b].map(|line| seen.take(5, line.as_bytes()));
        assert_eq!(taken, [true, true, false, true, false]);
        assert!(seen.lines.is_empty());
    }

    #[test]
    fn rings_are_known_by_time() {
        let mut seen = EmittedRecords::default();
        let line = |time, lwp| record(time, lwp, "02:04:0", 1);
        seen.note_ring(1, 3..=5, false);
        seen.note_ring(1, 5..=6, false);
        seen.note_ring(1, 9..=9, true);
        seen.note_ring(1, 20..=30, false);
        seen.note_ring(2, 40..=40, true);
        for (time, lwp, known) in [
            (2, 1, false),
            (3, 1, true),
            (8, 1, true),
            (10, 1, false),
            (19, 1, false),
            (25, 1, true),
            (4, 2, false),
            (40, 2, true),
        ] {
            assert_eq!(seen.take(time, line(time, lwp).as_bytes()), known);
            assert_eq!(seen.ring_has(time, line(time, lwp).as_bytes()), known);
            assert!(!seen.has(time, line(time, lwp).as_bytes()));
        }
    }

    #[test]
    fn what_never_comes_is_forgotten() {
        let mut seen = EmittedRecords::default();
        let line = |time| record(time, 1, "02:04:0", time);
        for time in 0..3 * MOST as u64 {
            seen.note(time, line(time).as_bytes());
        }
        assert_eq!(seen.lines.len(), MOST);
        assert!(!seen.has(0, line(0).as_bytes()));
        assert!(seen.take(3 * MOST as u64 - 1, line(3 * MOST as u64 - 1).as_bytes()));
    }
}
