//! The conditions of [`Filter`](super::Filter) for `--follow`, where records arrive as they are made, so that the return record
//! of a call does not exist yet when its entry record arrives.
//!
//! An entry record that is decided alone is selected at once. Another one is kept until its return record arrives, and then
//! both are selected or neither. Calls that do not end are selected when they have lasted long enough, or decided at the end.

use super::batch_note::CallRecord;
use super::call_filter::CallFilter;
use super::open_call_table::OpenCallTable;
use super::record_filter::RecordFilter;
use crate::calls::pairing::{CallKey, OPEN_CALLS_MAX, OpenCalls};
use crate::calls::process_ends::{EndingRecord, OpenReason, OpenUntil, ProcessEnds};
use crate::options::Selection;
use crate::record::call_stack::{StackOwners, is_stack};
use crate::record::columns;

/// Selects records as they arrive.
#[derive(Debug)]
pub struct StreamingFilter {
    records: RecordFilter,
    calls: Option<StreamingCallFilter>,
    /// The latest records that were selected at once.
    owners: StackOwners,
}

#[derive(Debug)]
struct StreamingCallFilter {
    filter: CallFilter,
    open_calls: OpenCalls<PendingEntry>,
    ends: ProcessEnds,
    latest: u64,
    /// The calls of the latest entry records.
    entries: StackOwners<CallKey>,
}

#[derive(Debug)]
struct PendingEntry {
    record: CallRecord,
    /// With the lines of its stack. `None` if the record was selected already.
    line: Option<Box<[u8]>>,
    /// It was selected because the call lasts.
    lasts: bool,
}

impl StreamingFilter {
    /// The conditions of `selection`, without those on times and numbers of records.
    pub fn new(selection: &Selection) -> StreamingFilter {
        let calls = CallFilter::new(selection).map(|filter| StreamingCallFilter {
            filter,
            open_calls: OpenCalls::default(),
            ends: ProcessEnds::default(),
            latest: 0,
            entries: StackOwners::default(),
        });
        StreamingFilter { records: RecordFilter::new(selection), calls, owners: StackOwners::default() }
    }

    /// Takes the record `line`, and appends to `out` the records that it selects.
    pub fn push(&mut self, line: &[u8], out: &mut Vec<u8>) {
        if is_stack(line) {
            let is_kept = self.calls.as_mut().is_some_and(|calls| calls.keep_stack(line));
            if !is_kept && self.owners.own(line) {
                out.extend_from_slice(line);
            }
            return;
        }
        let (is_possible, before) = (self.records.wants(line), out.len());
        match &mut self.calls {
            Some(calls) => calls.push(line, is_possible, out),
            None if is_possible => out.extend_from_slice(line),
            None => {}
        }
        if out.ends_with(line) && out.len() > before {
            self.owners.add(line, ());
        }
    }

    /// Appends, in the order of time, the entry records of calls that are selected because they have not ended before `now`.
    /// Returns until when they lasted; `running` are the processes that run, each with the present in the time of its records.
    pub fn push_lasting_calls(&mut self, now: u64, running: &[(u32, u64)], out: &mut Vec<u8>) -> OpenCallTable {
        self.calls.as_mut().map_or_else(OpenCallTable::default, |calls| calls.push_lasting(now, running, out))
    }

    /// Appends the selected entry records of open calls, in the order of time. Returns until when the selected open calls lasted,
    /// those whose entry record was selected before among them; `running` as above.
    pub fn end(&mut self, running: &[(u32, u64)], out: &mut Vec<u8>) -> OpenCallTable {
        self.calls.as_mut().map_or_else(OpenCallTable::default, |calls| calls.close_all(Some(running), out))
    }
}

impl StreamingCallFilter {
    /// Keeps a line of a stack with its entry record, if that waits for its return record.
    fn keep_stack(&mut self, stack: &[u8]) -> bool {
        let time = columns::time(stack);
        let entry = self.entries.find(stack).and_then(|call| self.open_calls.last_mut(call));
        let line = entry.filter(|entry| Some(entry.record.time) == time).and_then(|entry| entry.line.as_mut());
        let is_kept = line.is_some();
        line.into_iter().for_each(|line| *line = [line, stack].concat().into());
        is_kept
    }

    fn push(&mut self, line: &[u8], is_possible: bool, out: &mut Vec<u8>) {
        let event = columns::event(line);
        let record = self.filter.call_record(line, event);
        self.latest = self.latest.max(record.time);
        self.ends.add_line(line, event);
        if !is_possible {
            return;
        }
        let is_decided = self.filter.decides_by_one_record() && record.names_object;
        if is_decided && event.2 != 2 || EndingRecord::of(event) == Some(EndingRecord::Loss) {
            out.extend_from_slice(line);
        }
        let call = CallKey::of(line, event);
        match event.2 {
            1 => {
                let line_of_entry = line;
                let line = (!is_decided).then(|| line.into());
                self.open_calls.begin(call, PendingEntry { record, line, lasts: false });
                self.entries.add(line_of_entry, call);
                if self.open_calls.len() > OPEN_CALLS_MAX {
                    self.close_all(None, out);
                }
            }
            2 => {
                let entry = self.open_calls.end(call);
                let lasts = entry.as_ref().is_some_and(|entry| entry.lasts);
                if lasts || self.filter.wants(call, entry.as_ref().map(|entry| entry.record), Some(record), None) {
                    out.extend_from_slice(entry.and_then(|entry| entry.line).as_deref().unwrap_or_default());
                    out.extend_from_slice(line);
                }
            }
            _ => {}
        }
    }

