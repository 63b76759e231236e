//! Until when calls without a return record lasted, as far as the records show.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::record::columns;

/// The most processes, and the most ends and losses, that are kept.
pub const PROCESS_ENDS_MAX: usize = 1 << 18;

/// A record that decides about open calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndingRecord {
    /// The process exits, or executes another program.
    End,
    /// The process could not execute another program.
    ExecFailed,
    /// Records of the thread were lost from its time on.
    Loss,
}

impl EndingRecord {
    /// What a record is, by its category, event and kind.
    pub fn of(event: (u8, u8, u8)) -> Option<EndingRecord> {
        match event {
            (11, 4, 0) | (11, 3, 1) => Some(EndingRecord::End),
            (11, 3, 2) => Some(EndingRecord::ExecFailed),
            (0, 1, 0) => Some(EndingRecord::Loss),
            _ => None,
        }
    }
}

/// Until when an open call lasted, and why that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenUntil {
    /// Nanoseconds since the Epoch: the call did not return before.
    pub time: u64,
    pub reason: OpenReason,
}

/// Why an open call has no return record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenReason {
    /// Its process ended or executed another program, and the call with it.
    Ended,
    /// Its process runs, and it lasts still.
    Runs,
    /// Its process was killed at an unknown time, after its last record.
    LastSeen,
    /// Records of its thread were lost from then on; the return record may be one of them.
    CutOff,
}

/// The ends of processes.
#[derive(Debug, Default)]
pub struct ProcessEnds {
    processes: HashMap<u32, ProcessEnd, RandomState>,
    /// The times from which on records were lost, by process and LWP.
    losses: HashMap<(u32, u32), Vec<u64>, RandomState>,
    /// How many ends and losses there are.
    count: usize,
}

#[derive(Debug, Default)]
struct ProcessEnd {
    /// The time of the last record.
    last_record: u64,
    /// When it exited, or executed another program, in order.
    ends: Vec<u64>,
    /// Until when it has run, if it has not ended.
    running_until: Option<u64>,
}

impl ProcessEnds {
    /// No end, of processes among which these run until now, in the time of their records.
    pub fn with_running(running: impl IntoIterator<Item = (u32, u64)>) -> ProcessEnds {
        let mut ends = ProcessEnds::default();
        for (pid, now) in running {
            ends.processes.entry(pid).or_default().running_until = Some(now);
        }
        ends
    }

    /// Takes the time of a record of a process.
    pub fn add_record(&mut self, pid: u32, time: u64) {
        if self.processes.len() < PROCESS_ENDS_MAX || self.processes.contains_key(&pid) {
            let process = self.processes.entry(pid).or_default();
            process.last_record = process.last_record.max(time);
        }
    }

    /// Takes a record that decides about open calls. Records are in order.
    pub fn add_ending(&mut self, kind: EndingRecord, pid: u32, lwp: u32, time: u64) {
        if kind == EndingRecord::ExecFailed {
            self.processes.get_mut(&pid).and_then(|process| process.ends.pop());
            return;
        }
        if self.count == PROCESS_ENDS_MAX {
            return;
        }
        self.count += 1;
        match kind {
            EndingRecord::Loss => self.losses.entry((pid, lwp)).or_default().push(time),
            _ => self.processes.entry(pid).or_default().ends.push(time),
        }
    }

    /// Takes a line, whose event is `event`.
    pub fn add_line(&mut self, line: &[u8], event: (u8, u8, u8)) {
        let (pid, time) = (columns::pid(line), columns::time(line).unwrap_or(0));
        self.add_record(pid, time);
        if let Some(kind) = EndingRecord::of(event) {
            self.add_ending(kind, pid, columns::lwpid(line), time);
        }
    }

    /// Until when a call lasted that an LWP began at `entry` and that has no return record.
    pub fn open_until(&self, pid: u32, lwp: u32, entry: u64) -> OpenUntil {
        let first_from_entry = |times: &Vec<u64>| times.iter().copied().find(|&time| time >= entry);
        let process = self.processes.get(&pid);
        let end = process.and_then(|process| first_from_entry(&process.ends));
        let loss = self.losses.get(&(pid, lwp)).and_then(first_from_entry);
        let last_record = process.map_or(entry, |process| process.last_record.max(entry));
        let (time, reason) = match (loss, end, process.and_then(|process| process.running_until)) {
            (Some(loss), end, _) if end.is_none_or(|end| loss <= end) => (loss, OpenReason::CutOff),
            (_, Some(end), _) => (end, OpenReason::Ended),
            (_, None, Some(now)) => (now.max(last_record), OpenReason::Runs),
            (_, None, None) => (last_record, OpenReason::LastSeen),
        };
        OpenUntil { time, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    fn ends(running: &[(u32, u64)], lines: &[String]) -> ProcessEnds {
        let mut ends = ProcessEnds::with_running(running.iter().copied());
        lines.iter().for_each(|line| ends.add_line(line.as_bytes(), columns::event(line.as_bytes())));
        ends
    }

    #[test]
    fn an_open_call_lasts_as_long_as_its_process_is_known_to() {
        let until = |running: &[(u32, u64)], lines: &[String], entry| {
            let OpenUntil { time, reason } = ends(running, lines).open_until(1, 7, entry);
            (time, reason)
        };
        let unlock = record(20, 8, "02:04:0", 5);
        let exit = record(30, 8, "11:04:0", 0);
        assert_eq!(until(&[], std::slice::from_ref(&unlock), 10), (20, OpenReason::LastSeen));
        assert_eq!(until(&[], &[unlock.clone(), exit.clone()], 10), (30, OpenReason::Ended));
        assert_eq!(until(&[(1, 50)], std::slice::from_ref(&unlock), 10), (50, OpenReason::Runs));
        // The number was used again.
        assert_eq!(until(&[(1, 50)], &[exit.clone(), record(40, 1, "02:04:0", 5)], 35), (50, OpenReason::Runs));
        assert_eq!(until(&[], &[exit.clone(), record(40, 1, "02:04:0", 5)], 10), (30, OpenReason::Ended));
        assert_eq!(until(&[], &[], 10), (10, OpenReason::LastSeen));
        // Another thread's losses do not matter, nor do earlier ones.
        let lost = [record(5, 7, "00:01:0", 9), record(15, 9, "00:01:0", 9), exit.clone()];
        assert_eq!(until(&[], &lost, 10), (30, OpenReason::Ended));
        assert_eq!(until(&[], &[record(15, 7, "00:01:0", 9), exit.clone()], 10), (15, OpenReason::CutOff));
        let exec = record(18, 8, "11:03:1", 0);
        assert_eq!(until(&[], &[exec.clone(), exit.clone()], 10), (18, OpenReason::Ended));
        assert_eq!(until(&[], &[exec, record(19, 8, "11:03:2", 2), exit], 10), (30, OpenReason::Ended));
    }
}
