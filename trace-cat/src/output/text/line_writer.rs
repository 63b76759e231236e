//! The lines of a page, as they were planned. Nothing is remembered here but the clock, from line to line.

use super::kind_layout::KindLayouts;
use super::known_threads::ArgumentText;
use super::line::{CallMarker, TextLine};
use super::line_plan::{LineKind, LineLabel, LinePlan, PlannedLine, RecordPage};
use super::time_column::TimeColumn;
use crate::record::fields::Fields;

/// Columns of a terminal that lines keep to, as far as they can.
pub const WIDTH: usize = 100;

/// What lines look like.
#[derive(Debug)]
pub struct LineWriter {
    forms: KindLayouts,
    coloured: bool,
}

impl LineWriter {
    /// With colours or without.
    pub fn new(coloured: bool) -> LineWriter {
        LineWriter { forms: KindLayouts::new(), coloured }
    }

    /// Appends the lines of a page; returns the clock behind them.
    pub fn show(&self, plan: &LinePlan, page: &RecordPage, out: &mut Vec<u8>) -> TimeColumn {
        let mut clock = plan.clock;
        for step in &plan.steps {
            match plan.record(page, step.record) {
                Some(fields) => self.step(plan, page, step, &fields, &mut clock, out),
                None => plain(page, step, out),
            }
        }
        clock
    }

    fn step(
        &self,
        plan: &LinePlan,
        page: &RecordPage,
        step: &PlannedLine,
        fields: &Fields,
        clock: &mut TimeColumn,
        out: &mut Vec<u8>,
    ) {
        let (form, who) = (self.forms.find(fields), plan.who(step));
        match step.what {
            LineKind::Only => {
                let mut line = TextLine::new(self.coloured, fields.time(), clock, who, CallMarker::None, out);
                line.call(form, fields, None);
                line.result(form, fields);
                line.answers(form, fields);
                line.caller(form, fields);
                line.end();
            }
            LineKind::Begins => self.begins(fields, who, clock, out),
            LineKind::Returns(begun) => {
                let first = begun.map(|number| &plan.begun[number as usize]);
                self.returns(fields, first.map(|first| (first.time, &first.object)), who, clock, out);
            }
            LineKind::Whole => {
                let Some(first) = plan.record(page, step.record - 1) else { return };
                if !self.whole([&first, fields], who, clock, out) {
                    self.begins(&first, who, clock, out);
                    self.returns(fields, Some((first.time(), &ArgumentText::new(first.argument(0)))), who, clock, out);
                }
            }
        }
    }

    fn begins(&self, fields: &Fields, who: LineLabel, clock: &mut TimeColumn, out: &mut Vec<u8>) {
        let form = self.forms.find(fields);
        let mut line = TextLine::new(self.coloured, fields.time(), clock, who, CallMarker::Begins, out);
        line.call(form, fields, None);
        line.caller(form, fields);
        line.end();
    }

    /// `first` is the time and a1 of the call's first record.
    fn returns(
        &self,
        fields: &Fields,
        first: Option<(u64, &ArgumentText)>,
        who: LineLabel,
        clock: &mut TimeColumn,
        out: &mut Vec<u8>,
    ) {
        let form = self.forms.find(fields);
        let mut line = TextLine::new(self.coloured, fields.time(), clock, who, CallMarker::Returns, out);
        line.returned(form, fields, first.map(|(_, object)| object));
        line.result(form, fields);
        line.took(first.map(|(time, _)| fields.time().saturating_sub(time)));
        line.answers(form, fields);
        line.end();
    }

    /// Appends the line of a call of which both records are known, if it fits a line.
    fn whole(&self, [first, second]: [&Fields; 2], who: LineLabel, clock: &mut TimeColumn, out: &mut Vec<u8>) -> bool {
        let forms = [first, second].map(|fields| self.forms.find(fields));
        let (start, before) = (out.len(), *clock);
        let took = second.time().saturating_sub(first.time());
        let mut line = TextLine::new(self.coloured, first.time(), clock, who, CallMarker::None, out);
        line.call(forms[0], first, forms[1].map(|form| (form, second)));
        line.result(forms[1], second);
        line.took((took > 0).then_some(took));
        line.answers(forms[1], second);
        let fits = line.usual_width() <= WIDTH;
        if fits {
            line.caller(forms[0], first);
            line.end();
        } else {
            out.truncate(start);
            *clock = before;
        }
        fits
    }

    /// The clock behind the lines of a page that are shown elsewhere.
    pub fn clock_behind(&self, plan: &LinePlan, page: &RecordPage) -> TimeColumn {
        let mut clock = plan.clock;
        let mut steps = plan.steps.iter().filter(|step| plan.record(page, step.record).is_some());
        let Some(first) = steps.next() else { return clock };
        let last = steps.next_back().unwrap_or(first);
        // A call whose two records are on one line is there at the time of the first.
        let pair = |step: &PlannedLine| match step.what {
            LineKind::Whole => [step.record - 1, step.record].map(|number| plan.record(page, number)),
            _ => [plan.record(page, step.record); 2],
        };
        let [begins, _] = pair(first);
        let ends = match pair(last) {
            [Some(first), Some(second)] if matches!(last.what, LineKind::Whole) => {
                let fits = self.whole([&first, &second], plan.who(last), &mut clock.clone(), &mut Vec::new());
                Some(if fits { first } else { second })
            }
            [_, only] => only,
        };
        [begins, ends].into_iter().flatten().for_each(|fields| clock.pass(fields.time()));
        clock
    }
}

/// Appends a line that is no record, without what a terminal could take for a command.
fn plain(page: &RecordPage, step: &PlannedLine, out: &mut Vec<u8>) {
    let Some(Err(line)) = (step.record as usize).checked_sub(1).map(|place| page[place]) else { return };
    out.extend(line.strip_suffix(b"\n").unwrap_or(line).escape_ascii());
    out.push(b'\n');
}
