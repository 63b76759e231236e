//! The filters that ask something of a call, for which both of its records are needed: `--object`, `--blocked`, `--longer`.
//!
//! What is asked of the first record may be answered by the second, however much later that is. So the trace is gone
//! through twice. The first time, pairs are found, and the records that are wanted are marked; that time all of the trace
//! is looked at, since a call may begin before `--since` and end after `--until`. Then each record can be judged by
//! itself, in any thread and any part of the trace.
//!
//! Nearly all calls end soon. Those that begin and end within one batch of lines are paired where that is merged, in many
//! threads; what is left of a batch, mostly a half or two for each thread of the program, is put together in order. As
//! pairs do not depend on what other kinds of calls do, it makes no difference where batches end.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;
use memchr::memchr;

use super::selected_records::{RecordKey, SelectedRecords, SelectionCollector};
use crate::calls::object_columns::ObjectColumns;
use crate::calls::pairing::{CallKey, OpenCalls};
use crate::calls::wait_rules::WaitRules;
use crate::merge::{Merge, OrderedSection};
use crate::record::columns;

/// Calls that may have begun and not ended; when there are more, all of them are taken for calls that do not end.
pub const OPEN_CALLS_MAX: usize = 1 << 18;
/// Processes of which it is known when they ended.
pub const PROCESS_ENDS_MAX: usize = 1 << 18;
/// A process ends: category, event and which.
pub const PROC_EXIT: (u8, u8, u8) = (11, 4, 0);

/// What is asked of calls.
#[derive(Clone, Debug, Default)]
pub struct CallConditions {
    /// They name one of these objects; none: no matter.
    pub objects: Vec<u64>,
    /// They waited.
    pub blocked: bool,
    /// They lasted at least so many nanoseconds.
    pub longer: Option<u64>,
}

impl CallConditions {
    /// Whether anything is asked.
    pub fn is_idle(&self) -> bool {
        self.objects.is_empty() && !self.blocked && self.longer.is_none()
    }
}

/// Tells which records are wanted, once the marks are made.
#[derive(Debug)]
pub struct CallFilter {
    question: CallConditions,
    objects: ObjectColumns,
    waits: WaitRules,
    marks: SelectedRecords,
    /// What went wrong with the marks' file.
    failure: Mutex<Option<io::Error>>,
}

/// A record of a call that has two.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord {
    /// When it was made, nanoseconds since the Epoch.
    pub time: u64,
    /// It names one of the objects.
    pub names: bool,
    /// What the event's rule asks of it is so.
    says: bool,
}

impl CallFilter {
    /// Nothing is marked yet.
    pub fn new(question: CallConditions) -> CallFilter {
        let marks = SelectedRecords::Memory(Vec::new());
        CallFilter {
            question,
            objects: ObjectColumns::new(),
            waits: WaitRules::new(),
            marks,
            failure: Mutex::new(None),
        }
    }

    /// Goes through the whole trace and marks what is wanted of those pairs whose records are `possible`.
    ///
    /// # Errors
    /// What a temporary file says.
    pub fn mark(&mut self, merge: &Merge, possible: &(dyn Fn(&[u8]) -> bool + Sync)) -> io::Result<()> {
        let end = merge.span().map_or(0, |(_, end)| end);
        let mut rest = CrossBatchPairing {
            calls: self,
            open_calls: OpenCalls::default(),
            ends: HashMap::default(),
            end,
            marks: SelectionCollector::new(),
        };
        let shape = |lines: &[u8], _: OrderedSection, out: &mut Vec<u8>| self.pair(lines, possible, out);
        merge.run_phase("pairing calls", 0..u64::MAX, Some(&shape), &mut |notes| {
            let (notes, _) = notes.as_chunks();
            notes.iter().try_for_each(|note| rest.take(&BatchNote::from_bytes(note))).map(|()| true)
        })?;
        self.marks = rest.finish()?;
        Ok(())
    }

