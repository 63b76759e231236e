//! Writes all records to the journal, and prints the selected ones in their format.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use super::line_tail::{LastLines, LineTail};
use super::live_timeline::LiveTimeline;
use super::past::Past;
use crate::filter::{LineLimit, NeededRecords, OpenCallTable, StreamingFilter};
use crate::options::{OutputFormat, Printing, Selection, TimePoint};
use crate::output::destination::Output;
use crate::output::{self, Formatter, LimitedFormat};
use crate::record::call_stack::{StackOwners, is_stack, owner_key};
use crate::record::columns;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;

/// Bytes that are collected before they are written.
const CHUNK_LEN: usize = 1 << 20;

/// Where records go.
pub struct Printer<'a> {
    journal: Option<(Output<'a>, String)>,
    /// Records that are still to be written to the journal.
    journal_text: Vec<u8>,
    output: Output<'a>,
    /// Text that is still to be written to the output.
    text: Vec<u8>,
    filter: StreamingFilter,
    /// The conditions by which records can be left out before they come here.
    needed: Option<NeededRecords>,
    /// The records that the filter has just selected.
    selected: Vec<u8>,
    since: Option<TimePoint>,
    until: Option<TimePoint>,
    /// The times of `since` and `until`, which the first record decides.
    times: Option<Range<u64>>,
    /// How many records may still be printed, unless the formatter counts lines.
    remaining: u64,
    /// The latest records that were printed.
    owners: StackOwners,
    tail: Option<LastLines>,
    formatter: Formatter,
    /// What a viewer's format is made by, instead of the formatter.
    timeline: Option<LiveTimeline>,
    /// Before this time records are left out.
    complete_from: u64,
    format: OutputFormat,
    /// Of the records that were printed, or written to the journal.
    pub late: LateRecords,
}

/// How many records were late, and how late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LateRecords {
    /// How many there were.
    pub count: u64,
    /// The longest delay, nanoseconds.
    pub delay_max: u64,
}

impl LateRecords {
    /// Counts a record if it is late.
    fn add(&mut self, delay: u64) {
        self.count += u64::from(delay > 0);
        self.delay_max = self.delay_max.max(delay);
    }
}

