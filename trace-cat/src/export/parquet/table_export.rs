//! Makes rows of records and of what the analysis says of them.

use std::collections::{HashMap, HashSet};
use std::io;

use spec::event_numbers::TRACE_STACK;

use super::interval_rows::{IntervalRows, RowSubject};
use super::partitions::{Partitions, TablePlace};
use super::row::Row;
use super::row_texts::{ProcessOrigin, RowKind, RowTexts};
use crate::calls::call_assembler::events_of_functions;
use crate::calls::pairing::{CallKey, OPEN_CALLS_MAX, OpenCalls};
use crate::export::event_selection::EventSelection;
use crate::export::timeline_export::NameSources;
use crate::record::event_table::EventTable;
use crate::report::contention::{Analysis, CallSubject, NumericRecord, TimelineEvent};
use crate::report::trace_names::answer_questions;

/// The way from records to a table.
pub struct TableExport {
    analysis: Analysis,
    selection: EventSelection,
    sources: NameSources,
    texts: RowTexts,
    /// Which events are those of calls.
    calls: EventTable<bool>,
    open: OpenCalls<PendingCall>,
    /// The parts of stacks that belong to the next record. Their rows are behind its row.
    stacks: Vec<NumericRecord>,
    /// Rows without a record.
    others: Vec<Row>,
    partitions: Partitions,
    /// A row was written.
    has_rows: bool,
}

/// A call without a return record so far.
#[derive(Clone, Copy, Debug)]
struct PendingCall {
    entry: u64,
    thread: u32,
    subject: CallSubject,
}

impl TableExport {
    /// A table at `place` of what `analysis`, which has no record yet, and `selection` select. Processes have `origins` by their
    /// IDs. The first record is of the time `start`.
    ///
    /// # Errors
    /// Any failure of a file.
    pub fn new(
        mut analysis: Analysis,
        selection: EventSelection,
        sources: NameSources,
        origins: HashMap<u32, ProcessOrigin>,
        (place, start): (TablePlace, u64),
    ) -> io::Result<TableExport> {
        analysis.begin_table();
        let calls: HashSet<(u8, u8)> = events_of_functions().collect();
        let texts = RowTexts::new(origins);
        let partitions = Partitions::new(place, start, &texts.texts)?;
        Ok(TableExport {
            analysis,
            selection,
            sources,
            texts,
            calls: EventTable::new(|category, number| calls.contains(&(category, number))),
            open: OpenCalls::default(),
            stacks: Vec::new(),
            others: Vec::new(),
            partitions,
            has_rows: false,
        })
    }

    /// Adds the next record, in the order of time.
    ///
    /// # Errors
    /// Any failure of a file.
    pub fn add(&mut self, record: &NumericRecord) -> io::Result<()> {
        self.analysis.add(record);
        if record.event == TRACE_STACK {
            self.stacks.push(*record);
            return Ok(());
        }
        answer_questions(&mut self.analysis, &self.sources.recorded, &self.sources.symbols);
        let subject = self.analysis.take_subject().unwrap_or_default();
        let Some(thread) = self.analysis.thread_of_record(record) else { return Ok(()) };
        let (entry, subject) = self.pair(record, thread, subject)?;
        let scene = self.sources.scene(&self.analysis);
        let mut row = Row {
            kind: self.texts.kind(RowKind::Record),
            time: record.time,
            process: self.texts.process(scene.thread(thread).process, &scene),
            lwp: record.lwp,
            tid: record.tid,
            event: self.texts.event(record.event),
            event_number: record.event,
            record: Some((record.which, self.texts.arguments(record))),
            entry,
            duration: entry.map(|entry| record.time.saturating_sub(entry)),
            object: subject.object.map(|object| self.texts.object(object, &scene)).unwrap_or_default(),
            site: self.texts.site(subject.site, &scene),
            ..Row::default()
        };
        let is_selected = self.selection.wants_record(record, thread, subject.object, &self.analysis);
        let subject = RowSubject { thread, object: subject.object, time: record.time, entry };
        self.add_intervals(is_selected.then_some((&mut row, subject)));
        if is_selected {
            self.put(&row)?;
        }
        for stack in std::mem::take(&mut self.stacks) {
            if self.selection.wants_record(&stack, thread, None, &self.analysis) {
                let NumericRecord { time, lwp, tid, event, .. } = stack;
                let (kind, process, event_number) = (row.kind, row.process, event);
                let (event, record) = (self.texts.event(event), Some((stack.which, stack.arguments)));
                self.put(&Row { kind, time, process, lwp, tid, event, event_number, record, ..Row::default() })?;
            }
        }
        self.put_others()
    }

