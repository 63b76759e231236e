//! The keys by which records are merged.
//!
//! At equal times the records of one file keep their order. Between files, a record that is stamped before its call comes
//! first, and the file names decide otherwise. A merge that follows this rule takes, of one time, the records of each file
//! before the first one that is stamped after its call, file by file, and then the others, file by file. So the *phase* of
//! the former records is 0, the phase of the latter is 1, and (time, phase, file) is the order.

use spec::record::{EVENT1_OFFSET, EVENT1_OFFSET_MAX};
use spec::{EVENTS, Stamp};

use crate::record::columns;

/// A time since the start of a slice, a phase and a stream, packed so that keys compare in this order.
pub trait MergeKey: Copy + Ord {
    /// The key of a stream that has ended, which comes after all others.
    const END: Self;

    /// The bits that there are for a time, beside `bits` bits for the number of a stream.
    fn room(bits: u32) -> u32;

    /// The key of a record at `time`. `before` is the key of the record before it in its stream, and `after` is 1 if the
    /// record is stamped after its call.
    fn next(before: Self, time: u64, after: u64, bits: u32) -> Self;

    /// The key before the first record of `stream`.
    fn begin(stream: u32) -> Self;

    /// The number of the stream.
    fn stream(self, bits: u32) -> usize;
}

macro_rules! key {
    ($key:ty) => {
        impl MergeKey for $key {
            const END: Self = Self::MAX;

            fn room(bits: u32) -> u32 {
                // One more bit is left, so that no key equals `END`.
                Self::BITS - bits - 2
            }

            #[inline(always)]
            fn next(before: Self, time: u64, after: u64, bits: u32) -> Self {
                let time = Self::from(time) << (bits + 1);
                let stream = before & ((1 << bits) - 1);
                let is_same_time = (before ^ time) >> (bits + 1) == 0;
                let phase = Self::from(after) | ((before >> bits & 1) & Self::from(is_same_time));
                time | phase << bits | stream
            }

            fn begin(stream: u32) -> Self {
                Self::from(stream)
            }

            #[inline(always)]
            fn stream(self, bits: u32) -> usize {
                (self & ((1 << bits) - 1)) as usize
            }
        }
    };
}

key!(u64);
key!(u128);

/// Which records are stamped after their call: a bit for each event and kind of record, indexed by their digits.
pub struct StampTable(Box<[u64; StampTable::WORDS]>);

impl StampTable {
    const WORDS: usize = 1 << 12;

    pub fn new() -> StampTable {
        // An event that is not in the table is not known to release anything, so it counts as stamped after its call.
        let mut stamps = StampTable(Box::new([u64::MAX; StampTable::WORDS]));
        for event in &EVENTS {
            for kind in event.kinds.iter().filter(|kind| kind.stamp == Stamp::Before) {
                let bit = StampTable::bit((event.category, event.number, kind.which));
                stamps.0[bit / 64] &= !(1 << (bit % 64));
            }
        }
        stamps
    }

    fn bit((category, number, which): (u8, u8, u8)) -> usize {
        let digits = |number: u8| usize::from(number / 10 % 10) | usize::from(number % 10) << 4;
        digits(category) | digits(number) << 8 | usize::from(which & 3) << 16
    }

    /// 1 if the record is stamped after its call, else 0.
    #[inline(always)]
    pub fn after(&self, line: &[u8; EVENT1_OFFSET_MAX + 8]) -> u64 {
        // These are `cc:nn:w:` if the thread ID has its usual width.
        let [c1, c2, _, n1, n2, _, w, _] = *line[EVENT1_OFFSET..].first_chunk().expect("more than a head");
        let bit = if line[EVENT1_OFFSET - 1] == b':' {
            let digits = u64::from_le_bytes([c1, c2, 0, n1, n2, 0, w, 0]) & 0x0003_000f_0f00_0f0f;
            let pairs = (digits | digits >> 4) & 0x0003_0000_ff00_00ff;
            // The product has bits 0 to 7, 24 to 31, 48 and 49 at its top; no two partial products overlap.
            (pairs.wrapping_mul(1 << 46 | 1 << 30 | 1 << 14) >> 46) as usize
        } else {
            StampTable::bit(columns::event(line))
        };
        self.0[bit / 64 % StampTable::WORDS] >> (bit % 64) & 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_those_of_the_table() {
        let stamps = StampTable::new();
        let after = |tid: &str, event: &str, which: u8| {
            let line = format!("1795174740:544763329:0019955:0019953:{tid}:{event}:{which}:0:0:0:0:0\n");
            stamps.after(line.as_bytes().first_chunk().unwrap())
        };
        for event in &EVENTS {
            for kind in event.kinds {
                let expected = u64::from(kind.stamp != Stamp::Before);
                let numbers = format!("{:02}:{:02}", event.category, event.number);
                for tid in ["0x7fc5de3f86c0", "0x007fc5de3f86c0"] {
                    assert_eq!(after(tid, &numbers, kind.which), expected, "{numbers} {tid}");
                }
            }
        }
        assert_eq!((after("0x7fc5de3f86c0", "12:04", 0), after("0x7fc5de3f86c0", "99:99", 2)), (1, 1));
    }

    fn keys<K: MergeKey>(bits: u32) {
        let first = K::next(K::begin(1), 5, 0, bits);
        let second = K::next(first, 5, 1, bits);
        let third = K::next(second, 5, 0, bits);
        let fourth = K::next(third, 6, 0, bits);
        assert!(first < second && second == third && third < fourth && fourth < K::END);
        assert_eq!([first, second, fourth].map(|key| key.stream(bits)), [1; 3]);
        assert!(K::next(K::begin(2), 5, 0, bits) > first && K::next(K::begin(2), 5, 0, bits) < second);
        let late = u64::MAX >> (64 - K::room(bits).min(64));
        assert!(K::next(K::begin(1), late, 1, bits) < K::END);
    }

    #[test]
    fn a_phase_lasts_until_the_time_changes() {
        for bits in [2, 17] {
            keys::<u64>(bits);
            keys::<u128>(bits);
        }
    }
}
