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
//! What is in a span of the program's own, or in a recorded function, is indented by how many it is in.
//!
//! If the records are of several hosts, a `~` after the time of a line means that an earlier line of another host may really be
//! later: the clocks' errors leave that open.
//!
//! With `--stack`, the frames of a recorded stack follow the line of its call, numbered from the innermost one on.
//!
//! A `line_planner` goes through the records in order and makes a `line_plan`: whose records they are, which calls are open,
//! which records are a line. That takes little of the time. The lines themselves are written by many threads, a batch of
//! records each: a `line_writer` writes the lines of a plan.

mod call;
mod frame_lines;
mod host_order;
mod kind_layout;
mod known_threads;
mod line;
mod line_names;
mod line_plan;
mod line_planner;
mod line_writer;
mod short_text;
mod time_column;

use std::sync::{Mutex, PoisonError};

use crate::filter::OpenCallTable;
use crate::merge::OrderedSection;
use crate::options::TimeStyle;
use crate::output::formatter::TimelineFormatter;
use crate::output::frame_names::FrameNames;
use crate::record::call_stack::{CallStack, is_stack, owner_key};
use crate::record::fields::{Fields, bits};
use crate::trace::file_names::FileGroup;
pub use frame_lines::is_frame_line;
use frame_lines::write_frames;
use known_threads::KnownThreads;
use line_names::LineNames;
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
    /// The last record that was shown one by one, and how many frames of its stack were shown.
    last: (Vec<u8>, usize),
    /// Empty batches, whose memory is used again.
    spare: Mutex<Vec<TextBatch<'static>>>,
}

/// Records that are shown together, and the plan of their lines.
#[derive(Debug)]
pub struct TextBatch<'a> {
    records: Vec<Result<Fields<'a>, &'a [u8]>>,
    plan: LinePlan,
    /// Whether stacks are shown.
    has_stacks: bool,
}

impl TextFormat {
    /// The format that shows times in the style `time`. `groups` are the trace's files, which have the names of its
    /// processes; `open_calls` are known not to return.
    pub fn new(time: TimeStyle, coloured: bool, groups: Vec<FileGroup>, open_calls: OpenCallTable) -> TextFormat {
        let clock = TimeColumn::new(time);
        let names = LineNames::new(groups.clone());
        let planner = Mutex::new(LinePlanner::new(clock, KnownThreads::new(groups), coloured));
        TextFormat {
            writer: LineWriter::new(coloured, names, open_calls),
            planner,
            plan: LinePlan::new(clock),
            clock_before: clock,
            last: (Vec::new(), 0),
            spare: Mutex::default(),
        }
    }

    /// The format that also shows stacks, whose frames have these names.
    pub fn with_stacks(mut self, names: FrameNames) -> TextFormat {
        self.writer.frame_names = Some(names);
        self
    }

    pub fn batch<'a>(&self) -> TextBatch<'a> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let has_stacks = self.writer.frame_names.is_some();
        spare.unwrap_or_else(|| TextBatch { records: Vec::new(), plan: self.plan.clone(), has_stacks })
    }

    /// Appends the lines of a batch. Only the planning is in the ordered section, so that threads share the other work.
    pub fn show(&self, batch: TextBatch, section: OrderedSection, out: &mut Vec<u8>) {
        let TextBatch { records, mut plan, has_stacks } = batch;
        section.enter(|| {
            let mut planner = self.planner.lock().unwrap_or_else(PoisonError::into_inner);
            planner.plan(&records, &mut plan);
            planner.clock = self.writer.clock_after(&plan, &records);
        });
        self.writer.write(&plan, &records, out);
        plan.clear();
        let spare = TextBatch { records: emptied(records), plan, has_stacks };
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(spare);
    }
}

impl<'a> TextBatch<'a> {
    /// Adds a record, whose line ends with its newline.
    pub fn push(&mut self, line: &'a [u8]) {
        if !is_stack(line) {
            self.records.push(Fields::new(line).ok_or(line));
        } else if self.has_stacks
            && let Some(fields) = Fields::new(line)
        {
            self.push_stack(&fields);
        }
    }

    /// Adds a part of a stack to the stack of its record, which is one of the last.
    fn push_stack(&mut self, part: &Fields) {
        let records = self.records.iter().enumerate().rev();
        let mut same_time = records.map_while(|(index, record)| {
            let fields = record.ok().filter(|fields| fields.time() == part.time())?;
            Some((index as u32 + 1, fields))
        });
        if let Some((number, _)) = same_time.find(|(_, fields)| fields.thread_key() == part.thread_key()) {
            self.plan.add_stack(number, part.which(), part.arguments().map(bits));
        }
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
        if is_stack(line) {
            return self.show_stack(line, out);
        }
        let records = [Fields::new(line).ok_or(line)];
        self.show_in_order(&records, out, |planner, plan| planner.plan(&records, plan));
        self.last.0.clear();
        self.last.0.extend_from_slice(line);
        self.last.1 = 0;
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
    /// Appends the frames of a part of a stack, if the last record is that of the stack. Where the line of that record is not shown
    /// yet, they are kept for it.
    fn show_stack(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let (Some(names), Some(fields)) = (&self.writer.frame_names, Fields::new(line)) else { return };
        let (last, shown) = &mut self.last;
        if owner_key(last) != owner_key(line) {
            return;
        }
        let planner = self.planner.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut stack = CallStack::default();
        let part = planner.held_stack().unwrap_or(&mut stack);
        part.add(fields.which(), fields.arguments().map(bits));
        *shown = write_frames(names, &fields, &stack, *shown, out);
    }

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
