//! What reading the files of one host changes where those of other hosts are read with them.
//!
//! Times are corrected by a constant, so that the order and the durations within a host stay. A process whose number is also that of
//! a process of an earlier host gets a number that no process has: nothing that is known by process IDs is mixed up.

use std::collections::BTreeMap;

use memchr::memchr;
use spec::record::{NANOS_PER_SECOND, PID_OFFSET, PID_WIDTH, RECORD_LEN_MAX, TIME_WIDTH};

use crate::record::columns;

/// The columns of a record that are changed, and those before them.
pub const HEAD_WIDTH: usize = PID_OFFSET + PID_WIDTH;
/// The first time that has more than ten digits of seconds.
const TIME_END: u64 = 10_000_000_000 * NANOS_PER_SECOND;
// The head of a record that one read has only the end of is within what is read before it.
const _: () = assert!(HEAD_WIDTH < RECORD_LEN_MAX);

/// A directory's host among those that are read together.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostView {
    /// Its number among the hosts.
    pub index: usize,
    pub name: String,
    /// Nanoseconds to add to the times of the directory's records.
    pub shift: i64,
    /// The numbers by which some of the host's processes are known, by their own ones, which others have.
    pub renumbered: BTreeMap<u32, u32>,
    /// All its processes' own numbers, by those by which they are known.
    pub own: BTreeMap<u32, u32>,
    /// By the number of the other host: two records may be in another order than their times have if these are not more than
    /// so many nanoseconds apart; `None` if nothing is known.
    pub bounds: Vec<Option<u64>>,
}

impl HostView {
    /// The number by which the process `pid` of this host is known.
    pub fn shown(&self, pid: u32) -> u32 {
        self.renumbered.get(&pid).copied().unwrap_or(pid)
    }

    /// The number by which the process `pid` is known; `None` if this host has none of this number.
    pub fn shown_own(&self, pid: u32) -> Option<u32> {
        Some(self.shown(pid)).filter(|shown| self.own(*shown) == Some(pid))
    }

    /// The own number of a process that is known by this number; `None` if it is not one of this host.
    pub fn own(&self, shown: u32) -> Option<u32> {
        self.own.get(&shown).copied()
    }

    /// The corrected time.
    pub fn time(&self, time: u64) -> u64 {
        time.checked_add_signed(self.shift).filter(|&time| time < TIME_END).unwrap_or(time)
    }

    /// Corrects the lines that begin in `bytes`, all of which are complete up to their columns that change.
    pub fn correct_lines(&self, bytes: &mut [u8]) {
        let mut start = 0;
        while let Some(head) = bytes.get_mut(start..).and_then(|bytes| bytes.first_chunk_mut()) {
            self.correct(head);
            let Some(length) = memchr(b'\n', &bytes[start..]) else { break };
            start += length + 1;
        }
    }

    /// Corrects the beginning of a line, if it is that of a record.
    pub fn correct(&self, head: &mut [u8; HEAD_WIDTH]) {
        let Some(time) = columns::time(head) else { return };
        if self.shift != 0 {
            let time = self.time(time);
            write_digits(&mut head[..10], time / NANOS_PER_SECOND);
            write_digits(&mut head[11..TIME_WIDTH], time % NANOS_PER_SECOND);
        }
        if !self.renumbered.is_empty()
            && let Some(&shown) = self.renumbered.get(&columns::pid(head))
            && head[PID_OFFSET..].iter().all(u8::is_ascii_digit)
        {
            write_digits(&mut head[PID_OFFSET..], shown.into());
        }
    }
}

/// Writes a number with leading zeros.
fn write_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_of_records_are_changed_and_nothing_else() {
        let renumbered = BTreeMap::from([(7, 9_999_999)]);
        let view = HostView { shift: -2_000_000_001, renumbered, ..HostView::default() };
        let record = |time: &str, pid: u32| format!("{time}:0000007:{pid:07}:0x7fc5de3f86c0:02:04:0:7:0:0:0:0\n");
        let mut text = [
            record("0000000005:000000000", 7),
            "damaged\n".to_owned(),
            record("0000000001:000000000", 8),
            record("0000000009:999999999", 8),
        ]
        .concat()
        .into_bytes();
        view.correct_lines(&mut text);
        let expected = [
            record("0000000002:999999999", 9_999_999),
            "damaged\n".to_owned(),
            // A time before the Epoch cannot be written.
            record("0000000001:000000000", 8),
            record("0000000007:999999998", 8),
        ];
        assert_eq!(String::from_utf8(text).unwrap(), expected.concat());
    }
}
