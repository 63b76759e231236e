//! A set of records, by what they are: as many as there is disk for, found by time.
//!
//! Records that agree in time, thread, event and which are one and the same here.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

use log::info;

use crate::record::columns;
use crate::support::temporary_files::TemporaryRuns;

/// Marks that are in memory at most; beyond that they are sorted in temporary files.
const IN_MEMORY: usize = 1 << 20;
/// Marks between those of which the time is in memory.
const BLOCK: usize = 1 << 10;
/// Bytes of a mark in a file.
const BYTES: usize = 16;

/// A record: its time, and all of its numbers that the caller gives (see [`RecordKey::new`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// Nanoseconds since the Epoch.
    pub time: u64,
    rest: u64,
}

impl RecordKey {
    /// The record at `time` of this process, LWP, category, event and which. All have no more bits than a record has
    /// digits for.
    pub fn new(time: u64, pid: u32, lwp: u32, (category, number, which): (u8, u8, u8)) -> RecordKey {
        let event = u64::from(category & 127) << 9 | u64::from(number & 127) << 2 | u64::from(which & 3);
        RecordKey { time, rest: u64::from(pid & 0xff_ffff) << 40 | u64::from(lwp & 0xff_ffff) << 16 | event }
    }

    /// That of the record `line`.
    pub fn of(line: &[u8], time: u64, event: (u8, u8, u8)) -> RecordKey {
        RecordKey::new(time, columns::pid(line), columns::lwpid(line), event)
    }

    fn bytes(self) -> [u8; BYTES] {
        (u128::from(self.time) << 64 | u128::from(self.rest)).to_be_bytes()
    }

    fn from_bytes(bytes: [u8; BYTES]) -> RecordKey {
        let number = u128::from_be_bytes(bytes);
        RecordKey { time: (number >> 64) as u64, rest: number as u64 }
    }
}

/// Marks in no order, on their way to be a set.
#[derive(Debug)]
pub struct SelectionCollector {
    marks: Vec<RecordKey>,
    most: usize,
    /// Sorted parts of at most `most` marks.
    parts: Option<TemporaryRuns>,
}

impl Default for SelectionCollector {
    fn default() -> SelectionCollector {
        SelectionCollector::new(IN_MEMORY)
    }
}

impl SelectionCollector {
    /// One that has `most` marks in memory at most.
    pub fn new(most: usize) -> SelectionCollector {
        SelectionCollector { marks: Vec::new(), most, parts: None }
    }

    /// Adds one.
    ///
    /// # Errors
    /// What a temporary file says.
    pub fn push(&mut self, mark: RecordKey) -> io::Result<()> {
        self.marks.push(mark);
        if self.marks.len() >= self.most { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => none.insert(TemporaryRuns::new()?),
        };
        self.marks.sort_unstable();
        self.marks.dedup();
        for mark in &self.marks {
            parts.push(&mark.bytes())?;
        }
        parts.end();
        self.marks.clear();
        Ok(())
    }

    /// The set of all that were added.
    ///
    /// # Errors
    /// What a temporary file says.
    pub fn finish(mut self) -> io::Result<SelectedRecords> {
        if self.parts.is_none() {
            self.marks.sort_unstable();
            self.marks.dedup();
            return Ok(SelectedRecords::Memory(self.marks));
        }
        self.spill()?;
        self.marks = Vec::new();
        self.parts.map_or(Ok(SelectedRecords::Memory(Vec::new())), merged)
    }
}

/// Merges sorted parts into a set.
fn merged(parts: TemporaryRuns) -> io::Result<SelectedRecords> {
    info!("{} sorted parts of marks in a temporary file", parts.count());
    let mut readers = parts.into_readers()?;
    let mut heap = BinaryHeap::new();
    for (number, reader) in readers.iter_mut().enumerate() {
        heap.extend(next(reader)?.map(|mark| Reverse((mark, number))));
    }
    let mut out = TemporaryRuns::new()?;
    let (mut firsts, mut count, mut last) = (Vec::new(), 0, None);
    while let Some(Reverse((mark, number))) = heap.pop() {
        if last.replace(mark) != Some(mark) {
            if count % BLOCK == 0 {
                firsts.push(mark.time);
            }
            out.push(&mark.bytes())?;
            count += 1;
        }
        heap.extend(next(&mut readers[number])?.map(|mark| Reverse((mark, number))));
    }
    Ok(SelectedRecords::File { file: out.into_file()?, firsts, count })
}

