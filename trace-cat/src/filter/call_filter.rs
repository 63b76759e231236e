//! The conditions on calls, which both records of a call decide: `--object`, `--blocked`, `--longer`.
//!
//! The return record may decide about the entry record, however much later it is. So the trace is read twice. The first
//! time, calls are paired, and the records of the calls that meet the conditions are collected; that time all of the trace
//! is read, since a call may begin before `--since` and end after `--until`. Then each record can be decided alone, in any
//! thread and any order of slices.
//!
//! Nearly all calls end soon. Calls that begin and end within one batch of lines are paired where that is merged, in many
//! threads. The other records of a batch, mostly one or two for each thread of the program, are paired in order. Where
//! batches end makes no difference, because pairs of one [`CallKey`] do not depend on other calls.

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

/// Calls that may be open; if there are more, all of them are taken for calls that do not end.
pub const OPEN_CALLS_MAX: usize = 1 << 18;
/// Processes whose end is known.
pub const PROCESS_ENDS_MAX: usize = 1 << 18;
/// A process ends: category, event and kind of record.
pub const PROC_EXIT: (u8, u8, u8) = (11, 4, 0);

/// The conditions on calls.
#[derive(Clone, Debug, Default)]
pub struct CallConditions {
    /// They name one of these objects; any objects if there are none.
    pub objects: Vec<u64>,
    /// They waited.
    pub blocked: bool,
    /// They lasted at least so many nanoseconds.
    pub longer: Option<u64>,
}

impl CallConditions {
    /// True if there is no condition.
    pub fn is_idle(&self) -> bool {
        self.objects.is_empty() && !self.blocked && self.longer.is_none()
    }
}

/// Selects the records of calls that meet the conditions.
#[derive(Debug)]
pub struct CallFilter {
    conditions: CallConditions,
    objects: ObjectColumns,
    wait_rules: WaitRules,
    /// The records that one record alone does not decide.
    selected: SelectedRecords,
    /// The first failure to read `selected`.
    failure: Mutex<Option<io::Error>>,
}

/// What the conditions need of an entry record or a return record.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord {
    /// Nanoseconds since the Epoch.
    pub time: u64,
    /// It names one of the objects.
    pub names_object: bool,
    /// It shows that the call waited (see [`WaitRule`](crate::calls::wait_rules::WaitRule)).
    shows_wait: bool,
}

impl CallFilter {
    /// A filter for which [`prepare`](CallFilter::prepare) is still to be called.
    pub fn new(conditions: CallConditions) -> CallFilter {
        CallFilter {
            conditions,
            objects: ObjectColumns::new(),
            wait_rules: WaitRules::new(),
            selected: SelectedRecords::Memory(Vec::new()),
            failure: Mutex::new(None),
        }
    }

    /// Reads the whole trace and collects the records of the calls that meet the conditions. Records that are not
    /// `possible` are left out, as if they were not there.
    pub fn prepare(&mut self, merge: &Merge, possible: &(dyn Fn(&[u8]) -> bool + Sync)) -> io::Result<()> {
        let mut pairing = CrossBatchPairing {
            filter: self,
            open_calls: OpenCalls::default(),
            process_ends: HashMap::default(),
            trace_end: merge.span().map_or(0, |(_, end)| end),
            selected: SelectionCollector::new(),
        };
        let pair = |lines: &[u8], _: OrderedSection, out: &mut Vec<u8>| self.pair_batch(lines, possible, out);
        merge.run_phase("pairing calls", 0..u64::MAX, Some(&pair), &mut |notes| {
            let (notes, _) = notes.as_chunks();
            notes.iter().try_for_each(|note| pairing.take(&BatchNote::from_bytes(note))).map(|()| true)
        })?;
        self.selected = pairing.finish()?;
        Ok(())
    }