impl<'a> Printer<'a> {
    /// Opens the outputs for the records of `paths`.
    pub fn new(
        printing: &Printing,
        selection: &Selection,
        paths: &[PathBuf],
        diagnostics: &'a Diagnostics,
    ) -> Result<Printer<'a>, Error> {
        let open = |path: Option<&PathBuf>, name: &str| {
            Output::open(path.map(PathBuf::as_path), diagnostics).map_err(|error| Error::new(name, error))
        };
        let journal = printing.output.as_ref().map(|path| {
            let name = path.display().to_string();
            Ok((open(Some(path), &name)?, name))
        });
        let formatter =
            output::formatter_for(&Printing { output: None, ..printing.clone() }, paths, OpenCallTable::default());
        let (formatter, remaining) = match (formatter, selection.head) {
            // A line can be two records.
            (Formatter::Timeline(formatter), Some(most)) if selection.tail.is_none() => {
                let lines = LineLimit { skip: 0, most };
                (Formatter::Timeline(Box::new(LimitedFormat::new(formatter, lines))), u64::MAX)
            }
            (formatter, head) => (formatter, head.unwrap_or(u64::MAX)),
        };
        let timeline = LiveTimeline::new(printing.format, selection, paths).map_err(failed)?;
        let mut printer = Printer {
            journal: journal.transpose()?,
            journal_text: Vec::new(),
            output: open(None, OUTPUT)?,
            text: Vec::new(),
            filter: StreamingFilter::new(selection),
            needed: NeededRecords::new(selection).filter(|_| printing.output.is_none() && timeline.is_none()),
            selected: Vec::new(),
            since: selection.since,
            until: selection.until,
            times: None,
            remaining,
            owners: StackOwners::default(),
            tail: selection.tail.map(|limit| LastLines { limit, lines: VecDeque::new() }),
            formatter,
            timeline,
            complete_from: 0,
            format: printing.format,
            late: LateRecords::default(),
        };
        if let Formatter::PerRecord(view) = &printer.formatter {
            view.head(&mut printer.text);
            printer.add_late_mark(0, false);
        }
        Ok(printer)
    }

    /// Which records are needed from now on; `None` for all: times count from the first record of all, and the journal has all.
    pub fn needed_records(&mut self) -> Option<NeededRecords> {
        self.needed.take_if(|_| self.times.is_some())
    }

    /// Takes `start` for the time of the first record, which the others' times are counted from.
    pub fn begin(&mut self, start: u64) {
        if let Some(timeline) = &self.timeline {
            // If its thread has ended, the next record shows that.
            _ = timeline.begin(start, self.complete_from);
        }
        if let Formatter::Timeline(formatter) = &mut self.formatter {
            formatter.begin(start);
        }
        let since = self.since.map_or(0, |since| since.resolve(start));
        self.times = Some(since..self.until.map_or(u64::MAX, |until| until.resolve(start)));
    }

    /// Takes that records before `time` are left out.
    pub fn leave_out_before(&mut self, time: u64) {
        self.complete_from = time;
    }

    /// Takes what is known of the time before the first record.
    pub fn know(&mut self, past: &Past) {
        for line in &past.open_calls {
            self.filter.push(line, &mut Vec::new());
            if let Some(timeline) = &mut self.timeline {
                // It is among the first ones: nothing is written.
                _ = timeline.add(line, &mut self.text);
            }
        }
        if let Formatter::Timeline(formatter) = &mut self.formatter {
            past.open_calls.iter().for_each(|line| formatter.begin_call(line));
            past.names.iter().for_each(|line| formatter.add_name(line));
        }
    }

    /// Takes the next record. It is late, by `delay` nanoseconds, if later records may have been printed before it.
    pub fn put(&mut self, line: &[u8], delay: u64) -> Result<(), Error> {
        if self.journal.is_some() {
            self.late.add(delay);
            self.journal_text.extend_from_slice(line);
        }
        if self.times.is_none() {
            self.begin(columns::time(line).unwrap_or(0));
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.add(line, &mut self.text).map_err(Error::temporary)?;
            if self.journal.is_none() {
                self.late.add(delay);
            }
            return self.write_if_much();
        }
        let mut selected = std::mem::take(&mut self.selected);
        self.filter.push(line, &mut selected);
        self.select(&selected, delay);
        selected.clear();
        self.selected = selected;
        if columns::sets_name(line)
            && let Formatter::Timeline(formatter) = &mut self.formatter
        {
            formatter.add_name(line);
        }
        self.write_if_much()
    }

    fn write_if_much(&mut self) -> Result<(), Error> {
        if self.text.len() > CHUNK_LEN || self.journal_text.len() > CHUNK_LEN { self.write() } else { Ok(()) }
    }

    /// Prints calls that are selected because they have not ended before `now`, in processes of which these are `running`, each
    /// with the present in the time of its records.
    pub fn put_lasting_calls(&mut self, now: u64, running: &[(u32, u64)]) -> Result<(), Error> {
        if let Some(timeline) = &mut self.timeline {
            return timeline.append_moment(now, running, &mut self.text).map_err(Error::temporary);
        }
        let mut selected = std::mem::take(&mut self.selected);
        let open = self.filter.push_lasting_calls(now, running, &mut selected);
        self.set_open_calls(open);
        self.select(&selected, 0);
        selected.clear();
        self.selected = selected;
        Ok(())
    }

    /// Prints those of `lines` that are in the selected time, up to the limits.
    fn select(&mut self, lines: &[u8], delay: u64) {
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let time = columns::time(line).unwrap_or(0);
            if self.times.as_ref().is_some_and(|times| !times.contains(&time)) {
                continue;
            }
            if is_stack(line) {
                self.select_stack(line, delay);
                continue;
            }
            match &mut self.tail {
                Some(tail) => {
                    tail.lines.push_back(line.into());
                    // A line of a format whose lines are calls has at most two records.
                    let records = if matches!(self.formatter, Formatter::Timeline(_)) { 2 } else { 1 };
                    if tail.lines.len() as u64 > tail.limit.saturating_mul(records) {
                        tail.lines.pop_front();
                    }
                }
                None if self.remaining > 0 => {
                    self.remaining -= 1;
                    if self.journal.is_none() {
                        self.late.add(delay);
                    }
                    self.owners.add(line, ());
                    self.format_line(line, delay > 0);
                }
                None => {}
            }
        }
    }

    /// Prints a part of a stack with its record.
    fn select_stack(&mut self, line: &[u8], delay: u64) {
        match &mut self.tail {
            Some(tail) => {
                if let Some(record) = tail.lines.back_mut().filter(|record| owner_key(record) == owner_key(line)) {
                    *record = [record, line].concat().into();
                }
            }
            None if self.owners.own(line) => self.format_line(line, delay > 0),
            None => {}
        }
    }

    fn format_line(&mut self, line: &[u8], late: bool) {
        let start = self.text.len();
        match &mut self.formatter {
            Formatter::Raw => self.text.extend_from_slice(line),
            Formatter::PerRecord(view) => view.record(line, &mut self.text),
            Formatter::Timeline(view) if late => {
                // The late record is on a line of its own, apart from calls in progress.
                view.pause(&mut self.text);
                view.record(line, &mut self.text);
                view.pause(&mut self.text);
            }
            Formatter::Timeline(view) => view.record(line, &mut self.text),
        }
        self.add_late_mark(start, late);
    }

    /// Marks the line that begins at `start`, if there is one.
    fn add_late_mark(&mut self, start: usize, late: bool) {
        let (end, mark): (&[u8], &[u8]) = match (self.format, late) {
            (OutputFormat::Csv, _) if start == 0 && self.text.starts_with(b"time,") => (b"\n", b",late\n"),
            (OutputFormat::Csv, false) => (b"\n", b",0\n"),
            (OutputFormat::Csv, true) => (b"\n", b",1\n"),
            (OutputFormat::Json, true) => (b"}\n", b",\"late\":true}\n"),
            (OutputFormat::Text, true) => (b"\n", b"  late\n"),
            _ => return,
        };
        if self.text.len() > start && self.text.ends_with(end) {
            self.text.truncate(self.text.len() - end.len());
            self.text.extend_from_slice(mark);
        }
    }

    /// All existing records were taken: from now on records are printed as they arrive.
    pub fn caught_up(&mut self) {
        if let Some(tail) = self.tail.take() {
            let start = self.text.len();
            let mut limited = LineTail { limit: tail.limit, heading: Vec::new(), lines: VecDeque::new() };
            for line in tail.lines.iter().take(usize::try_from(self.remaining).unwrap_or(usize::MAX)) {
                let before = self.headings();
                columns::lines(line).for_each(|line| self.format_line(line, false));
                if matches!(self.formatter, Formatter::Timeline(_)) {
                    limited.take(self.text.split_off(start), self.headings() - before);
                }
            }
            let before = self.headings();
            if let Formatter::Timeline(view) = &mut self.formatter {
                view.pause(&mut self.text);
                limited.take(self.text.split_off(start), self.headings() - before);
            }
            self.text.extend(limited.heading);
            self.text.extend(limited.lines.into_iter().flat_map(|(heading, line)| [heading, line].concat()));
            self.remaining = self.remaining.saturating_sub(tail.lines.len() as u64);
        }
    }

    fn headings(&self) -> u64 {
        if let Formatter::Timeline(view) = &self.formatter { view.headings() } else { 0 }
    }

    /// Prints all records that were taken.
    pub fn flush(&mut self) -> Result<(), Error> {
        if let Some(timeline) = &mut self.timeline {
            timeline.take_pending(&mut self.text).map_err(Error::temporary)?;
        }
        if let Formatter::Timeline(view) = &mut self.formatter {
            view.pause(&mut self.text);
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), Error> {
        if let Some((journal, name)) = &mut self.journal
            && !self.journal_text.is_empty()
        {
            journal.write(&self.journal_text).map_err(|error| Error::new(name.clone(), error))?;
            self.journal_text.clear();
        }
        if !self.text.is_empty() {
            self.output.write(&self.text).map_err(failed)?;
            self.text.clear();
        }
        Ok(())
    }

    /// Whether no record of time `now` or later will be printed.
    pub fn is_done(&self, now: u64) -> bool {
        let is_full = matches!(&self.formatter, Formatter::Timeline(formatter) if formatter.is_complete());
        self.remaining == 0 || is_full || self.times.as_ref().is_some_and(|times| now >= times.end)
    }

    fn set_open_calls(&mut self, calls: OpenCallTable) {
        if let Formatter::Timeline(formatter) = &mut self.formatter
            && !calls.is_empty()
        {
            formatter.set_open_calls(calls);
        }
    }

    /// Finishes the outputs after the last record, when these processes are `running`, each with the present in the time of its
    /// records.
    pub fn end(mut self, running: &[(u32, u64)]) -> Result<(), Error> {
        if let Some(timeline) = self.timeline.take() {
            timeline.finish(running, &mut self.text).map_err(Error::temporary)?;
            return self.write();
        }
        let mut selected = std::mem::take(&mut self.selected);
        let open = self.filter.end(running, &mut selected);
        self.set_open_calls(open);
        self.select(&selected, 0);
        if let Formatter::Timeline(view) = &mut self.formatter {
            view.end(&mut self.text);
        }
        self.write()
    }
}

const OUTPUT: &str = "standard output";

fn failed(error: io::Error) -> Error {
    Error::new(OUTPUT, error)
}
