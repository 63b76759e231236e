//! What the threads that merge do with the records.

use crate::filter::Filter;
use crate::merge::OrderedSection;
use crate::output::{RecordFormatter, TextFormat, TimelineFormatter};

/// How they show them.
pub enum ConcurrentStage {
    /// As they are.
    Nothing,
    /// Each for itself.
    PerRecord(Box<dyn RecordFormatter>),
    /// For people, batch by batch.
    Text(Box<TextFormat>),
}

impl ConcurrentStage {
    /// Whether records stay as they are.
    pub fn is_idle(&self) -> bool {
        matches!(self, ConcurrentStage::Nothing)
    }

    /// Appends to `out` what is shown of those of `lines` that are wanted.
    pub fn show(&self, filter: &Filter, lines: &[u8], turn: OrderedSection, out: &mut Vec<u8>) {
        match self {
            ConcurrentStage::Nothing => filter.select(lines, |line| out.extend_from_slice(line)),
            ConcurrentStage::PerRecord(view) => filter.select(lines, |line| view.record(line, out)),
            ConcurrentStage::Text(text) => {
                let mut batch = text.batch();
                filter.select(lines, |line| batch.push(line));
                text.show(batch, turn, out);
            }
        }
    }

    /// Appends what stands before the first record.
    pub fn head(&self, out: &mut Vec<u8>) {
        if let ConcurrentStage::PerRecord(view) = self {
            view.head(out);
        }
    }

    /// Appends what stands behind the last one.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if let ConcurrentStage::Text(text) = self {
            text.end(out);
        }
    }
}
