//! The formatting that the merging threads do.

use crate::filter::Filter;
use crate::merge::OrderedSection;
use crate::output::{RecordFormatter, TextFormat, TimelineFormatter};

/// How the merging threads format records.
pub enum ConcurrentStage {
    /// Not at all.
    Unchanged,
    /// Each record by itself.
    PerRecord(Box<dyn RecordFormatter>),
    /// As text for people, batch by batch.
    Text(Box<TextFormat>),
}

impl ConcurrentStage {
    /// Appends the selected ones of `lines` to `out` in their format. Returns whether any was selected.
    pub fn format(&self, filter: &Filter, lines: &[u8], section: OrderedSection, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        match self {
            ConcurrentStage::Unchanged => filter.select(lines, |line| out.extend_from_slice(line)),
            ConcurrentStage::PerRecord(formatter) => filter.select(lines, |line| formatter.record(line, out)),
            ConcurrentStage::Text(text) => {
                let (mut batch, mut is_empty) = (text.batch(), true);
                filter.select(lines, |line| {
                    is_empty = false;
                    batch.push(line);
                });
                text.show(batch, section, out);
                return !is_empty;
            }
        }
        out.len() > before
    }

    /// Appends the text before the first record.
    pub fn head(&self, out: &mut Vec<u8>) {
        if let ConcurrentStage::PerRecord(formatter) = self {
            formatter.head(out);
        }
    }

    /// Appends the text after the last record.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if let ConcurrentStage::Text(text) = self {
            text.end(out);
        }
    }
}
