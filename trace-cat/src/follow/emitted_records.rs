//! The records that were emitted from a buffer before they were in the record file.
//!
//! A record is emitted when it is in its thread's buffer, and is written to the file later, perhaps much later. There it is
//! recognised by its text: two records that agree to the last digit are interchangeable.
//!
//! A ring holds too many records for that. But its first region holds a thread's records in the order of time: if they are
//! read without a gap, every record between the first and the last time has been emitted. Only records of the trace itself
//! (category 0) have times from before: they too are recognised by their text. So has a record that signal handlers interrupted
//! after it had read the clock: it comes after theirs. But the file has the first region before the others, in the same order:
//! once the record that was emitted last is read there, only records of the other regions can have been emitted.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;
use std::ops::RangeInclusive;

use foldhash::fast::FixedState;

use crate::record::columns;

/// How many records of a thread are remembered: more than the regions of its slot hold. If records never reach the file, because
/// it could not be written, the oldest are forgotten.
const RECORDS_MAX: usize = 8192;
/// How many threads' records are remembered; then those of the thread are forgotten that was noted first. Threads share a file
/// if their LWPs agree in the last three digits.
const THREADS_MAX: usize = 64;
/// How many spans of rings are remembered; then the oldest is forgotten.
const SPANS_MAX: usize = 64;

/// How often each record was emitted, by time and hash of the line.
type EmittedLines = BTreeMap<(u64, u64), u32>;

/// The emitted records of one file.
#[derive(Debug, Default)]
pub struct EmittedRecords {
    /// By LWP; no map is empty.
    threads: VecDeque<(u32, EmittedLines)>,
    spans: EmittedSpans,
}

/// Times between which every record of a thread has been emitted, up to the one that was emitted last.
#[derive(Clone, Debug)]
struct EmittedSpan {
    lwp: u32,
    times: RangeInclusive<u64>,
    last: LastEmitted,
}

/// The records that end what was emitted of a ring's first region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastEmitted {
    time: u64,
    /// How many records of this time, one after the other, were emitted.
    count: u32,
}

impl LastEmitted {
    /// The record of this time that follows `before`.
    pub fn after(before: Option<LastEmitted>, time: u64) -> LastEmitted {
        let same = before.filter(|before| before.time == time);
        LastEmitted { time, count: 1 + same.map_or(0, |before| before.count) }
    }
}

/// The spans that were emitted from the rings of a file's threads, the latest last.
#[derive(Clone, Debug, Default)]
pub struct EmittedSpans(VecDeque<EmittedSpan>);

impl EmittedSpans {
    /// Whether a record that is read in the order of recording has been emitted. With the last one that was emitted its spans
    /// end, and those before.
    pub fn take(&mut self, lwp: u32, time: u64) -> bool {
        let is_known = self.0.iter().any(|span| span.lwp == lwp && span.times.contains(&time));
        if let Some(at) = self.0.iter().rposition(|span| is_known && span.lwp == lwp && span.last.time == time) {
            let last = &mut self.0[at].last;
            last.count = last.count.saturating_sub(1);
            if last.count == 0 {
                let mut index = 0;
                self.0.retain(|span| {
                    index += 1;
                    span.lwp != lwp || index > at + 1
                });
            }
        }
        is_known
    }
}

/// What a line is recognised by.
fn key(time: u64, line: &[u8]) -> (u64, u64) {
    (time, FixedState::default().hash_one(line))
}

/// Whether these may be lines of this time: the file mostly holds earlier records.
fn may_have(lines: &EmittedLines, time: u64) -> bool {
    lines.first_key_value().is_some_and(|(&(first, _), _)| first <= time)
}

/// Whether a ring has this record in the order of its time. A record of a loss or of a release in flight has the time of the
/// event that it reports, and may be written much later.
pub fn is_in_order(line: &[u8]) -> bool {
    columns::event(line).0 != 0
}

