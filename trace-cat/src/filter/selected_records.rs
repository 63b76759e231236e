//! A set of records, which is as large as the disk and is read by time.
//!
//! Records that agree in time, process, LWP, event and kind have one key.

use std::borrow::Cow;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

use crate::record::columns;
use crate::support::external_sort::ExternalSort;
use crate::support::temporary_files::TemporaryFile;

/// Keys that are in memory at most while they are collected.
pub const KEYS_IN_MEMORY: usize = 1 << 19;
/// Keys of a block. The first time of each block is in memory.
const KEYS_PER_BLOCK: usize = 1 << 10;
/// Bytes of a key in a file.
const KEY_LEN: usize = 16;

/// What identifies a record. Keys are ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// Nanoseconds since the Epoch.
    pub time: u64,
    /// Process, LWP and event.
    numbers: u64,
}

impl RecordKey {
    /// The record at `time` of this process, LWP, category, event and kind. None of these has more bits than the digits of a
    /// record can express.
    pub fn new(time: u64, pid: u32, lwp: u32, (category, number, which): (u8, u8, u8)) -> RecordKey {
        let event = u64::from(category & 127) << 9 | u64::from(number & 127) << 2 | u64::from(which & 3);
        RecordKey { time, numbers: u64::from(pid & 0xff_ffff) << 40 | u64::from(lwp & 0xff_ffff) << 16 | event }
    }

    /// The key of the record `line`.
    pub fn of(line: &[u8], time: u64, event: (u8, u8, u8)) -> RecordKey {
        RecordKey::new(time, columns::pid(line), columns::lwpid(line), event)
    }

    /// As [`key_collector`] takes it.
    pub fn to_bytes(self) -> [u8; KEY_LEN] {
        (u128::from(self.time) << 64 | u128::from(self.numbers)).to_le_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> RecordKey {
        let number = u128::from_le_bytes(*bytes.first_chunk().expect("the bytes of a key"));
        RecordKey { time: (number >> 64) as u64, numbers: number as u64 }
    }
}

/// Collects keys in any order, some of them repeatedly; `keys_in_memory` are in memory at most.
pub fn key_collector(keys_in_memory: usize) -> ExternalSort<RecordKey> {
    ExternalSort::new(RecordKey::from_bytes, keys_in_memory * KEY_LEN)
}

/// A set of records.
#[derive(Debug)]
pub enum SelectedRecords {
    /// Sorted keys.
    Memory(Vec<RecordKey>),
    /// Sorted keys in a temporary file.
    File {
        file: TemporaryFile,
        /// The time of the first key of each block.
        first_times: Vec<u64>,
        count: usize,
    },
}

impl SelectedRecords {
    /// The set of all keys that were collected.
    pub fn new(collector: ExternalSort<RecordKey>) -> io::Result<SelectedRecords> {
        if collector.is_in_memory() {
            let mut keys = Vec::new();
            collector.finish(&mut |bytes| {
                keys.push(RecordKey::from_bytes(bytes));
                Ok(())
            })?;
            keys.dedup();
            return Ok(SelectedRecords::Memory(keys));
        }
        let mut file = TemporaryFile::new()?;
        let (mut first_times, mut count, mut last) = (Vec::new(), 0, None);
        collector.finish(&mut |bytes| {
            let key = RecordKey::from_bytes(bytes);
            if last.replace(key) == Some(key) {
                return Ok(());
            }
            if count % KEYS_PER_BLOCK == 0 {
                first_times.push(key.time);
            }
            count += 1;
            file.push(bytes)
        })?;
        file.flush()?;
        Ok(SelectedRecords::File { file, first_times, count })
    }

    /// The sorted keys of `times`.
    pub fn within(&self, times: RangeInclusive<u64>) -> io::Result<Cow<'_, [RecordKey]>> {
        match self {
            SelectedRecords::Memory(keys) => {
                let start = keys.partition_point(|key| key.time < *times.start());
                let end = start + keys[start..].partition_point(|key| key.time <= *times.end());
                Ok(Cow::Borrowed(&keys[start..end]))
            }
            SelectedRecords::File { file, first_times, count } => {
                // Keys of a block's first time may be at the end of the block before.
                let start = first_times.partition_point(|time| time < times.start()).saturating_sub(1) * KEYS_PER_BLOCK;
                let end = (first_times.partition_point(|time| time <= times.end()) * KEYS_PER_BLOCK).min(*count);
                let mut bytes = vec![0; end.saturating_sub(start) * KEY_LEN];
                file.file().read_exact_at(&mut bytes, (start * KEY_LEN) as u64)?;
                let keys = bytes.chunks_exact(KEY_LEN).map(RecordKey::from_bytes);
                Ok(Cow::Owned(keys.filter(|key| times.contains(&key.time)).collect()))
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
    fn what_was_added_is_read_from_memory_and_from_files() {
        let mut random = SeededRandom::seeded("selected", 5);
        for round in 0..60 {
            let (span, count) = (1 + random.below(5000), random.below(9000));
            let mut collector = key_collector([10_000, 1 + random.below(3000)][round % 2]);
            let mut set = BTreeSet::new();
            for _ in 0..count {
                let event = (random.below(100) as u8, random.below(100) as u8, random.below(3) as u8);
                let key = RecordKey::new(random.below(span) as u64, 7, random.below(9) as u32, event);
                set.insert(key);
                collector.push(&key.to_bytes()).unwrap();
            }
            let selected = SelectedRecords::new(collector).unwrap();
            for _ in 0..20 {
                let start = random.below(span + 10) as u64;
                let times = start..=start + random.below(span) as u64;
                let expected: Vec<RecordKey> = set.iter().filter(|key| times.contains(&key.time)).copied().collect();
                assert_eq!(*selected.within(times.clone()).unwrap(), expected[..], "{times:?}");
            }
        }
    }

    #[test]
    fn no_two_records_have_the_same_key() {
        let keys = BTreeSet::from([
            RecordKey::new(5, 9_999_999, 9_999_999, (99, 99, 2)),
            RecordKey::new(5, 9_999_999, 9_999_999, (99, 98, 2)),
            RecordKey::new(5, 9_999_999, 9_999_999, (98, 99, 2)),
            RecordKey::new(5, 9_999_999, 9_999_999, (99, 99, 1)),
            RecordKey::new(5, 9_999_998, 9_999_999, (99, 99, 2)),
            RecordKey::new(5, 9_999_999, 9_999_998, (99, 99, 2)),
            RecordKey::new(6, 9_999_999, 9_999_999, (99, 99, 2)),
        ]);
        assert_eq!(keys.len(), 7);
        assert!(keys.iter().all(|&key| RecordKey::from_bytes(&key.to_bytes()) == key));
    }
}
