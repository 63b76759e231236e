//! The same questions, asked of records as they come: for `--follow`, where what a call's second record will say is not known
//! when its first one is there.
//!
//! What a first record says by itself decides at once. Otherwise it is kept until the second one comes, and both are
//! given then; calls that have not ended are judged at the end.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::call_filter::{CallConditions, CallFilter, CallRecord, OPEN_CALLS_MAX, PROC_EXIT, PROCESS_ENDS_MAX};
use super::record_filter::{EventTable, RecordFilter};
use crate::calls::pairing::{CallKey, OpenCalls};
use crate::options::Selection;
use crate::record::columns;

/// Lets through what is wanted.
#[derive(Debug)]
pub struct StreamingFilter {
    plain: RecordFilter,
    pairs: Option<StreamingCallFilter>,
}

#[derive(Debug)]
struct StreamingCallFilter {
    calls: CallFilter,
    open_calls: OpenCalls<PendingEntry>,
    /// When processes ended.
    ends: HashMap<u32, u64, RandomState>,
    /// The time of the latest record.
    last: u64,
}

/// The first record of a call that has not ended.
#[derive(Debug)]
struct PendingEntry {
    half: CallRecord,
    /// Its line; `None` if that was let through.
    line: Option<Box<[u8]>>,
}

impl StreamingFilter {
    /// Asks what `selection` does, but for times and numbers.
    pub fn new(selection: &Selection) -> StreamingFilter {
        let Selection { events, pids, lwps, tids, objects, blocked, longer, .. } = selection.clone();
        let question = CallConditions { objects, blocked, longer };
        let pairs = (!question.is_idle()).then(|| StreamingCallFilter {
            calls: CallFilter::new(question),
            open_calls: OpenCalls::default(),
            ends: HashMap::default(),
            last: 0,
        });
        StreamingFilter { plain: RecordFilter { events: events.map(EventTable::new), pids, lwps, tids }, pairs }
    }

    /// Appends to `out` what is to be let through now that the record `line` has come.
    pub fn push(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let wants = self.plain.wants(line);
        match &mut self.pairs {
            Some(pairs) => pairs.push(line, wants, out),
            None if wants => out.extend_from_slice(line),
            None => {}
        }
    }

    /// Appends the first records of wanted calls that have not ended, in the order of time.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(pairs) = &mut self.pairs {
            pairs.leave(out);
        }
    }
}

impl StreamingCallFilter {
    fn push(&mut self, line: &[u8], wants: bool, out: &mut Vec<u8>) {
        let event = columns::event(line);
        let half = self.calls.half(line, event);
        self.last = self.last.max(half.time);
        if event == PROC_EXIT && self.ends.len() < PROCESS_ENDS_MAX {
            self.ends.insert(columns::pid(line), half.time);
        }
        if !wants {
            return;
        }
        let by_itself = self.calls.decides_by_one_record() && half.names;
        if !matches!(event.2, 1 | 2) {
            return if by_itself {
                out.extend_from_slice(line)
            };
        }
        let call = CallKey::of(line, event);
        if event.2 == 1 {
            let kept = if by_itself { None } else { Some(line.into()) };
            if by_itself {
                out.extend_from_slice(line);
            }
            self.open_calls.begin(call, PendingEntry { half, line: kept });
            if self.open_calls.len() > OPEN_CALLS_MAX {
                self.leave(out);
            }
            return;
        }
        let first = self.open_calls.end(call);
        if self.calls.wants(call, first.as_ref().map(|first| first.half), Some(half), 0) {
            out.extend_from_slice(first.and_then(|first| first.line).as_deref().unwrap_or_default());
            out.extend_from_slice(line);
        }
    }

    /// Calls that have not ended by now are taken for calls that never do.
    fn leave(&mut self, out: &mut Vec<u8>) {
        let mut wanted = Vec::new();
        for (call, PendingEntry { half, line }) in std::mem::take(&mut self.open_calls).into_open_calls() {
            let end = self.ends.get(&call.pid).copied().filter(|&end| end >= half.time).unwrap_or(self.last);
            let Some(line) = line else { continue };
            if self.calls.wants(call, Some(half), None, end) {
                wanted.push((half.time, line));
            }
        }
        wanted.sort();
        wanted.iter().for_each(|(_, line)| out.extend_from_slice(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of these records is let through, and what at the end: each with its time, LWP, event and arguments.
    fn through(selection: &Selection, records: &[(u64, u32, &str, &str)]) -> [Vec<u64>; 2] {
        let mut stream = StreamingFilter::new(selection);
        let times = |out: &[u8]| {
            out.split_inclusive(|&byte| byte == b'\n').map(|line| columns::time(line).unwrap()).collect::<Vec<u64>>()
        };
        let (mut out, mut rest) = (Vec::new(), Vec::new());
        for (time, lwp, event, arguments) in records {
            let line = format!("0000000000:{time:09}:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:{arguments}\n");
            stream.push(line.as_bytes(), &mut out);
        }
        stream.end(&mut rest);
        [times(&out), times(&rest)]
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
    fn both_halves_come_when_the_second_tells() {
        let blocked = Selection { blocked: true, ..Selection::default() };
        assert_eq!(through(&blocked, &RECORDS), [vec![1, 9], vec![10]]);
        let longer = Selection { longer: Some(8), ..Selection::default() };
        assert_eq!(through(&longer, &RECORDS), [vec![1, 9], vec![10]]);
        let longer = Selection { longer: Some(11), ..Selection::default() };
        assert_eq!(through(&longer, &RECORDS), [vec![], vec![]]);
    }

    #[test]
    fn what_says_it_by_itself_comes_at_once() {
        let object = Selection { objects: vec![0x10, 0x30], ..Selection::default() };
        assert_eq!(through(&object, &RECORDS), [vec![1, 3, 9], vec![]]);
        assert_eq!(through(&object, &RECORDS[..3]), [vec![1, 3], vec![]]);
        // A thread that is made is named by the second record only.
        let child = Selection { objects: vec![0x99], ..Selection::default() };
        let create = [(1, 1, "01:01:1", "0:0x5:0:0:0"), (2, 1, "01:01:2", "0:0x99:0:0:0")];
        assert_eq!(through(&child, &create), [vec![1, 2], vec![]]);
    }

    #[test]
    fn plain_questions_are_asked_too() {
        let lwp = Selection { lwps: vec![2], blocked: true, ..Selection::default() };
        assert_eq!(through(&lwp, &RECORDS), [vec![], vec![10]]);
        let all = through(&Selection::default(), &RECORDS);
        assert_eq!(all, [RECORDS.iter().map(|record| record.0).collect(), vec![]]);
    }
}