    fn push_lasting(&mut self, now: u64, running: &[(u32, u64)], out: &mut Vec<u8>) -> OpenCallTable {
        let mut table = OpenCallTable::default();
        if self.filter.decides_by_one_record() {
            return table;
        }
        let mut selected = Vec::new();
        let began = now.saturating_sub(self.filter.least_duration());
        for (call, entry) in self.open_calls.iter_mut().filter(|(_, entry)| entry.record.time <= began) {
            if entry.line.is_none() {
                continue;
            }
            let until = open_until(&self.ends, call, entry.record.time, running);
            if matches!(until.reason, OpenReason::LastSeen | OpenReason::Runs)
                && self.filter.wants(call, Some(entry.record), None, Some(until))
            {
                entry.lasts = true;
                table.add_call(call, entry.record.time, until);
                selected.extend(entry.line.take().map(|line| (entry.record.time, line)));
            }
        }
        selected.sort();
        selected.iter().for_each(|(_, line)| out.extend_from_slice(line));
        table
    }

    /// Takes all open calls for calls that do not end: at the end, when these processes are `running`, or because they are too
    /// many.
    fn close_all(&mut self, running: Option<&[(u32, u64)]>, out: &mut Vec<u8>) -> OpenCallTable {
        let (mut selected, mut table) = (Vec::new(), OpenCallTable::default());
        for (call, PendingEntry { record, line, lasts }) in std::mem::take(&mut self.open_calls).into_open_calls() {
            let mut until = open_until(&self.ends, call, record.time, running.unwrap_or_default());
            if running.is_none() && until.reason == OpenReason::LastSeen {
                // It has run for as long as records arrived.
                until = OpenUntil { time: self.latest, reason: OpenReason::Runs };
            }
            if lasts || self.filter.wants(call, Some(record), None, Some(until)) {
                table.add_call(call, record.time, until);
                selected.extend(line.map(|line| (record.time, line)));
            }
        }
        selected.sort();
        selected.iter().for_each(|(_, line)| out.extend_from_slice(line));
        table
    }
}

