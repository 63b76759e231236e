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
use std::sync::OnceLock;

use foldhash::fast::RandomState;

use super::selected_records::{KEYS_IN_MEMORY, RecordKey, SelectedRecords, key_collector};
use crate::calls::object_columns::ObjectColumns;
use crate::calls::pairing::{CallKey, OPEN_CALLS_MAX, OpenCalls};
use crate::calls::wait_rules::{WaitRule, wait_rules};
use crate::merge::{Merge, OrderedSection};
use crate::options::Selection;
use crate::record::columns;
use crate::record::event_table::EventTable;
use crate::support::external_sort::ExternalSort;

/// Processes whose end is known.
pub const PROCESS_ENDS_MAX: usize = 1 << 18;
/// A process ends: category, event and kind of record.
pub const PROC_EXIT: (u8, u8, u8) = (11, 4, 0);

/// Selects the records of calls that meet the conditions.
#[derive(Debug)]
pub struct CallFilter {
    /// Calls have to name one of these objects, unless there are none.
    objects: Vec<u64>,
    /// Calls have to wait.
    blocked: bool,
    /// Calls have to last at least this many nanoseconds.
    longer: Option<u64>,
    object_columns: ObjectColumns,
    wait_rules: EventTable<WaitRule>,
    /// The records that one record alone does not decide.
    selected: SelectedRecords,
    /// The first failure to read `selected`.
    failure: OnceLock<io::Error>,
}

/// What the conditions need of an entry record or a return record.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord {
    /// Nanoseconds since the Epoch.
    pub time: u64,
    /// It names one of the objects.
    pub names_object: bool,
    /// It shows that the call waited (see [`WaitRule`]).
    shows_wait: bool,
}

impl CallFilter {
    /// A filter with the conditions of `selection` on calls, if there are any. [`prepare`](CallFilter::prepare) is to be
    /// called before it is asked for a cursor.
    pub fn new(selection: &Selection) -> Option<CallFilter> {
        let Selection { objects, blocked, longer, .. } = selection.clone();
        (!objects.is_empty() || blocked || longer.is_some()).then(|| CallFilter {
            objects,
            blocked,
            longer,
            object_columns: ObjectColumns::new(),
            wait_rules: wait_rules(),
            selected: SelectedRecords::Memory(Vec::new()),
            failure: OnceLock::new(),
        })
    }

    /// Reads the complete trace and collects the records of the calls that meet the conditions. Records that are not
    /// `possible` are left out, as if they were not there.
    pub fn prepare(&mut self, merge: &Merge, possible: &(dyn Fn(&[u8]) -> bool + Sync)) -> io::Result<()> {
        let mut pairing = CrossBatchPairing {
            filter: self,
            open_calls: OpenCalls::default(),
            process_ends: HashMap::default(),
            trace_end: merge.span().map_or(0, |(_, end)| end),
            selected: key_collector(KEYS_IN_MEMORY),
        };
        let pair = |lines: &[u8], _: OrderedSection, out: &mut Vec<u8>| self.pair_batch(lines, possible, out);
        merge.run_phase("pairing calls", 0..u64::MAX, Some(&pair), &mut |notes| {
            let (notes, _) = notes.as_chunks();
            notes.iter().try_for_each(|note| pairing.take(&BatchNote::from_bytes(note))).map(|()| true)
        })?;
        self.selected = pairing.finish()?;
        Ok(())
    }

