//! What the order of the records decides: which lines there are, whose they are, and what is known from before.

use super::known_threads::OpenCall;
use super::time_column::TimeColumn;
use crate::record::fields::Fields;
use crate::record::validation::FieldOffsets;

/// Records one behind the other, cut up; lines that are none as they are.
pub type RecordPage<'a> = [Result<Fields<'a>, &'a [u8]>];

/// One line, or the two of a call that does not fit one.
#[derive(Clone, Copy, Debug)]
pub struct PlannedLine {
    /// The record: 0 for the one before the page, else one more than its place in it.
    pub record: u32,
    /// Whose, by [`LinePlan::who`].
    pub who: u32,
    /// What there is to show.
    pub what: LineKind,
}

/// What a line is about.
#[derive(Clone, Copy, Debug)]
pub enum LineKind {
    /// The only record of a call, or a line that is no record.
    Only,
    /// The first record of a call, behind which something else comes.
    Begins,
    /// The second record of a call; where its first one is noted, if that is known.
    Returns(Option<u32>),
    /// The second record of a call whose first one is the record before.
    Whole,
}

/// A thread as it is called in some line.
#[derive(Clone, Copy, Debug)]
pub struct LineLabel<'a> {
    /// Its label with its colour, up to the mark.
    pub text: &'a [u8],
    /// Bytes of that which take no column.
    pub hidden: usize,
}

/// The lines of a page.
#[derive(Clone, Debug)]
pub struct LinePlan {
    /// The clock before them.
    pub clock: TimeColumn,
    /// One behind the other.
    pub steps: Vec<PlannedLine>,
    /// First records of calls that return.
    pub begun: Vec<OpenCall>,
    /// The record before the page.
    pub before: CarriedRecord,
    /// Of each [`LineLabel`] where its text ends in `labels`, and bytes of it that take no column.
    whos: Vec<(usize, usize)>,
    labels: Vec<u8>,
}

/// A record kept beyond its page.
#[derive(Clone, Debug, Default)]
pub struct CarriedRecord {
    text: Vec<u8>,
    offsets: Option<FieldOffsets>,
}

/// Labels that are kept from record to record.
const KEPT: usize = 1000;

impl LinePlan {
    /// No lines.
    pub fn new(clock: TimeColumn) -> LinePlan {
        let (steps, begun, whos, labels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        LinePlan { clock, steps, begun, before: CarriedRecord::default(), whos, labels }
    }

    /// Forgets all, but keeps the memory.
    pub fn clear(&mut self) {
        self.next();
        self.whos.clear();
        self.labels.clear();
    }

    /// Forgets the lines. Labels are kept for the next ones, unless they are many.
    pub fn next(&mut self) {
        self.steps.clear();
        self.begun.clear();
        if self.whos.len() > KEPT {
            self.whos.clear();
            self.labels.clear();
        }
    }

    /// Whether there is no label.
    pub fn is_fresh(&self) -> bool {
        self.whos.is_empty()
    }

    /// Adds a label; `put` appends its text and returns how many bytes of it take no column.
    pub fn label(&mut self, put: impl FnOnce(&mut Vec<u8>) -> usize) -> u32 {
        let hidden = put(&mut self.labels);
        self.whos.push((self.labels.len(), hidden));
        self.whos.len() as u32 - 1
    }

    /// Whose line it is.
    pub fn who(&self, step: &PlannedLine) -> LineLabel<'_> {
        let at = step.who as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.whos[before].0);
        let (end, hidden) = self.whos[at];
        LineLabel { text: &self.labels[start..end], hidden }
    }

    /// The record with that number, if it is one.
    pub fn record<'a>(&'a self, page: &RecordPage<'a>, number: u32) -> Option<Fields<'a>> {
        match (number as usize).checked_sub(1) {
            Some(place) => page[place].ok(),
            None => self.before.fields(),
        }
    }
}

impl CarriedRecord {
    /// Keeps a copy.
    pub fn keep(&mut self, fields: &Fields) {
        self.text.clear();
        self.text.extend_from_slice(fields.line());
        self.offsets = Some(fields.offsets());
    }

    /// The record, if there is one.
    pub fn fields(&self) -> Option<Fields<'_>> {
        Some(Fields::with_offsets(&self.text, self.offsets?))
    }
}