fn next(reader: &mut impl Read) -> io::Result<Option<RecordKey>> {
    let mut bytes = [0; BYTES];
    match reader.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(RecordKey::from_bytes(bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A set of marks.
#[derive(Debug)]
pub enum SelectedRecords {
    /// In order.
    Memory(Vec<RecordKey>),
    /// In order, in a temporary file.
    File {
        /// The file.
        file: File,
        /// The times of the first marks of its blocks.
        firsts: Vec<u64>,
        /// How many marks there are.
        count: usize,
    },
}

impl SelectedRecords {
    /// The marks of these times, in order, and perhaps some around them.
    ///
    /// # Errors
    /// What the temporary file says.
    pub fn around(&self, times: RangeInclusive<u64>) -> io::Result<Cow<'_, [RecordKey]>> {
        match self {
            SelectedRecords::Memory(marks) => {
                let start = marks.partition_point(|mark| mark.time < *times.start());
                let end = start + marks[start..].partition_point(|mark| mark.time <= *times.end());
                Ok(Cow::Borrowed(&marks[start..end]))
            }
            SelectedRecords::File { file, firsts, count } => {
                // Marks of a block's first time may be at the end of the block before.
                let start = firsts.partition_point(|time| time < times.start()).saturating_sub(1) * BLOCK;
                let end = (firsts.partition_point(|time| time <= times.end()) * BLOCK).min(*count);
                let mut bytes = vec![0; end.saturating_sub(start) * BYTES];
                file.read_exact_at(&mut bytes, (start * BYTES) as u64)?;
                let marks =
                    bytes.chunks_exact(BYTES).filter_map(|bytes| bytes.try_into().ok()).map(RecordKey::from_bytes);
                Ok(Cow::Owned(marks.filter(|mark| times.contains(&mark.time)).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use std::collections::BTreeSet;

    #[test]
    fn what_was_put_in_is_found_in_memory_and_in_files() {
        let mut random = SeededRandom::seeded("marks", 5);
        for round in 0..60 {
            let (span, count) = (1 + random.below(5000), random.below(9000));
            let mut collector = SelectionCollector::new([10_000, 1 + random.below(3000)][round % 2]);
            let mut set = BTreeSet::new();
            for _ in 0..count {
                let event = (random.below(100) as u8, random.below(100) as u8, random.below(3) as u8);
                let mark = RecordKey::new(random.below(span) as u64, 7, random.below(9) as u32, event);
                set.insert(mark);
                collector.push(mark).unwrap();
            }
            let marks = collector.finish().unwrap();
            for _ in 0..20 {
                let start = random.below(span + 10) as u64;
                let times = start..=start + random.below(span) as u64;
                let expected: Vec<RecordKey> = set.iter().filter(|mark| times.contains(&mark.time)).copied().collect();
                assert_eq!(*marks.around(times.clone()).unwrap(), expected[..], "{times:?}");
            }
        }
    }

    #[test]
    fn no_two_records_have_the_same_mark() {
        let marks = BTreeSet::from([
            RecordKey::new(5, 9_999_999, 9_999_999, (99, 99, 2)),
            RecordKey::new(5, 9_999_999, 9_999_999, (99, 98, 2)),
            RecordKey::new(5, 9_999_999, 9_999_999, (98, 99, 2)),
            RecordKey::new(5, 9_999_999, 9_999_999, (99, 99, 1)),
            RecordKey::new(5, 9_999_998, 9_999_999, (99, 99, 2)),
            RecordKey::new(5, 9_999_999, 9_999_998, (99, 99, 2)),
            RecordKey::new(6, 9_999_999, 9_999_999, (99, 99, 2)),
        ]);
        assert_eq!(marks.len(), 7);
        assert!(marks.iter().all(|&mark| RecordKey::from_bytes(mark.bytes()) == mark));
    }
}