    /// Pairs the calls within some lines, and appends notes of what is selected or cannot be paired there.
    fn pair_batch(&self, lines: &[u8], possible: &dyn Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
        let mut open_calls = OpenCalls::default();
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &lines[start..]) {
            let line = &lines[start..=start + length];
            start += line.len();
            let event = columns::event(line);
            if event == PROC_EXIT {
                let time = columns::time(line).unwrap_or(0);
                let record = CallRecord { time, names_object: false, shows_wait: false };
                BatchNote { kind: BatchNoteKind::ProcessEnd, call: CallKey::of(line, event), record }.put(out);
            }
            if !matches!(event.2, 1 | 2) || !possible(line) {
                continue;
            }
            let (call, record) = (CallKey::of(line, event), self.call_record(line, event));
            if event.2 == 1 {
                open_calls.begin(call, record);
                continue;
            }
            match open_calls.end(call) {
                Some(entry) => self.select(call, Some(entry), Some(record), 0, |note| note.put(out)),
                None => BatchNote { kind: BatchNoteKind::Return, call, record }.put(out),
            }
        }
        for (call, record) in open_calls.into_open_calls() {
            BatchNote { kind: BatchNoteKind::Entry, call, record }.put(out);
        }
    }

    /// What the conditions need of the record `line`.
    pub fn call_record(&self, line: &[u8], event: (u8, u8, u8)) -> CallRecord {
        let names_object = !self.conditions.objects.is_empty() && self.names_object(line, event);
        let shows_wait = self.wait_rules.rule(event.0, event.1).record_shows_wait(event.2, line);
        CallRecord { time: columns::time(line).unwrap_or(0), names_object, shows_wait }
    }

    /// True if the record `line` names one of the objects.
    fn names_object(&self, line: &[u8], event: (u8, u8, u8)) -> bool {
        self.objects.of(event, line).any(|object| self.conditions.objects.contains(&object))
    }

    /// True if a record that names one of the objects is selected whatever the other record of its call is, which is so if
    /// there are no other conditions.
    pub fn decides_by_one_record(&self) -> bool {
        !self.conditions.blocked && self.conditions.longer.is_none()
    }

    /// True if a call meets the conditions. A call without a return record lasts until `end`; the duration of one without an
    /// entry record is unknown.
    pub fn wants(&self, call: CallKey, entry: Option<CallRecord>, returned: Option<CallRecord>, end: u64) -> bool {
        let CallConditions { objects, blocked, longer } = &self.conditions;
        let rule = self.wait_rules.rule(call.category, call.number);
        let end = returned.map_or(end, |returned| returned.time);
        let duration = entry.map(|entry| end.saturating_sub(entry.time));
        let shows_wait = |record: Option<CallRecord>| record.is_some_and(|record| record.shows_wait);
        let names_object = |record: Option<CallRecord>| record.is_some_and(|record| record.names_object);
        let waited = match returned {
            Some(_) => rule.waited(shows_wait(entry), shows_wait(returned), duration.unwrap_or(0)),
            None => rule.can_wait(),
        };
        let is_long =
            |least| duration.is_some_and(|duration| duration >= least) && (returned.is_some() || rule.can_wait());
        (objects.is_empty() || names_object(entry) || names_object(returned))
            && (!blocked || waited)
            && longer.is_none_or(is_long)
    }

    /// Gives `put` a note for each record of a call that meets the conditions, unless that record is decided alone.
    fn select(
        &self,
        call: CallKey,
        entry: Option<CallRecord>,
        returned: Option<CallRecord>,
        end: u64,
        mut put: impl FnMut(BatchNote),
    ) {
        if !self.wants(call, entry, returned, end) {
            return;
        }
        for (record, kind) in [(entry, BatchNoteKind::SelectedEntry), (returned, BatchNoteKind::SelectedReturn)] {
            if let Some(record) = record.filter(|record| !(self.decides_by_one_record() && record.names_object)) {
                put(BatchNote { kind, call, record });
            }
        }
    }

    /// A cursor over `lines`, which are in order.
    pub fn cursor<'a>(&'a self, lines: &[u8]) -> CallFilterCursor<'a> {
        let last = memchr::memrchr(b'\n', lines.strip_suffix(b"\n").unwrap_or(lines)).map_or(0, |newline| newline + 1);
        let times = columns::time(lines).unwrap_or(0)..=columns::time(&lines[last..]).unwrap_or(u64::MAX);
        let selected = self.selected.within(times).unwrap_or_else(|error| {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            Cow::Borrowed(&[])
        });
        CallFilterCursor { filter: self, selected, next: 0 }
    }

    /// Whether cursors could read what was selected.
    pub fn result(&self) -> io::Result<()> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}

/// Decides about lines in order.
pub struct CallFilterCursor<'a> {
    filter: &'a CallFilter,
    selected: Cow<'a, [RecordKey]>,
    /// Keys before this index are of earlier lines.
    next: usize,
}

impl CallFilterCursor<'_> {
    /// True if the record `line`, which comes after those of the calls before, is selected.
    pub fn wants(&mut self, line: &[u8]) -> bool {
        let event = columns::event(line);
        if self.filter.decides_by_one_record() && self.filter.names_object(line, event) {
            return true;
        }
        if !matches!(event.2, 1 | 2) {
            return false;
        }
        let time = columns::time(line).unwrap_or(0);
        while self.selected.get(self.next).is_some_and(|key| key.time < time) {
            self.next += 1;
        }
        // Lines of one time come in any order.
        self.selected.get(self.next).is_some_and(|key| key.time == time)
            && self.selected[self.next..].binary_search(&RecordKey::of(line, time, event)).is_ok()
    }
}

