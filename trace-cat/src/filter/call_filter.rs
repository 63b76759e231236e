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

use spec::event_numbers::TRACE_STACK;

use super::batch_note::{BatchNote, BatchNoteKind, CallRecord};
use super::open_call_table::OpenCallTable;
use super::selected_records::{KEYS_IN_MEMORY, RecordKey, SelectedRecords, key_collector};
use crate::calls::object_columns::ObjectColumns;
use crate::calls::pairing::{CallKey, OPEN_CALLS_MAX, OpenCalls};
use crate::calls::process_ends::{EndingRecord, OpenReason, OpenUntil, ProcessEnds};
use crate::calls::wait_rules::{WaitRule, wait_rules};
use crate::merge::{Merge, OrderedSection};
use crate::options::Selection;
use crate::record::columns;
use crate::record::event_table::EventTable;
use crate::support::external_sort::ExternalSort;

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
    /// The selected calls without a return record.
    open_calls: OpenCallTable,
    /// How many calls might meet the conditions if the records were there that were lost.
    undecided: u64,
    /// The first failure to read `selected`.
    failure: OnceLock<io::Error>,
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
            open_calls: OpenCallTable::default(),
            undecided: 0,
            failure: OnceLock::new(),
        })
    }

    /// Reads the complete trace and collects the records of the calls that meet the conditions. Records that are not
    /// `possible` are left out, as if they were not there. `ends` has the processes that run.
    pub fn prepare(
        &mut self,
        merge: &Merge,
        ends: ProcessEnds,
        possible: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> io::Result<()> {
        let mut pairing = CrossBatchPairing {
            filter: self,
            open_calls: OpenCalls::default(),
            ends,
            selected: key_collector(KEYS_IN_MEMORY),
            selected_open: OpenCallTable::default(),
            undecided: 0,
        };
        let pair = |lines: &[u8], _: OrderedSection, out: &mut Vec<u8>| self.pair_batch(lines, possible, out);
        merge.run_phase("pairing calls", 0..u64::MAX, Some(&pair), &mut |notes| {
            let (notes, _) = notes.as_chunks();
            notes.iter().try_for_each(|note| pairing.take(&BatchNote::from_bytes(note))).map(|()| true)
        })?;
        (self.selected, self.open_calls, self.undecided) = pairing.finish()?;
        Ok(())
    }

    /// Pairs the calls within some lines, and appends notes of the selected calls and of records without a partner.
    fn pair_batch(&self, lines: &[u8], possible: &dyn Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
        let mut open_calls = OpenCalls::default();
        let mut last_of_process: HashMap<u32, &[u8], RandomState> = HashMap::default();
        let mut before: &[u8] = b"";
        let note_process = |kind, line: &[u8], event, out: &mut Vec<u8>| {
            let record = CallRecord { time: columns::time(line).unwrap_or(0), names_object: false, shows_wait: false };
            BatchNote { kind, call: CallKey::of(line, event), record }.put(out);
        };
        for line in columns::lines(lines) {
            if columns::pid(line) != columns::pid(before) && !before.is_empty() {
                last_of_process.insert(columns::pid(before), before);
            }
            before = line;
            let event = columns::event(line);
            if let Some(ending) = EndingRecord::of(event) {
                note_process(BatchNoteKind::of_ending(ending), line, event, out);
            }
            if !matches!(event.2, 1 | 2) || (event.0, event.1) == TRACE_STACK || !possible(line) {
                continue;
            }
            let (call, record) = (CallKey::of(line, event), self.call_record(line, event));
            if event.2 == 1 {
                open_calls.begin(call, record);
                continue;
            }
            match open_calls.end(call) {
                Some(entry) => self.select(call, Some(entry), Some(record), None).for_each(|note| note.put(out)),
                None => BatchNote { kind: BatchNoteKind::Return, call, record }.put(out),
            }
        }
        for (call, record) in open_calls.into_open_calls() {
            BatchNote { kind: BatchNoteKind::Entry, call, record }.put(out);
        }
        if !before.is_empty() {
            last_of_process.insert(columns::pid(before), before);
        }
        for line in last_of_process.into_values() {
            note_process(BatchNoteKind::LastRecord, line, columns::event(line), out);
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

    /// How many nanoseconds a call that runs has to have lasted before it is selected: one that may have to wait, and has
    /// nothing else to be selected for, `WAIT`.
    pub fn least_duration(&self) -> u64 {
        const WAIT: u64 = 1_000_000_000;
        self.longer.unwrap_or(0).max(if self.blocked { WAIT } else { 0 })
    }

    /// True if a call meets the conditions. `open` is for a call without a return record; the duration of one without an entry
    /// record is unknown.
    pub fn wants(
        &self,
        call: CallKey,
        entry: Option<CallRecord>,
        returned: Option<CallRecord>,
        open: Option<OpenUntil>,
    ) -> bool {
        let rule = self.wait_rules.get(call.category, call.number);
        let end = returned.map(|returned| returned.time).or(open.map(|open| open.time));
        let duration = entry.zip(end).map(|(entry, end)| end.saturating_sub(entry.time));
        let shows_wait = |record: Option<CallRecord>| record.is_some_and(|record| record.shows_wait);
        let (waited, may_be_long) = match open.map(|open| open.reason) {
            None => (rule.waited(shows_wait(entry), shows_wait(returned), duration.unwrap_or(0)), true),
            // What the return record would show is unknown.
            Some(OpenReason::CutOff) => (rule.waited(shows_wait(entry), false, 0), rule.can_wait()),
            Some(_) => (rule.can_wait(), rule.can_wait()),
        };
        let is_last_seen = open.is_some_and(|open| open.reason == OpenReason::LastSeen);
        let is_long = |least| may_be_long && (is_last_seen || duration.is_some_and(|duration| duration >= least));
        self.has_object(entry, returned) && (!self.blocked || waited) && self.longer.is_none_or(is_long)
    }

    /// True if one of a call's records names one of the objects, or any object will do.
    fn has_object(&self, entry: Option<CallRecord>, returned: Option<CallRecord>) -> bool {
        self.objects.is_empty() || [entry, returned].iter().flatten().any(|record| record.names_object)
    }

    /// A note for each record of a call that meets the conditions, unless that record is decided alone.
    fn select(
        &self,
        call: CallKey,
        entry: Option<CallRecord>,
        returned: Option<CallRecord>,
        open: Option<OpenUntil>,
    ) -> impl Iterator<Item = BatchNote> {
        let is_wanted = self.wants(call, entry, returned, open);
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

    /// The selected calls without a return record, and how many more might meet the conditions if no record was lost.
    pub fn open_calls(&self) -> (&OpenCallTable, u64) {
        (&self.open_calls, self.undecided)
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

/// Pairs, in order, the calls whose records are in different batches, and collects what all batches select.
struct CrossBatchPairing<'a> {
    filter: &'a CallFilter,
    open_calls: OpenCalls<CallRecord>,
    ends: ProcessEnds,
    selected: ExternalSort<RecordKey>,
    selected_open: OpenCallTable,
    undecided: u64,
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
                self.select(call, entry, Some(record), None)
            }
            BatchNoteKind::SelectedEntry | BatchNoteKind::SelectedReturn => {
                self.selected.push(&selected_key(note).to_bytes())
            }
            BatchNoteKind::LastRecord => {
                self.ends.add_record(call.pid, record.time);
                Ok(())
            }
            BatchNoteKind::End => self.add_ending(EndingRecord::End, note),
            BatchNoteKind::ExecFailed => self.add_ending(EndingRecord::ExecFailed, note),
            BatchNoteKind::Loss => self.add_ending(EndingRecord::Loss, note),
        }
    }

    fn add_ending(&mut self, ending: EndingRecord, note: &BatchNote) -> io::Result<()> {
        self.ends.add_ending(ending, note.call.pid, note.call.lwp, note.record.time);
        Ok(())
    }

    fn select(
        &mut self,
        call: CallKey,
        entry: Option<CallRecord>,
        returned: Option<CallRecord>,
        open: Option<OpenUntil>,
    ) -> io::Result<()> {
        let mut notes = self.filter.select(call, entry, returned, open);
        notes.try_for_each(|note| self.selected.push(&selected_key(&note).to_bytes()))
    }

    /// Takes all open calls for calls that do not return.
    fn close_all(&mut self) -> io::Result<()> {
        for (call, entry) in std::mem::take(&mut self.open_calls).into_open_calls() {
            let until = self.ends.open_until(call.pid, call.lwp, entry.time);
            if self.filter.wants(call, Some(entry), None, Some(until)) {
                self.selected_open.add_call(call, entry.time, until);
            } else if until.reason == OpenReason::CutOff {
                let might_wait = self.filter.wait_rules.get(call.category, call.number).can_wait();
                self.undecided += u64::from(might_wait && self.filter.has_object(Some(entry), None));
            }
            self.select(call, Some(entry), None, Some(until))?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<(SelectedRecords, OpenCallTable, u64)> {
        self.close_all()?;
        Ok((SelectedRecords::new(self.selected)?, self.selected_open, self.undecided))
    }
}

fn selected_key(&BatchNote { kind, call, record }: &BatchNote) -> RecordKey {
    let which = if kind == BatchNoteKind::SelectedEntry { 1 } else { 2 };
    RecordKey::new(record.time, call.pid, call.lwp, (call.category, call.number, which))
}
