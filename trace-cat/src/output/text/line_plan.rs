//! A plan of the lines of a batch of records: which lines there are, which thread each is of, and which earlier record it needs.
//! The plan depends on the records of earlier batches.

use super::known_threads::OpenCall;
use super::time_column::TimeColumn;
use crate::record::call_stack::CallStack;
use crate::record::fields::Fields;
use crate::record::validation::FieldOffsets;

/// The records of a batch, as their fields. A line that is not a record is there as it is.
pub type BatchRecords<'a> = [Result<Fields<'a>, &'a [u8]>];

/// One line, or the two lines of a call that does not fit into one.
#[derive(Clone, Copy, Debug)]
pub struct PlannedLine {
    /// The number of the record: 0 for the carried record, else one more than its index in the batch.
    pub record: u32,
    /// The number of the thread's label, for [`LinePlan::label`].
    pub label: u32,
    /// In how many spans and functions the line is.
    pub depth: u32,
    /// Whether an earlier line of another host may really be later.
    pub is_uncertain: bool,
    /// What the line shows.
    pub kind: LineKind,
}

/// What a line shows.
#[derive(Clone, Copy, Debug)]
pub enum LineKind {
    /// The only record of a call, or a line that is not a record.
    Single,
    /// The entry record of a call, which another record follows.
    Entry,
    /// The return record of a call, and the index of the call in [`LinePlan::open_calls`] if its entry record is known.
    Return(Option<u32>),
    /// Both records of a call: this return record, and the record before it.
    Complete,
}

/// The label of a thread as a line has it.
#[derive(Clone, Copy, Debug)]
pub struct LineLabel<'a> {
    /// The label with its colour, and the spaces after it.
    pub text: &'a [u8],
    /// Bytes of the text that take no column.
    pub hidden: usize,
    /// In how many spans and functions the line is.
    pub depth: u32,
    /// Whether an earlier line of another host may really be later.
    pub is_uncertain: bool,
}

/// The lines of a batch.
#[derive(Clone, Debug)]
pub struct LinePlan {
    /// The clock before the first line.
    pub clock: TimeColumn,
    pub lines: Vec<PlannedLine>,
    /// The calls that return in this batch and began before their last record.
    pub open_calls: Vec<OpenCall>,
    /// The entry record that was the last record before the batch, if the call has no line yet.
    pub carried: CarriedRecord,
    /// The numbers of records with a stack, in order, and their stacks.
    stacks: Vec<(u32, CallStack)>,
    /// For each [`LineLabel`]: the end of its text in `label_text`, and how many bytes of it take no column.
    labels: Vec<(usize, usize)>,
    label_text: Vec<u8>,
}

/// A record that is kept longer than its batch.
#[derive(Clone, Debug, Default)]
pub struct CarriedRecord {
    text: Vec<u8>,
    offsets: Option<FieldOffsets>,
    pub stack: CallStack,
}

/// The most labels that are kept from batch to batch.
const LABELS_MAX: usize = 1000;

impl LinePlan {
    pub fn new(clock: TimeColumn) -> LinePlan {
        let (lines, open_calls, labels, label_text) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        LinePlan { clock, lines, open_calls, carried: CarriedRecord::default(), stacks: Vec::new(), labels, label_text }
    }

    /// Removes lines and labels, but keeps the memory.
    pub fn clear(&mut self) {
        self.clear_lines();
        self.clear_labels();
    }

    /// Removes the lines. Labels are kept for the next lines, unless they are many.
    pub fn clear_lines(&mut self) {
        self.lines.clear();
        self.open_calls.clear();
        self.stacks.clear();
        if self.labels.len() > LABELS_MAX {
            self.clear_labels();
        }
    }

    fn clear_labels(&mut self) {
        self.labels.clear();
        self.label_text.clear();
    }

    /// Whether there is no label.
    pub fn has_no_labels(&self) -> bool {
        self.labels.is_empty()
    }

    /// Adds a label and returns its number. `append` appends its text and returns how many bytes of it take no column.
    pub fn add_label(&mut self, append: impl FnOnce(&mut Vec<u8>) -> usize) -> u32 {
        let hidden = append(&mut self.label_text);
        self.labels.push((self.label_text.len(), hidden));
        self.labels.len() as u32 - 1
    }

    pub fn label(&self, line: &PlannedLine) -> LineLabel<'_> {
        let index = line.label as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.labels[before].0);
        let (end, hidden) = self.labels[index];
        LineLabel { text: &self.label_text[start..end], hidden, depth: line.depth, is_uncertain: line.is_uncertain }
    }

    /// Adds a part of the stack of the record with this number.
    pub fn add_stack(&mut self, number: u32, which: u8, addresses: [u64; 5]) {
        let place = self.stacks.binary_search_by_key(&number, |(number, _)| *number).unwrap_or_else(|place| {
            self.stacks.insert(place, (number, CallStack::default()));
            place
        });
        self.stacks[place].1.add(which, addresses);
    }

    /// The stack of the record with this number, which has no frame if none is recorded.
    pub fn stack(&self, number: u32) -> Option<&CallStack> {
        if number == 0 {
            return Some(&self.carried.stack);
        }
        let place = self.stacks.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&self.stacks[place].1)
    }

    /// The record with this number; `None` if the line is not a record.
    pub fn record<'a>(&'a self, records: &BatchRecords<'a>, number: u32) -> Option<Fields<'a>> {
        match (number as usize).checked_sub(1) {
            Some(index) => records[index].ok(),
            None => self.carried.fields(),
        }
    }
}

impl CarriedRecord {
    /// Keeps a copy, with the stack.
    pub fn keep(&mut self, fields: &Fields, stack: Option<&CallStack>) {
        self.stack = stack.cloned().unwrap_or_default();
        self.text.clear();
        self.text.extend_from_slice(fields.line());
        self.offsets = Some(fields.offsets());
    }

    /// The record, if there is one.
    pub fn fields(&self) -> Option<Fields<'_>> {
        Some(Fields::with_offsets(&self.text, self.offsets?))
    }
}