impl EmittedRecords {
    /// Notes that a record is emitted.
    pub fn note(&mut self, time: u64, line: &[u8]) {
        let lwp = columns::lwpid(line);
        let at = self.index_of(lwp).unwrap_or_else(|| {
            if self.threads.len() == THREADS_MAX {
                self.threads.pop_front();
            }
            self.threads.push_back((lwp, EmittedLines::new()));
            self.threads.len() - 1
        });
        let lines = &mut self.threads[at].1;
        *lines.entry(key(time, line)).or_default() += 1;
        if lines.len() > RECORDS_MAX {
            lines.pop_first();
        }
    }

    fn index_of(&self, lwp: u32) -> Option<usize> {
        self.threads.iter().position(|thread| thread.0 == lwp)
    }

    /// Whether so many records wait to be read in the file that those of further buffers might not be remembered.
    pub fn is_nearly_full(&self) -> bool {
        self.threads.iter().any(|(_, lines)| lines.len() > RECORDS_MAX / 2)
    }

    /// Notes that all records of these times, up to `last`, are emitted from the first region of an LWP's ring, and if the text
    /// `continues` what was read before, also all records since then.
    pub fn note_span(&mut self, lwp: u32, times: RangeInclusive<u64>, last: LastEmitted, continues: bool) {
        let spans = &mut self.spans.0;
        let latest = spans.iter_mut().rfind(|span| span.lwp == lwp);
        match latest.filter(|span| continues || span.times.contains(times.start())) {
            Some(span) => {
                let same = if continues && span.last.time == last.time { span.last.count } else { 0 };
                span.last = LastEmitted { count: last.count + same, ..last };
                span.times = *times.start().min(span.times.start())..=*times.end().max(span.times.end());
            }
            None => spans.push_back(EmittedSpan { lwp, times, last }),
        }
        if spans.len() > SPANS_MAX {
            spans.pop_front();
        }
    }

    /// What was emitted of rings' first regions.
    pub fn spans(&self) -> &EmittedSpans {
        &self.spans
    }

    /// Whether no record is remembered by its text.
    pub fn has_no_lines(&self) -> bool {
        self.threads.is_empty()
    }

    /// Whether a record that is in a buffer has been emitted.
    pub fn has(&self, time: u64, line: &[u8]) -> bool {
        self.index_of(columns::lwpid(line)).is_some_and(|at| {
            let lines = &self.threads[at].1;
            may_have(lines, time) && lines.contains_key(&key(time, line))
        })
    }