    /// Pairs what can be paired within some lines, and notes what the whole needs to know of them.
    fn pair(&self, lines: &[u8], possible: &dyn Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
        let mut open_calls = OpenCalls::default();
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &lines[at..]) {
            let line = &lines[at..=at + length];
            at += line.len();
            let event = columns::event(line);
            if event == PROC_EXIT {
                let half = CallRecord { time: columns::time(line).unwrap_or(0), names: false, says: false };
                BatchNote { what: BatchNoteKind::Exit, call: CallKey::of(line, event), half }.put(out);
            }
            if !matches!(event.2, 1 | 2) || !possible(line) {
                continue;
            }
            let (call, half) = (CallKey::of(line, event), self.half(line, event));
            if event.2 == 1 {
                open_calls.begin(call, half);
                continue;
            }
            match open_calls.end(call) {
                Some(first) => self.judge(call, Some(first), Some(half), 0, |mark| mark.put(out)),
                None => BatchNote { what: BatchNoteKind::Second, call, half }.put(out),
            }
        }
        for (call, half) in open_calls.into_open_calls() {
            BatchNote { what: BatchNoteKind::First, call, half }.put(out);
        }
    }

    /// What a record says.
    pub fn half(&self, line: &[u8], event: (u8, u8, u8)) -> CallRecord {
        let names = !self.question.objects.is_empty() && self.names(line, event);
        let says = self.waits.rule(event.0, event.1).record_shows_wait(event.2, line);
        CallRecord { time: columns::time(line).unwrap_or(0), names, says }
    }

    /// Whether a record names one of the objects that are asked for.
    fn names(&self, line: &[u8], event: (u8, u8, u8)) -> bool {
        self.objects.of(event, line).any(|object| self.question.objects.contains(&object))
    }

    /// Whether all is asked for that is wanted of single records too: only objects.
    pub fn decides_by_one_record(&self) -> bool {
        !self.question.blocked && self.question.longer.is_none()
    }

    /// Whether a call is wanted. One without a second record lasts until `end`; of one without a first it is not known how
    /// long it lasted.
    pub fn wants(&self, call: CallKey, first: Option<CallRecord>, second: Option<CallRecord>, end: u64) -> bool {
        let CallConditions { objects, blocked, longer } = &self.question;
        let rule = self.waits.rule(call.category, call.number);
        let until = second.map_or(end, |second| second.time);
        let lasted = first.map(|first| until.saturating_sub(first.time));
        let says = |half: Option<CallRecord>| half.is_some_and(|half| half.says);
        let names = |half: Option<CallRecord>| half.is_some_and(|half| half.names);
        let waited = match second {
            Some(_) => rule.waited(says(first), says(second), lasted.unwrap_or(0)),
            None => rule.can_wait(),
        };
        let long = |least: u64| lasted.is_some_and(|lasted| lasted >= least) && (second.is_some() || rule.can_wait());
        (objects.is_empty() || names(first) || names(second)) && (!blocked || waited) && longer.is_none_or(long)
    }

    /// Gives the marks of a call's records to `mark`, if the call is wanted.
    fn judge(
        &self,
        call: CallKey,
        first: Option<CallRecord>,
        second: Option<CallRecord>,
        end: u64,
        mut mark: impl FnMut(BatchNote),
    ) {
        if self.wants(call, first, second, end) {
            for (half, what) in [(first, BatchNoteKind::MarkFirst), (second, BatchNoteKind::MarkSecond)] {
                // What says all by itself needs no mark.
                if let Some(half) = half.filter(|half| !(self.decides_by_one_record() && half.names)) {
                    mark(BatchNote { what, call, half });
                }
            }
        }
    }

    /// What is needed to judge some lines in order.
    pub fn cursor<'a>(&'a self, lines: &[u8]) -> CallFilterCursor<'a> {
        let last = memchr::memrchr(b'\n', lines.strip_suffix(b"\n").unwrap_or(lines)).map_or(0, |newline| newline + 1);
        let times = columns::time(lines).unwrap_or(0)..=columns::time(&lines[last..]).unwrap_or(u64::MAX);
        let marks = self.marks.within(times).unwrap_or_else(|error| {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            Cow::Borrowed(&[])
        });
        CallFilterCursor { calls: self, marks, at: 0 }
    }

    /// What went wrong while records were judged.
    ///
    /// # Errors
    /// That.
    pub fn result(&self) -> io::Result<()> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}

/// Judges lines in order.
pub struct CallFilterCursor<'a> {
    calls: &'a CallFilter,
    marks: Cow<'a, [RecordKey]>,
    /// Marks before this one are of earlier lines.
    at: usize,
}

impl CallFilterCursor<'_> {
    /// Whether the record `line`, the next one or one behind it, is wanted.
    pub fn wants(&mut self, line: &[u8]) -> bool {
        let event = columns::event(line);
        if self.calls.decides_by_one_record() && self.calls.names(line, event) {
            return true;
        }
        if !matches!(event.2, 1 | 2) {
            return false;
        }
        let time = columns::time(line).unwrap_or(0);
        while self.marks.get(self.at).is_some_and(|mark| mark.time < time) {
            self.at += 1;
        }
        // Lines of one time come in any order.
        self.marks.get(self.at).is_some_and(|mark| mark.time == time)
            && self.marks[self.at..].binary_search(&RecordKey::of(line, time, event)).is_ok()
    }
}

