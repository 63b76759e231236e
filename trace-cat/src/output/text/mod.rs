//! `-F text`: for people.
//!
//! ```text
//!   0.000000000 handoff/26705     mutex_lock(0x7ffc8f1c1b70)            = 0
//!   0.000002392 handoff/26705   > cond_wait(0x7ffc8f1c1b40, 0x7ffc8f1c1b70)
//!   0.008556826 handoff/26704     mutex_unlock(0x7ffc8f1c1b70)          = 0
//!   0.008562367 handoff/26704     cond_signal(0x7ffc8f1c1b40)           = 0                   waiters
//!   0.008574315 handoff/26705   < cond_wait(0x7ffc8f1c1b40)             = 0          8.571 ms
//! ```
//!
//! A line is a call. When nothing else comes between its two records, it is shown once, at the time of the first; else
//! `>` marks where it began and `<` where it came back, as far apart as they were. Then come the result, how long it took
//! (if not both records have the same time), and what the columns that answer a question say when they say yes.
//!
//! ```text
//! line_planner    goes through the records: who is who, which calls they are in, which records are a line
//!   known_threads   the threads so far
//! line_plan       the result of that
//! line_writer     writes the lines
//!   line            one line, its columns and colours; short_text: texts that are put often
//!   time_column     the column of the time
//!   call            an event's name with its arguments
//!   kind_layout     what is shown of which kind of record
//! ```
//!
//! Going through the records in order is little of the work. Threads share the rest, a page of records each.

mod call;
mod kind_layout;
mod known_threads;
mod line;
mod line_plan;
mod line_planner;
mod line_writer;
mod short_text;
mod time_column;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::merge::OrderedSection;
use crate::options::TimeStyle;
use crate::output::formatter::TimelineFormatter;
use crate::record::fields::Fields;
use known_threads::KnownThreads;
use line_plan::LinePlan;
use line_planner::LinePlanner;
use line_writer::LineWriter;
use time_column::TimeColumn;

/// The view for people.
#[derive(Debug)]
pub struct TextFormat {
    lines: LineWriter,
    order: Mutex<LinePlanner>,
    /// What one record came to.
    plan: LinePlan,
    /// Batches whose memory is used again.
    spare: Mutex<Vec<TextBatch<'static>>>,
}

/// Records that are shown together.
#[derive(Debug)]
pub struct TextBatch<'a> {
    records: Vec<Result<Fields<'a>, &'a [u8]>>,
    plan: LinePlan,
}

impl TextFormat {
    /// `directories` are those of the trace, in which its processes' names are found.
    pub fn new(time: TimeStyle, coloured: bool, directories: Vec<PathBuf>) -> TextFormat {
        let clock = TimeColumn::new(time);
        let order = Mutex::new(LinePlanner::new(clock, KnownThreads::new(directories), coloured));
        TextFormat { lines: LineWriter::new(coloured), order, plan: LinePlan::new(clock), spare: Mutex::default() }
    }

    /// A batch without records.
    pub fn batch<'a>(&self) -> TextBatch<'a> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| TextBatch { records: Vec::new(), plan: self.plan.clone() })
    }

    /// Appends what is shown for some records. Only what needs their order is done in their turn, so that threads share the rest.
    pub fn show(&self, batch: TextBatch, turn: OrderedSection, out: &mut Vec<u8>) {
        let TextBatch { records, mut plan } = batch;
        turn.enter(|| {
            let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
            order.plan(&records, &mut plan);
            order.clock = self.lines.clock_behind(&plan, &records);
        });
        self.lines.show(&plan, &records, out);
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

/// The memory of what is in `full`. Collecting into the vector that is drained needs no other one.
fn emptied<'a, 'b>(mut full: Vec<Result<Fields<'a>, &'a [u8]>>) -> Vec<Result<Fields<'b>, &'b [u8]>> {
    full.clear();
    full.into_iter().map(|_| unreachable!("it is empty")).collect()
}

impl TimelineFormatter for TextFormat {
    fn record(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let page = [Fields::new(line).ok_or(line)];
        let order = self.order.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.plan.next();
        order.plan(&page, &mut self.plan);
        order.clock = self.lines.show(&self.plan, &page, out);
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        let order = self.order.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.plan.next();
        order.pause(&mut self.plan);
        order.clock = self.lines.show(&self.plan, &[], out);
    }
}

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
