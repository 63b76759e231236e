//! Writes the lines of a plan. Only the time column is remembered from line to line.

use super::frame_lines::write_frames;
use super::kind_layout::KindLayouts;
use super::line::{CallMarker, TextLine};
use super::line_names::LineNames;
use super::line_plan::{BatchRecords, LineKind, LineLabel, LinePlan, PlannedLine};
use super::short_text::ShortText;
use super::time_column::TimeColumn;
use crate::calls::pairing::CallKey;
use crate::filter::OpenCallTable;
use crate::output::frame_names::FrameNames;
use crate::record::call_stack::CallStack;
use crate::record::fields::Fields;

/// Columns of a terminal. A line is not wider if its call can be shown in two lines.
pub const WIDTH: usize = 100;

#[derive(Debug)]
pub struct LineWriter {
    kinds: KindLayouts,
    coloured: bool,
    names: LineNames,
    pub open_calls: OpenCallTable,
    /// The names of frames, if stacks are shown.
    pub frame_names: Option<FrameNames>,
}

impl LineWriter {
    pub fn new(coloured: bool, names: LineNames, open_calls: OpenCallTable) -> LineWriter {
        LineWriter { kinds: KindLayouts::new(), coloured, names, open_calls, frame_names: None }
    }

    /// Appends the lines of a plan for `records`. Returns the time column after them.
    pub fn write(&self, plan: &LinePlan, records: &BatchRecords, out: &mut Vec<u8>) -> TimeColumn {
        let mut clock = plan.clock;
        for line in &plan.lines {
            match plan.record(records, line.record) {
                Some(fields) => self.write_line(plan, records, line, &fields, &mut clock, out),
                None => write_damaged(records, line, out),
            }
        }
        clock
    }

    fn write_line(
        &self,
        plan: &LinePlan,
        records: &BatchRecords,
        line: &PlannedLine,
        fields: &Fields,
        clock: &mut TimeColumn,
        out: &mut Vec<u8>,
    ) {
        let (kind, label) = (self.kinds.find(fields), plan.label(line));
        match line.kind {
            LineKind::Single => {
                let mut line =
                    TextLine::new(self.coloured, &self.names, fields.time(), clock, label, CallMarker::None, out);
                line.put_call(kind, fields, None);
                line.put_result(kind, fields);
                line.put_answers(kind, fields);
                line.put_caller(kind, fields);
                line.end_line();
            }
            LineKind::Entry => self.write_entry(fields, label, clock, out),
            LineKind::Return(call) => {
                let call = call.map(|index| &plan.open_calls[index as usize]);
                self.write_return(fields, call.map(|call| (call.time, &call.object)), label, clock, out);
            }
            LineKind::Complete => {
                let Some(entry) = plan.record(records, line.record - 1) else { return };
                if self.write_complete([&entry, fields], label, clock, out) {
                    self.write_stack(plan, line.record - 1, fields, out);
                } else {
                    let object = ShortText::new(entry.argument(0));
                    self.write_entry(&entry, label, clock, out);
                    self.write_stack(plan, line.record - 1, fields, out);
                    self.write_return(fields, Some((entry.time(), &object)), label, clock, out);
                }
            }
        }
        self.write_stack(plan, line.record, fields, out);
    }

    /// Appends the frames of the stack of the record with this number, if it has one and stacks are shown.
    fn write_stack(&self, plan: &LinePlan, number: u32, fields: &Fields, out: &mut Vec<u8>) {
        if let Some(names) = &self.frame_names
            && let Some(stack) = plan.stack(number).filter(|stack| **stack != CallStack::default())
        {
            write_frames(names, fields, stack, 0, out);
        }
    }

    fn write_entry(&self, fields: &Fields, label: LineLabel, clock: &mut TimeColumn, out: &mut Vec<u8>) {
        let kind = self.kinds.find(fields);
        let mut line = TextLine::new(self.coloured, &self.names, fields.time(), clock, label, CallMarker::Begins, out);
        line.put_call(kind, fields, None);
        let call = CallKey::of(fields.line(), (fields.event().0, fields.event().1, fields.which()));
        if let Some(until) = self.open_calls.find(call, fields.time()) {
            line.put_open(until);
        }
        line.put_caller(kind, fields);
        line.end_line();
    }

    /// `entry` is the time and a1 of the call's entry record.
    fn write_return(
        &self,
        fields: &Fields,
        entry: Option<(u64, &ShortText)>,
        label: LineLabel,
        clock: &mut TimeColumn,
        out: &mut Vec<u8>,
    ) {
        let kind = self.kinds.find(fields);
        let mut line = TextLine::new(self.coloured, &self.names, fields.time(), clock, label, CallMarker::Returns, out);
        line.put_return(kind, fields, entry.map(|(_, object)| object));
        line.put_result(kind, fields);
        line.put_duration(entry.map(|(time, _)| fields.time().saturating_sub(time)));
        line.put_answers(kind, fields);
        line.end_line();
    }

    /// Appends the line of a call with both records. Returns `false`, and appends nothing, if the line is too wide.
    fn write_complete(
        &self,
        [entry, ret]: [&Fields; 2],
        label: LineLabel,
        clock: &mut TimeColumn,
        out: &mut Vec<u8>,
    ) -> bool {
        let kinds = [entry, ret].map(|fields| self.kinds.find(fields));
        let (start, clock_before) = (out.len(), *clock);
        let duration = ret.time().saturating_sub(entry.time());
        let mut line = TextLine::new(self.coloured, &self.names, entry.time(), clock, label, CallMarker::None, out);
        line.put_call(kinds[0], entry, kinds[1].map(|kind| (kind, ret)));
        line.put_result(kinds[1], ret);
        line.put_duration((duration > 0).then_some(duration));
        line.put_answers(kinds[1], ret);
        let fits = line.usual_width() <= WIDTH;
        if fits {
            line.put_caller(kinds[0], entry);
            line.end_line();
        } else {
            out.truncate(start);
            *clock = clock_before;
        }
        fits
    }

    /// The time column after the lines of a plan, before these are written: the next batch, which another thread writes, needs it.
    pub fn clock_after(&self, plan: &LinePlan, records: &BatchRecords) -> TimeColumn {
        let mut clock = plan.clock;
        let mut lines = plan.lines.iter().filter(|line| plan.record(records, line.record).is_some());
        let Some(first) = lines.next() else { return clock };
        let last = lines.next_back().unwrap_or(first);
        let first_and_last_record = |line: &PlannedLine| match line.kind {
            LineKind::Complete => [line.record - 1, line.record].map(|number| plan.record(records, number)),
            _ => [plan.record(records, line.record); 2],
        };
        let [begin, _] = first_and_last_record(first);
        let end = match first_and_last_record(last) {
            // A call that fits into one line has the time of its entry record.
            [Some(entry), Some(ret)] if matches!(last.kind, LineKind::Complete) => {
                let label = plan.label(last);
                let fits = self.write_complete([&entry, &ret], label, &mut clock.clone(), &mut Vec::new());
                Some(if fits { entry } else { ret })
            }
            [_, only] => only,
        };
        [begin, end].into_iter().flatten().for_each(|fields| clock.note_line(fields.time()));
        clock
    }
}

/// Appends a line that is not a record, without bytes that a terminal could take for a command.
fn write_damaged(records: &BatchRecords, line: &PlannedLine, out: &mut Vec<u8>) {
    let Some(Err(text)) = (line.record as usize).checked_sub(1).map(|index| records[index]) else { return };
    out.extend(text.strip_suffix(b"\n").unwrap_or(text).escape_ascii());
    out.push(b'\n');
}