/// What a batch of lines tells the whole.
struct BatchNote {
    what: BatchNoteKind,
    call: CallKey,
    half: CallRecord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchNoteKind {
    /// A first record without a second one in the batch.
    First,
    /// A second record without a first one in the batch.
    Second,
    /// The process ends.
    Exit,
    /// This record is wanted.
    MarkFirst,
    MarkSecond,
}

const WHATS: [BatchNoteKind; 5] = [
    BatchNoteKind::First,
    BatchNoteKind::Second,
    BatchNoteKind::Exit,
    BatchNoteKind::MarkFirst,
    BatchNoteKind::MarkSecond,
];

impl BatchNote {
    const BYTES: usize = 28;

    fn put(&self, out: &mut Vec<u8>) {
        let BatchNote { what, call, half } = self;
        let flags = *what as u8 | u8::from(half.names) << 4 | u8::from(half.says) << 5;
        out.extend_from_slice(&[flags, call.category, call.number, 0]);
        out.extend_from_slice(&call.pid.to_le_bytes());
        out.extend_from_slice(&call.lwp.to_le_bytes());
        out.extend_from_slice(&call.tid.to_le_bytes());
        out.extend_from_slice(&half.time.to_le_bytes());
    }

    fn from_bytes(bytes: &[u8; BatchNote::BYTES]) -> BatchNote {
        let [flags, category, number, _, p0, p1, p2, p3, l0, l1, l2, l3, rest @ ..] = *bytes;
        let [t0, t1, t2, t3, t4, t5, t6, t7, n0, n1, n2, n3, n4, n5, n6, n7] = rest;
        let (pid, lwp) = (u32::from_le_bytes([p0, p1, p2, p3]), u32::from_le_bytes([l0, l1, l2, l3]));
        let tid = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        let time = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        BatchNote {
            what: WHATS[usize::from(flags & 15) % WHATS.len()],
            call: CallKey { pid, lwp, tid, category, number },
            half: CallRecord { time, names: flags >> 4 & 1 == 1, says: flags >> 5 & 1 == 1 },
        }
    }
}

/// Puts the notes of all batches together.
struct CrossBatchPairing<'a> {
    calls: &'a CallFilter,
    open_calls: OpenCalls<CallRecord>,
    /// When processes ended.
    ends: HashMap<u32, u64, RandomState>,
    /// The time of the last record.
    end: u64,
    marks: SelectionCollector,
}

impl CrossBatchPairing<'_> {
    fn take(&mut self, note: &BatchNote) -> io::Result<()> {
        let &BatchNote { what, call, half } = note;
        match what {
            BatchNoteKind::First => {
                self.open_calls.begin(call, half);
                if self.open_calls.len() > OPEN_CALLS_MAX { self.leave() } else { Ok(()) }
            }
            BatchNoteKind::Second => {
                let first = self.open_calls.end(call);
                self.judge(call, first, Some(half), 0)
            }
            BatchNoteKind::Exit => {
                if self.ends.len() < PROCESS_ENDS_MAX {
                    self.ends.insert(call.pid, half.time);
                }
                Ok(())
            }
            BatchNoteKind::MarkFirst => self.marks.push(mark(call, half, 1)),
            BatchNoteKind::MarkSecond => self.marks.push(mark(call, half, 2)),
        }
    }

    fn judge(
        &mut self,
        call: CallKey,
        first: Option<CallRecord>,
        second: Option<CallRecord>,
        end: u64,
    ) -> io::Result<()> {
        let (calls, marks, mut result) = (self.calls, &mut self.marks, Ok(()));
        calls.judge(call, first, second, end, |note| {
            let which = if note.what == BatchNoteKind::MarkFirst { 1 } else { 2 };
            if result.is_ok() {
                result = marks.push(mark(note.call, note.half, which));
            }
        });
        result
    }

    /// Calls that have not ended by now never do: they last until their process ends, or as long as the trace.
    fn leave(&mut self) -> io::Result<()> {
        for (call, first) in std::mem::take(&mut self.open_calls).into_open_calls() {
            let end = self.ends.get(&call.pid).copied().filter(|&end| end >= first.time).unwrap_or(self.end);
            self.judge(call, Some(first), None, end)?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<SelectedRecords> {
        self.leave()?;
        self.marks.finish()
    }
}

fn mark(call: CallKey, half: CallRecord, which: u8) -> RecordKey {
    RecordKey::new(half.time, call.pid, call.lwp, (call.category, call.number, which))
}
