//! A record as numbers. The threads that merge parse the lines, so that the one thread that analyses them need not.

use spec::event_numbers::{PROC_BEGIN, PROC_FORK, TRACE_STACK};

use crate::record::columns;
use crate::record::fields::{Fields, bits};
use crate::record::plain_numbers::{PlainNumbers, take_plain};
use crate::trace::hosts::HostTable;

/// The numbers of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumericRecord {
    /// Nanoseconds since the Epoch.
    pub time: u64,
    pub tid: u64,
    /// a1 to a5, each with its 64 bits.
    pub arguments: [u64; 5],
    pub pid: u32,
    pub lwp: u32,
    /// Category, and the event's number within it.
    pub event: (u8, u8),
    /// 0 for the only record of a call, 1 for the first of two, 2 for the second.
    pub which: u8,
}

/// How many bytes [`NumericRecord::append_lines`] appends for each record.
const WIDTH: usize = 9 * 8;
/// The most records among which that of a stack is searched for.
const OWNERS_MAX: usize = 256;

impl From<PlainNumbers> for NumericRecord {
    #[inline(always)]
    fn from(numbers: PlainNumbers) -> NumericRecord {
        let PlainNumbers { time, tid, arguments, pid, lwp, event: (category, number, which) } = numbers;
        NumericRecord { time, tid, arguments, pid, lwp, event: (category, number), which }
    }
}

impl NumericRecord {
    /// The numbers of a line; `None` if it is not a record.
    pub fn parse(line: &[u8]) -> Option<NumericRecord> {
        let fields = Fields::new(line)?;
        Some(NumericRecord {
            time: fields.time(),
            tid: columns::hex(fields.tid()),
            arguments: fields.arguments().map(bits),
            pid: fields.pid(),
            lwp: fields.lwpid(),
            event: fields.event(),
            which: fields.which(),
        })
    }

    /// Appends the numbers of `lines`, all of which are records, as bytes. They are all records of their times.
    /// Stacks come before the records that they belong to, so that a call's stack is known when the call begins.
    pub fn append_lines(lines: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let mut unread = lines;
        while !unread.is_empty() {
            let plain = take_plain(unread, |numbers| NumericRecord::from(numbers).append_to(out, start));
            unread = &unread[plain..];
            // What is not plain, or has too few bytes behind it.
            let Some(line) = columns::lines(unread).next() else { break };
            if let Some(record) = NumericRecord::parse(line) {
                record.append_to(out, start);
            }
            unread = &unread[line.len()..];
        }
    }

    /// Appends its numbers to those that begin at `start`.
    #[inline(always)]
    fn append_to(self, out: &mut Vec<u8>, start: usize) {
        if self.event == TRACE_STACK {
            let place = out.len() - self.owner_distance(&out[start..]);
            out.splice(place..place, self.to_bytes());
        } else {
            out.extend_from_slice(&self.to_bytes());
        }
    }

    /// Changes the records whose numbers are in `bytes`.
    pub fn change(bytes: &mut [u8], mut change: impl FnMut(&mut NumericRecord)) {
        for place in bytes.as_chunks_mut::<WIDTH>().0 {
            let mut record = NumericRecord::of(place);
            change(&mut record);
            *place = record.to_bytes();
        }
    }

    /// Makes the process IDs among the arguments those by which the processes of several hosts are known.
    pub fn show_processes(&mut self, hosts: &HostTable) {
        let (known, has_parent) = (self.pid, self.event == PROC_BEGIN);
        self.change_processes(|pid| match has_parent {
            true => hosts.shown_parent(known, pid),
            false => hosts.shown_beside(known, pid),
        });
    }

    /// Changes the process IDs among the arguments: that of the child or of the parent.
    pub fn change_processes(&mut self, change: impl FnOnce(u32) -> u32) {
        if let (PROC_FORK, 2) | (PROC_BEGIN, 0) = (self.event, self.which) {
            self.arguments[0] = change(self.arguments[0] as u32).into();
        }
    }