/// Until when a call lasted that began at `entry` and has no return record, if these processes are `running`.
fn open_until(ends: &ProcessEnds, call: CallKey, entry: u64, running: &[(u32, u64)]) -> OpenUntil {
    let until = ends.open_until(call.pid, call.lwp, entry);
    match running.iter().find(|(pid, _)| *pid == call.pid) {
        Some((_, now)) if until.reason == OpenReason::LastSeen => {
            OpenUntil { time: until.time.max(*now), reason: OpenReason::Runs }
        }
        _ => until,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    /// The times of the selected ones of these records (time, LWP, event, arguments): of those selected at once, and of those
    /// selected at the end.
    fn selected_times(selection: &Selection, records: &[(u64, u32, &str, &str)]) -> [Vec<u64>; 2] {
        let mut filter = StreamingFilter::new(selection);
        let times = |out: &[u8]| {
            out.split_inclusive(|&byte| byte == b'\n').map(|line| columns::time(line).unwrap()).collect::<Vec<u64>>()
        };
        let (mut out, mut open) = (Vec::new(), Vec::new());
        for (time, lwp, event, arguments) in records {
            let line = format!("0000000000:{time:09}:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:{arguments}\n");
            filter.push(line.as_bytes(), &mut out);
        }
        filter.end(&[(1, 20)], &mut open);
        [times(&out), times(&open)]
    }

    #[test]
    fn losses_are_selected_whatever_the_conditions_on_calls() {
        let lost = [(5, 1, "00:01:0", "7:28:0:0:0")];
        let object = Selection { objects: vec![0x10], blocked: true, longer: Some(8), ..Selection::default() };
        assert_eq!(selected_times(&object, &lost), [vec![5], vec![]]);
        let other_lwp = Selection { lwps: vec![2], blocked: true, ..Selection::default() };
        assert_eq!(selected_times(&other_lwp, &lost), [Vec::<u64>::new(), vec![]]);
    }

    const RECORDS: [(u64, u32, &str, &str); 7] = [
        (1, 1, "02:02:1", "0x10:0:0:0:0"),
        (2, 2, "02:02:1", "0x20:0:0:0:0"),
        (3, 1, "02:04:0", "0x30:0:0:0:0"),
        (4, 2, "02:02:2", "0:0:0:0:0"),
        (9, 1, "02:02:2", "0:1:0:0:0"),
        (10, 2, "04:02:1", "0x40:0:0:0:0"),
        (20, 1, "11:04:0", "0:0:0:0:0"),
    ];

    #[test]
    fn both_records_are_selected_when_the_return_record_decides() {
        let blocked = Selection { blocked: true, ..Selection::default() };
        assert_eq!(selected_times(&blocked, &RECORDS), [vec![1, 9], vec![10]]);
        let longer = Selection { longer: Some(8), ..Selection::default() };
        assert_eq!(selected_times(&longer, &RECORDS), [vec![1, 9], vec![10]]);
        let longer = Selection { longer: Some(11), ..Selection::default() };
        assert_eq!(selected_times(&longer, &RECORDS), [Vec::<u64>::new(), vec![]]);
    }

    #[test]
    fn a_call_that_lasts_is_selected_before_it_ends() {
        let second = 1_000_000_000;
        let times = |filter: &mut StreamingFilter, lines: &[(u64, u32, &str, &str)], now| {
            let mut out = Vec::new();
            for (time, lwp, event, arguments) in lines {
                let time = format!("{:010}:{:09}", time / second, time % second);
                let line = format!("{time}:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:{arguments}\n");
                filter.push(line.as_bytes(), &mut out);
            }
            filter.push_lasting_calls(now, &[], &mut out);
            columns::lines(&out).map(|line| columns::time(line).unwrap()).collect::<Vec<u64>>()
        };
        // A lock, a call that cannot wait, and one whose end may be lost.
        let begun = [
            (1, 1, "02:02:1", "0x10:0:0:0:0"),
            (2, 2, "01:01:1", "0:0x5:0:0:0"),
            (3, 3, "02:02:1", "0x10:0:0:0:0"),
            (4, 3, "00:01:0", "7:28:0:0:0"),
        ];
        for (selection, least) in [
            (Selection { blocked: true, ..Selection::default() }, second),
            (Selection { longer: Some(5), ..Selection::default() }, 5),
            (Selection { longer: Some(3 * second), blocked: true, ..Selection::default() }, 3 * second),
        ] {
            let mut filter = StreamingFilter::new(&selection);
            assert_eq!(times(&mut filter, &begun, least), [4]);
            assert_eq!(times(&mut filter, &[], least + 1), [1], "{selection:?}");
            assert_eq!(times(&mut filter, &[], least + 2), [0u64; 0]);
            // It did not have to wait after all, but its end belongs to the beginning.
            assert_eq!(times(&mut filter, &[(least + 3, 1, "02:02:2", "0:0:0:0:0")], least + 3), [least + 3]);
        }
    }

    #[test]
    fn open_calls_have_the_reason_why_they_are_open() {
        let call = |lwp| CallKey { pid: 1, lwp, tid: 0x7fc5_de3f_86c0, category: 2, number: 2, name: 0 };
        let lock = |time, lwp| record(time, lwp, "02:02:1", 0x10);
        for (running, expected) in [(&[(1, 90)][..], (90, OpenReason::Runs)), (&[(2, 90)], (7, OpenReason::LastSeen))] {
            let mut filter = StreamingFilter::new(&Selection { longer: Some(50), ..Selection::default() });
            let mut out = Vec::new();
            [lock(5, 1), lock(6, 2), record(7, 2, "02:04:0", 0x10)]
                .iter()
                .for_each(|line| filter.push(line.as_bytes(), &mut out));
            let lasting = filter.push_lasting_calls(55, running, &mut out);
            assert_eq!(out, lock(5, 1).into_bytes());
            let in_the_end = filter.end(running, &mut out);
            assert_eq!(out, [lock(5, 1), lock(6, 2)].concat().into_bytes());
            let found =
                |table: &OpenCallTable, lwp, time| table.find(call(lwp), time).map(|until| (until.time, until.reason));
            assert_eq!([found(&lasting, 1, 5), found(&lasting, 2, 6)], [Some(expected), None]);
            // Those that were selected before are still open.
            assert_eq!([found(&in_the_end, 1, 5), found(&in_the_end, 2, 6)], [Some(expected); 2]);
        }
    }

    #[test]
    fn a_record_that_is_decided_alone_is_selected_at_once() {
        let object = Selection { objects: vec![0x10, 0x30], ..Selection::default() };
        assert_eq!(selected_times(&object, &RECORDS), [vec![1, 3, 9], vec![]]);
        assert_eq!(selected_times(&object, &RECORDS[..3]), [vec![1, 3], vec![]]);
        // Only the return record names the created thread.
        let child = Selection { objects: vec![0x99], ..Selection::default() };
        let create = [(1, 1, "01:01:1", "0:0x5:0:0:0"), (2, 1, "01:01:2", "0:0x99:0:0:0")];
        assert_eq!(selected_times(&child, &create), [vec![1, 2], vec![]]);
    }

    #[test]
    fn conditions_on_records_are_checked_too() {
        let lwp = Selection { lwps: vec![2], blocked: true, ..Selection::default() };
        assert_eq!(selected_times(&lwp, &RECORDS), [vec![], vec![10]]);
        let all = selected_times(&Selection::default(), &RECORDS);
        assert_eq!(all, [RECORDS.iter().map(|record| record.0).collect(), vec![]]);
    }
}