    /// Whether a record in the file has been emitted before. It is forgotten then, since it is in the file only once.
    pub fn take(&mut self, time: u64, line: &[u8]) -> bool {
        if let Some(at) = self.index_of(columns::lwpid(line)) {
            let lines = &mut self.threads[at].1;
            if may_have(lines, time)
                && let Entry::Occupied(mut known) = lines.entry(key(time, line))
            {
                *known.get_mut() -= 1;
                if *known.get() == 0 {
                    known.remove();
                }
                if lines.is_empty() {
                    self.threads.remove(at);
                }
                return true;
            }
        }
        is_in_order(line) && self.spans.take(columns::lwpid(line), time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    #[test]
    fn each_record_is_recognised_as_often_as_it_was_emitted() {
        let mut emitted = EmittedRecords::default();
        let [a, b] = [7, 8].map(|object| record(5, 1, "02:04:0", object));
        assert!(!emitted.has(5, a.as_bytes()) && !emitted.take(5, a.as_bytes()));
        emitted.note(5, a.as_bytes());
        emitted.note(5, a.as_bytes());
        emitted.note(5, b.as_bytes());
        assert!(emitted.has(5, a.as_bytes()) && !emitted.has(6, a.as_bytes()));
        let taken = [&a, &a, &a, &b, &b].map(|line| emitted.take(5, line.as_bytes()));
        assert_eq!(taken, [true, true, false, true, false]);
        assert!(emitted.threads.is_empty());
    }

    #[test]
    fn records_of_rings_are_recognised_by_time() {
        let mut emitted = EmittedRecords::default();
        let line = |time, lwp| record(time, lwp, "02:04:0", 1);
        let last = |time| LastEmitted::after(None, time);
        emitted.note_span(1, 3..=5, last(5), false);
        emitted.note_span(1, 5..=6, last(6), false);
        emitted.note_span(1, 9..=9, last(9), true);
        emitted.note_span(1, 20..=30, last(30), false);
        emitted.note_span(2, 40..=40, last(40), true);
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
            assert!(!emitted.has(time, line(time, lwp).as_bytes()));
            assert_eq!(emitted.take(time, line(time, lwp).as_bytes()), known);
        }
    }

    /// What is recorded after the last emitted record was not emitted, whatever its time; nor is the second of two records of
    /// one time, if only the first was.
    #[test]
    fn the_last_emitted_record_ends_its_spans() {
        let mut emitted = EmittedRecords::default();
        let last = |time| LastEmitted::after(None, time);
        emitted.note_span(1, 3..=5, last(5), false);
        emitted.note_span(1, 7..=9, LastEmitted::after(Some(last(9)), 9), false);
        emitted.note_span(1, 9..=9, last(9), true);
        emitted.note_span(1, 20..=30, last(30), false);
        emitted.note_span(2, 3..=9, last(9), false);
        let mut take = |time, lwp| emitted.take(time, record(time, lwp, "02:04:0", 1).as_bytes());
        assert_eq!(
            [4, 8, 9, 9, 9, 9, 8, 4].map(|time| take(time, 1)),
            [true, true, true, true, true, false, false, false]
        );
        assert_eq!([25, 30, 30, 25].map(|time| take(time, 1)), [true, true, false, false]);
        assert_eq!([9, 9].map(|time| take(time, 2)), [true, false]);
    }

    #[test]
    fn a_late_record_of_the_trace_itself_is_recognised_by_its_text() {
        let mut emitted = EmittedRecords::default();
        emitted.note_span(1, 3..=9, LastEmitted::after(None, 9), false);
        let [in_flight, unlock] = ["00:04:0", "02:04:0"].map(|event| record(5, 1, event, 204));
        assert!(emitted.take(5, unlock.as_bytes()) && !emitted.take(5, in_flight.as_bytes()));
        emitted.note(5, in_flight.as_bytes());
        assert!(emitted.take(5, in_flight.as_bytes()) && !emitted.take(5, in_flight.as_bytes()));
    }

    #[test]
    fn records_that_never_reach_the_file_are_forgotten() {
        let mut emitted = EmittedRecords::default();
        let line = |time| record(time, 1, "02:04:0", time);
        for time in 0..3 * RECORDS_MAX as u64 {
            emitted.note(time, line(time).as_bytes());
        }
        assert_eq!(emitted.threads[0].1.len(), RECORDS_MAX);
        assert!(!emitted.has(0, line(0).as_bytes()));
        assert!(emitted.take(3 * RECORDS_MAX as u64 - 1, line(3 * RECORDS_MAX as u64 - 1).as_bytes()));
    }

    /// Their LWPs end with the same three digits.
    #[test]
    fn the_full_buffers_of_threads_that_share_a_file_are_remembered() {
        let mut emitted = EmittedRecords::default();
        let line = |time, lwp: u32| record(time, lwp << 12 | 1, "02:04:0", time);
        let records: Vec<_> = (1..=8).flat_map(|lwp| (0..2000).map(move |time| (time, line(time, lwp)))).collect();
        records.iter().for_each(|(time, line)| emitted.note(*time, line.as_bytes()));
        let forgotten = records.iter().filter(|(time, line)| !emitted.take(*time, line.as_bytes())).count();
        assert_eq!((forgotten, emitted.threads.len()), (0, 0));
        // Threads that never write do not fill the memory.
        (0..1000).for_each(|lwp| emitted.note(1, line(1, lwp).as_bytes()));
        assert_eq!(emitted.threads.len(), THREADS_MAX);
    }
}