/// What [`CrossBatchPairing`] gets from a batch of lines.
struct BatchNote {
    kind: BatchNoteKind,
    call: CallKey,
    record: CallRecord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchNoteKind {
    /// An entry record without a return record in the batch.
    Entry,
    /// A return record without an entry record in the batch.
    Return,
    /// The process ends.
    ProcessEnd,
    /// This entry record is selected.
    SelectedEntry,
    /// This return record is selected.
    SelectedReturn,
}

const BATCH_NOTE_KINDS: [BatchNoteKind; 5] = [
    BatchNoteKind::Entry,
    BatchNoteKind::Return,
    BatchNoteKind::ProcessEnd,
    BatchNoteKind::SelectedEntry,
    BatchNoteKind::SelectedReturn,
];

impl BatchNote {
    const LEN: usize = 28;

    fn put(&self, out: &mut Vec<u8>) {
        let BatchNote { kind, call, record } = self;
        let flags = *kind as u8 | u8::from(record.names_object) << 4 | u8::from(record.shows_wait) << 5;
        out.extend_from_slice(&[flags, call.category, call.number, 0]);
        out.extend_from_slice(&call.pid.to_le_bytes());
        out.extend_from_slice(&call.lwp.to_le_bytes());
        out.extend_from_slice(&call.tid.to_le_bytes());
        out.extend_from_slice(&record.time.to_le_bytes());
    }

    fn from_bytes(bytes: &[u8; BatchNote::LEN]) -> BatchNote {
        let [flags, category, number, _, p0, p1, p2, p3, l0, l1, l2, l3, wide @ ..] = *bytes;
        let [t0, t1, t2, t3, t4, t5, t6, t7, n0, n1, n2, n3, n4, n5, n6, n7] = wide;
        let (pid, lwp) = (u32::from_le_bytes([p0, p1, p2, p3]), u32::from_le_bytes([l0, l1, l2, l3]));
        let tid = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        let time = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        BatchNote {
            kind: BATCH_NOTE_KINDS[usize::from(flags & 15) % BATCH_NOTE_KINDS.len()],
            call: CallKey { pid, lwp, tid, category, number },
            record: CallRecord { time, names_object: flags >> 4 & 1 == 1, shows_wait: flags >> 5 & 1 == 1 },
        }
    }
}

/// Pairs, in order, the calls whose records are in different batches, and collects what all batches select.
struct CrossBatchPairing<'a> {
    filter: &'a CallFilter,
    open_calls: OpenCalls<CallRecord>,
    /// When processes ended.
    process_ends: HashMap<u32, u64, RandomState>,
    /// The time of the last record.
    trace_end: u64,
    selected: SelectionCollector,
}

impl CrossBatchPairing<'_> {
    fn take(&mut self, note: &BatchNote) -> io::Result<()> {
        let &BatchNote { kind, call, record } = note;
        match kind {
            BatchNoteKind::Entry => {
                self.open_calls.begin(call, record);
                if self.open_calls.len() > OPEN_CALLS_MAX { self.close_all() } else { Ok(()) }
            }
            BatchNoteKind::Return => {
                let entry = self.open_calls.end(call);
                self.select(call, entry, Some(record), 0)
            }
            BatchNoteKind::ProcessEnd => {
                if self.process_ends.len() < PROCESS_ENDS_MAX {
                    self.process_ends.insert(call.pid, record.time);
                }
                Ok(())
            }
            BatchNoteKind::SelectedEntry | BatchNoteKind::SelectedReturn => self.selected.push(selected_key(note)),
        }
    }

    fn select(
        &mut self,
        call: CallKey,
        entry: Option<CallRecord>,
        returned: Option<CallRecord>,
        end: u64,
    ) -> io::Result<()> {
        let (selected, mut result) = (&mut self.selected, Ok(()));
        self.filter.select(call, entry, returned, end, |note| {
            if result.is_ok() {
                result = selected.push(selected_key(&note));
            }
        });
        result
    }

    /// Takes all open calls for calls that do not end: they last until their process ends, or as long as the trace.
    fn close_all(&mut self) -> io::Result<()> {
        for (call, entry) in std::mem::take(&mut self.open_calls).into_open_calls() {
            let process_end = self.process_ends.get(&call.pid).copied().filter(|&end| end >= entry.time);
            self.select(call, Some(entry), None, process_end.unwrap_or(self.trace_end))?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<SelectedRecords> {
        self.close_all()?;
        self.selected.finish()
    }
}

fn selected_key(&BatchNote { kind, call, record }: &BatchNote) -> RecordKey {
    let which = if kind == BatchNoteKind::SelectedEntry { 1 } else { 2 };
    RecordKey::new(record.time, call.pid, call.lwp, (call.category, call.number, which))
}
