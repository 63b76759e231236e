//! Goes through the records in order. This is as little as can be: whatever a record tells by itself is left to others.

use super::known_threads::{ArgumentText, KnownThreads, OpenCall, SET_NAME};
use super::line_plan::{CarriedRecord, LineKind, LinePlan, PlannedLine, RecordPage};
use super::time_column::TimeColumn;
use crate::output::terminal_style;
use crate::output::terminal_style::Highlight;
use crate::record::fields::{Fields, bits};

/// What is remembered from record to record.
#[derive(Debug)]
pub struct LinePlanner {
    /// The time, behind the lines that were planned.
    pub clock: TimeColumn,
    threads: KnownThreads,
    coloured: bool,
    /// The first of two records, which waits for what comes next.
    held: Option<HeldEntry>,
    /// Its copy, from page to page.
    copied: CarriedRecord,
    /// Of which plan a thread's `label` is: the newest, as long as nothing has changed.
    labels: u64,
}

/// A call that has begun, and of which nothing is planned yet.
#[derive(Clone, Copy, Debug)]
struct HeldEntry {
    thread: usize,
    event: (u8, u8),
    /// By [`PlannedLine::record`].
    record: u32,
}

impl LinePlanner {
    /// Nothing is known yet.
    pub fn new(clock: TimeColumn, threads: KnownThreads, coloured: bool) -> LinePlanner {
        LinePlanner { clock, threads, coloured, held: None, copied: CarriedRecord::default(), labels: 0 }
    }

    /// Plans the lines of the next records. The first of two may be left for the next page.
    ///
    /// The caller sees to the clock.
    pub fn plan(&mut self, page: &RecordPage, plan: &mut LinePlan) {
        self.open(plan);
        for (place, record) in page.iter().enumerate() {
            let number = place as u32 + 1;
            match record {
                Ok(fields) => self.record(fields, number, page, plan),
                // The file changed under the reader: better shown somehow than not at all.
                Err(_) => {
                    self.release(page, plan);
                    plan.steps.push(PlannedLine { record: number, who: 0, what: LineKind::Only });
                }
            }
        }
        if let Some(held) = &mut self.held {
            match plan.record(page, held.record) {
                Some(fields) => self.copied.keep(&fields),
                None => self.held = None,
            }
        }
        if let Some(held) = &mut self.held {
            held.record = 0;
        }
    }

    /// Plans the line of what was left.
    pub fn pause(&mut self, plan: &mut LinePlan) {
        self.open(plan);
        self.release(&[], plan);
    }

    fn open(&mut self, plan: &mut LinePlan) {
        plan.clock = self.clock;
        std::mem::swap(&mut plan.before, &mut self.copied);
        if plan.is_fresh() {
            self.labels += 1;
        }
    }

    fn record(&mut self, fields: &Fields, number: u32, page: &RecordPage, plan: &mut LinePlan) {
        let thread = self.thread(fields, page, plan);
        let event = fields.event();
        match fields.which() {
            1 => {
                self.release(page, plan);
                self.held = Some(HeldEntry { thread, event, record: number });
            }
            2 => {
                if self.held.is_some_and(|held| (held.thread, held.event) == (thread, event)) {
                    self.held = None;
                    return self.step(thread, number, LineKind::Whole, plan);
                }
                self.release(page, plan);
                let begun = self.threads.end(thread, event).map(|begun| {
                    plan.begun.push(begun);
                    plan.begun.len() as u32 - 1
                });
                self.step(thread, number, LineKind::Returns(begun), plan);
            }
            _ => {
                self.release(page, plan);
                self.step(thread, number, LineKind::Only, plan);
                if event == SET_NAME && fields.argument(3) == b"0" {
                    let [tid, high, low, ..] = fields.arguments();
                    let name = [high, low].map(|text| bits(text).to_be_bytes()).concat();
                    self.threads.name(fields.pid(), tid, &name);
                    self.labels += 1;
                }
            }
        }
    }

    /// Whose record it is.
    fn thread(&mut self, fields: &Fields, page: &RecordPage, plan: &mut LinePlan) -> usize {
        if let Some(thread) = self.threads.find(fields) {
            return thread;
        }
        if self.threads.are_many() {
            self.release(page, plan);
            self.threads.forget();
        }
        let width = self.threads.width();
        let thread = self.threads.add(fields);
        if self.threads.width() != width {
            self.labels += 1;
        }
        thread
    }

    /// Plans what was held back: the call goes on while others do something.
    fn release(&mut self, page: &RecordPage, plan: &mut LinePlan) {
        let Some(HeldEntry { thread, event, record }) = self.held.take() else { return };
        let Some(fields) = plan.record(page, record) else { return };
        self.threads
            .begin(thread, OpenCall { event, time: fields.time(), object: ArgumentText::new(fields.argument(0)) });
        self.step(thread, record, LineKind::Begins, plan);
    }

    fn step(&mut self, thread: usize, record: u32, what: LineKind, plan: &mut LinePlan) {
        let who = match self.threads.noted(thread) {
            (labels, who) if *labels == self.labels => *who,
            _ => {
                let who = plan.label(|out| self.label(thread, out));
                *self.threads.noted(thread) = (self.labels, who);
                who
            }
        };
        plan.steps.push(PlannedLine { record, who, what });
    }

    /// Appends a thread's label in its colour and the spaces behind it; returns how many bytes take no column.
    fn label(&self, thread: usize, out: &mut Vec<u8>) -> usize {
        let (label, start) = (self.threads.label(thread), out.len());
        let colour =
            if self.coloured { [Highlight::Thread(thread).begin(), terminal_style::END] } else { [&b""[..]; 2] };
        [b" ", colour[0], label.text.as_bytes(), colour[1]].iter().for_each(|part| out.extend_from_slice(part));
        let spaces = self.threads.width().saturating_sub(label.width);
        out.resize(out.len() + spaces, b' ');
        out.len() - start - 1 - label.width - spaces
    }
}