    #[inline(always)]
    fn to_bytes(self) -> [u8; WIDTH] {
        let NumericRecord { time, tid, arguments, pid, lwp, event, which } = self;
        let [a1, a2, a3, a4, a5] = arguments;
        let thread = u64::from(pid) | u64::from(lwp) << 32;
        let kind = u64::from_le_bytes([event.0, event.1, which, 0, 0, 0, 0, 0]);
        let mut bytes = [0; WIDTH];
        for (place, number) in bytes.as_chunks_mut().0.iter_mut().zip([time, tid, a1, a2, a3, a4, a5, thread, kind]) {
            *place = number.to_le_bytes();
        }
        bytes
    }

    /// How many bytes before the end of `before` the record begins that this stack belongs to; 0 if none does. Of a call that
    /// failed at once that is the first of both records.
    fn owner_distance(&self, before: &[u8]) -> usize {
        let latest = before.as_rchunks::<WIDTH>().1.iter().rev().take(OWNERS_MAX);
        let mut owner: Option<(usize, (u8, u8))> = None;
        for (index, record) in latest.map(NumericRecord::of).enumerate() {
            if record.time != self.time {
                break;
            }
            if record.owner() != self.owner() || record.event == TRACE_STACK {
                continue;
            }
            if owner.is_none_or(|(_, event)| (event, 1) == (record.event, record.which)) {
                owner = Some((index + 1, record.event));
            }
            if record.which != 2 {
                break;
            }
        }
        owner.map_or(0, |(records, _)| records * WIDTH)
    }

    /// What a record and its stack have in common.
    pub fn owner(&self) -> (u64, u32, u32) {
        (self.time, self.pid, self.lwp)
    }

    /// The records whose numbers were appended to `bytes`.
    pub fn of_bytes(bytes: &[u8]) -> impl Iterator<Item = NumericRecord> {
        bytes.as_chunks::<WIDTH>().0.iter().map(NumericRecord::of)
    }

    /// The numbers of at most so many records each, one after the other.
    pub fn batches(bytes: &[u8], records: usize) -> impl Iterator<Item = &[u8]> {
        bytes.chunks(records * WIDTH)
    }

    #[inline(always)]
    fn of(bytes: &[u8; WIDTH]) -> NumericRecord {
        let mut numbers = [0; WIDTH / 8];
        for (number, place) in numbers.iter_mut().zip(bytes.as_chunks().0) {
            *number = u64::from_le_bytes(*place);
        }
        let [time, tid, a1, a2, a3, a4, a5, thread, kind] = numbers;
        let [category, event, which, ..] = kind.to_le_bytes();
        NumericRecord {
            time,
            tid,
            arguments: [a1, a2, a3, a4, a5],
            pid: thread as u32,
            lwp: (thread >> 32) as u32,
            event: (category, event),
            which,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_way_as_bytes() {
        let lines = "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:02:30:1:0x559469ed90a0:0:-7:110:5\n\
                     9999999999:999999999:9999999:8888888:0xff7fc5de3f86c0:99:98:2:18446744073709551615:0:0:0:0\n";
        let mut bytes = Vec::new();
        NumericRecord::append_lines(lines.as_bytes(), &mut bytes);
        let first = NumericRecord {
            time: 1_795_174_740_544_763_329,
            tid: 0x7fc5_de3f_86c0,
            arguments: [0x5594_69ed_90a0, 0, -7i64 as u64, 110, 5],
            pid: 7,
            lwp: 19955,
            event: (2, 30),
            which: 1,
        };
        let second = NumericRecord {
            time: 9_999_999_999_999_999_999,
            tid: 0xff_7fc5_de3f_86c0,
            arguments: [u64::MAX, 0, 0, 0, 0],
            pid: 8_888_888,
            lwp: 9_999_999,
            event: (99, 98),
            which: 2,
        };
        assert_eq!(NumericRecord::of_bytes(&bytes).collect::<Vec<_>>(), [first, second]);
        for records in 1..4 {
            let batches = NumericRecord::batches(&bytes, records).flat_map(NumericRecord::of_bytes);
            assert_eq!(batches.collect::<Vec<_>>(), [first, second]);
        }
    }
}