    /// Pairs the calls within some lines, and appends notes of the selected calls and of records without a partner.
    fn pair_batch(&self, lines: &[u8], possible: &dyn Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
        let mut open_calls = OpenCalls::default();
        for line in columns::lines(lines) {
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
                Some(entry) => self.select(call, Some(entry), Some(record), 0).for_each(|note| note.put(out)),
                None => BatchNote { kind: BatchNoteKind::Return, call, record }.put(out),
            }
        }
        for (call, record) in open_calls.into_open_calls() {
            BatchNote { kind: BatchNoteKind::Entry, call, record }.put(out);
        }
    }

    /// What the conditions need of the record `line`.
    pub fn call_record(&self, line: &[u8], event: (u8, u8, u8)) -> CallRecord {
        let names_object = !self.objects.is_empty() && self.names_object(line, event);
        let shows_wait = self.wait_rules.get(event.0, event.1).record_shows_wait(event.2, line);
        CallRecord { time: columns::time(line).unwrap_or(0), names_object, shows_wait }
    }

    /// True if the record `line` names one of the objects.
    fn names_object(&self, line: &[u8], event: (u8, u8, u8)) -> bool {
        self.object_columns.of(event, line).any(|object| self.objects.contains(&object))
    }

    /// True if a record that names one of the objects is selected whatever the other record of its call has. This is so if there
    /// are no other conditions.
    pub fn decides_by_one_record(&self) -> bool {
        !self.blocked && self.longer.is_none()
    }

    /// True if a call meets the conditions. A call without a return record lasts until `end`; the duration of one without an
    /// entry record is unknown.
    pub fn wants(&self, call: CallKey, entry: Option<CallRecord>, returned: Option<CallRecord>, end: u64) -> bool {
        let rule = self.wait_rules.get(call.category, call.number);
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
        (self.objects.is_empty() || names_object(entry) || names_object(returned))
            && (!self.blocked || waited)
            && self.longer.is_none_or(is_long)
    }

    /// A note for each record of a call that meets the conditions, unless that record is decided alone.
    fn select(
        &self,
        call: CallKey,
        entry: Option<CallRecord>,
        returned: Option<CallRecord>,
        end: u64,
    ) -> impl Iterator<Item = BatchNote> {
        let is_wanted = self.wants(call, entry, returned, end);
        let is_decided = move |record: &CallRecord| self.decides_by_one_record() && record.names_object;
        let records = [(entry, BatchNoteKind::SelectedEntry), (returned, BatchNoteKind::SelectedReturn)];
        records.into_iter().filter(move |_| is_wanted).filter_map(move |(record, kind)| {
            Some(BatchNote { kind, call, record: record.filter(|record| !is_decided(record))? })
        })
    }

    /// A cursor over `lines`, which are in order.
    pub fn cursor<'a>(&'a self, lines: &[u8]) -> CallFilterCursor<'a> {
        let last = memchr::memrchr(b'\n', lines.strip_suffix(b"\n").unwrap_or(lines)).map_or(0, |newline| newline + 1);
        let times = columns::time(lines).unwrap_or(0)..=columns::time(&lines[last..]).unwrap_or(u64::MAX);
        let selected = self.selected.within(times).unwrap_or_else(|error| {
            _ = self.failure.set(error);
            Cow::Borrowed(&[])
        });
        CallFilterCursor { filter: self, selected, next: 0 }
    }

    /// Whether cursors could read what was selected.
    pub fn result(self) -> io::Result<()> {
        self.failure.into_inner().map_or(Ok(()), Err)
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

impl BatchNoteKind {
    /// In the order of their numbers.
    const ALL: [BatchNoteKind; 5] = {
        use BatchNoteKind::*;
        [Entry, Return, ProcessEnd, SelectedEntry, SelectedReturn]
    };
}

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
        let [flags, category, number, _, numbers @ ..] = *bytes;
        let (words, _) = numbers.as_chunks();
        let [pid, lwp, tid, tid_high, time, time_high] = std::array::from_fn(|word| u32::from_le_bytes(words[word]));
        let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (tid, time) = (wide(tid, tid_high), wide(time, time_high));
        BatchNote {
            kind: BatchNoteKind::ALL[usize::from(flags & 7) % BatchNoteKind::ALL.len()],
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
    trace_end: u64,
    selected: ExternalSort<RecordKey>,
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
            BatchNoteKind::SelectedEntry | BatchNoteKind::SelectedReturn => {
                self.selected.push(&selected_key(note).to_bytes())
            }
        }
    }

    fn select(
        &mut self,
        call: CallKey,
        entry: Option<CallRecord>,
        returned: Option<CallRecord>,
        end: u64,
    ) -> io::Result<()> {
        let mut notes = self.filter.select(call, entry, returned, end);
        notes.try_for_each(|note| self.selected.push(&selected_key(&note).to_bytes()))
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
        SelectedRecords::new(self.selected)
    }
}

fn selected_key(&BatchNote { kind, call, record }: &BatchNote) -> RecordKey {
    let which = if kind == BatchNoteKind::SelectedEntry { 1 } else { 2 };
    RecordKey::new(record.time, call.pid, call.lwp, (call.category, call.number, which))
}