    /// When the call began that a record ends, and what the call is about.
    fn pair(
        &mut self,
        record: &NumericRecord,
        thread: u32,
        subject: CallSubject,
    ) -> io::Result<(Option<u64>, CallSubject)> {
        let NumericRecord { pid, lwp, tid, event: (category, number), which, time, .. } = *record;
        let name = CallKey::name_of((category, number), || record.arguments[0]);
        let key = CallKey { pid, lwp, tid, category, number, name };
        match which {
            1 => {
                if self.open.len() >= OPEN_CALLS_MAX {
                    self.put_open_calls()?;
                }
                self.open.begin(key, PendingCall { entry: time, thread, subject });
                Ok((None, subject))
            }
            2 => {
                let call = self.open.end(key);
                let subject =
                    if subject == CallSubject::default() { call.map_or(subject, |call| call.subject) } else { subject };
                Ok((call.map(|call| call.entry), subject))
            }
            _ => Ok((self.calls.get(category, number).then_some(time), subject)),
        }
    }

    /// Adds what the analysis has accounted to the row of the record in progress, or makes rows of it.
    fn add_intervals(&mut self, row: Option<(&mut Row, RowSubject)>) {
        self.take_intervals(row, false);
    }

    fn take_intervals(&mut self, row: Option<(&mut Row, RowSubject)>, is_end: bool) {
        let Some((mut events, mut shares)) = self.analysis.take_intervals() else { return };
        let scene = self.sources.scene(&self.analysis);
        let mut rows = IntervalRows { scene: &scene, texts: &mut self.texts, row, others: &mut self.others };
        let mut shares_in_order = shares.drain(..);
        for event in events.drain(..) {
            match event {
                TimelineEvent::Wait(wait) => {
                    let shares = wait.is_contention.then(|| shares_in_order.next()).flatten().unwrap_or_default();
                    if self.selection.wants(&event, &self.analysis) {
                        rows.add_wait(&wait, &shares);
                    }
                }
                TimelineEvent::Hold(hold) if self.selection.wants(&event, &self.analysis) => {
                    rows.add_hold(&hold, is_end)
                }
                _ => {}
            }
        }
        drop(shares_in_order);
        self.analysis.give_back(events, shares);
    }

    /// Makes rows of the calls that have not returned.
    fn put_open_calls(&mut self) -> io::Result<()> {
        let mut calls = std::mem::take(&mut self.open).into_open_calls();
        calls.sort_by_key(|(key, call)| (call.entry, key.pid, key.lwp));
        for (key, PendingCall { entry, thread, subject }) in calls {
            let event = (key.category, key.number);
            let scene = self.sources.scene(&self.analysis);
            let process = scene.thread(thread).process;
            let time = scene.process(process).last.max(entry);
            let row = Row {
                kind: self.texts.kind(RowKind::Call),
                time,
                process: self.texts.process(process, &scene),
                lwp: key.lwp,
                tid: key.tid,
                event: self.texts.event(event),
                event_number: event,
                entry: Some(entry),
                duration: Some(time - entry),
                object: subject.object.map(|object| self.texts.object(object, &scene)).unwrap_or_default(),
                site: self.texts.site(subject.site, &scene),
                is_open: true,
                ..Row::default()
            };
            let begin = NumericRecord { time: entry, event, ..NumericRecord::default() };
            if self.selection.wants_record(&begin, thread, subject.object, &self.analysis) {
                self.put(&row)?;
            }
        }
        Ok(())
    }

    /// Completes the table. `running` are the numbers of the processes that run, each with the present in the time of its records.
    /// Returns whether there is a row.
    ///
    /// # Errors
    /// Any failure of a file.
    pub fn finish(mut self, running: &[(u32, u64)]) -> io::Result<bool> {
        self.analysis.finish(running);
        self.take_intervals(None, true);
        self.put_others()?;
        self.put_open_calls()?;
        self.partitions.finish()?;
        Ok(self.has_rows)
    }

    fn put_others(&mut self) -> io::Result<()> {
        let mut others = std::mem::take(&mut self.others);
        others.iter().try_for_each(|row| self.put(row))?;
        others.clear();
        self.others = others;
        Ok(())
    }

    fn put(&mut self, row: &Row) -> io::Result<()> {
        self.has_rows = true;
        self.partitions.push(row, &self.texts.texts)
    }
}
