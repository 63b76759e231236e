//! `-F text`: for people.
//!
//! ```text
//! times since 2026-11-21 03:39:00.544763329
//!   0.000000000 handoff/26705     mutex_lock(0x7ffc8f1c1b70)            = 0
//!   0.000002392 handoff/26705   > cond_wait(0x7ffc8f1c1b40, 0x7ffc8f1c1b70)
//!   0.008556826 handoff/26704     mutex_unlock(0x7ffc8f1c1b70)          = 0
//!   0.008562367 handoff/26704     cond_signal(0x7ffc8f1c1b40)           = 0                   waiters
//!   0.008574315 handoff/26705   < cond_wait(0x7ffc8f1c1b40)             = 0          8.571 ms
//! ```
//!
//! A line is a call. If no other record is between its two records, the call has one line, at the time of the first
//! record; else a line with `>` is where it began and a line with `<` where it returned. The result follows, then the time
//! that the call took (unless both records have the same time), and an answer for each column that is a question and is
//! not 0. A call that is known not to return has `open` for its result, how long it lasted at least, and why it is open.
//!
//! A `line_planner` goes through the records in order and makes a `line_plan`: whose records they are, which calls are open,
//! which records are a line. That takes little of the time. The lines themselves are written by many threads, a batch of
//! records each: a `line_writer` writes the lines of a plan.

mod call;
mod kind_layout;
mod known_threads;
mod line;
mod line_plan;
mod line_planner;
mod line_writer;
mod short_text;
mod time_column;

use std::sync::{Arc, Mutex, PoisonError};

use crate::filter::OpenCallTable;
use crate::merge::OrderedSection;
use crate::options::TimeStyle;
use crate::output::formatter::TimelineFormatter;
use crate::record::fields::Fields;
use crate::trace::file_names::FileGroup;
use crate::trace::interned_names::InternedNames;
use known_threads::KnownThreads;
use line_plan::{BatchRecords, LinePlan};
use line_planner::LinePlanner;
use line_writer::LineWriter;
use time_column::TimeColumn;

#[derive(Debug)]
pub struct TextFormat {
    writer: LineWriter,
    planner: Mutex<LinePlanner>,
    /// The plan for records that are shown one by one.
    plan: LinePlan,
    /// The clock before the lines of the last one.
    clock_before: TimeColumn,
    /// Empty batches, whose memory is used again.
    spare: Mutex<Vec<TextBatch<'static>>>,
}

/// Records that are shown together, and the plan of their lines.
#[derive(Debug)]
pub struct TextBatch<'a> {
    records: Vec<Result<Fields<'a>, &'a [u8]>>,
    plan: LinePlan,
}

impl TextFormat {
    /// The format that shows times in the style `time`. `groups` are the trace's files, which have the names of its
    /// processes; `open_calls` are known not to return.
    pub fn new(time: TimeStyle, coloured: bool, groups: Vec<FileGroup>, open_calls: OpenCallTable) -> TextFormat {
        let clock = TimeColumn::new(time);
        let names = Arc::new(InternedNames::new(groups.clone()));
        let planner = Mutex::new(LinePlanner::new(clock, KnownThreads::new(groups), coloured));
        TextFormat {
            writer: LineWriter::new(coloured, names, open_calls),
            planner,
            plan: LinePlan::new(clock),
            clock_before: clock,
            spare: Mutex::default(),
        }
    }

    pub fn batch<'a>(&self) -> TextBatch<'a> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| TextBatch { records: Vec::new(), plan: self.plan.clone() })
    }

    /// Appends the lines of a batch. Only the planning is in the ordered section, so that threads share the other work.
    pub fn show(&self, batch: TextBatch, section: OrderedSection, out: &mut Vec<u8>) {
        let TextBatch { records, mut plan } = batch;
        section.enter(|| {
            let mut planner = self.planner.lock().unwrap_or_else(PoisonError::into_inner);
            planner.plan(&records, &mut plan);
            planner.clock = self.writer.clock_after(&plan, &records);
        });
        self.writer.write(&plan, &records, out);
        plan.clear();
        let spare = TextBatch { records: emptied(records), plan };
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(spare);
    }
}

impl<'a> TextBatch<'a> {
    /// Adds a record, whose line ends with its newline.
    pub fn push(&mut self, line: &'a [u8]) {
        self.records.push(Fields::new(line).ok_or(line));
    }
}

/// An empty vector with the memory of `full`: collecting reuses the memory of the vector that it drains.
fn emptied<'a, 'b>(mut full: Vec<Result<Fields<'a>, &'a [u8]>>) -> Vec<Result<Fields<'b>, &'b [u8]>> {
    full.clear();
    full.into_iter().map(|_| unreachable!("it is empty")).collect()
}

impl TimelineFormatter for TextFormat {
    fn begin(&mut self, start: u64) {
        self.planner.get_mut().unwrap_or_else(PoisonError::into_inner).clock.begin(start);
    }

    fn set_open_calls(&mut self, calls: OpenCallTable) {
        self.writer.open_calls = calls;
    }

    fn add_name(&mut self, line: &[u8]) {
        self.planner.get_mut().unwrap_or_else(PoisonError::into_inner).add_name(line);
    }

    fn begin_call(&mut self, line: &[u8]) {
        if let Some(fields) = Fields::new(line) {
            self.planner.get_mut().unwrap_or_else(PoisonError::into_inner).begin_call(&fields);
        }
    }

    fn record(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let records = [Fields::new(line).ok_or(line)];
        self.show_in_order(&records, out, |planner, plan| planner.plan(&records, plan));
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        self.show_in_order(&[], out, LinePlanner::pause);
    }

    fn headings(&self) -> u64 {
        self.planner.lock().unwrap_or_else(PoisonError::into_inner).clock.headings
    }

    fn take_back(&mut self) {
        self.planner.get_mut().unwrap_or_else(PoisonError::into_inner).clock = self.clock_before;
    }
}

impl TextFormat {
    /// Appends the lines of `records` as `make_plan` plans them.
    fn show_in_order(
        &mut self,
        records: &BatchRecords,
        out: &mut Vec<u8>,
        make_plan: impl FnOnce(&mut LinePlanner, &mut LinePlan),
    ) {
        let planner = self.planner.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.clock_before = planner.clock;
        self.plan.clear_lines();
        make_plan(planner, &mut self.plan);
        planner.clock = self.writer.write(&self.plan, records, out);
    }
}

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
