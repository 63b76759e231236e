//! What the threads that merge do with the records.

use crate::filter::Filter;
use crate::merge::Turn;
use crate::output::{Each, Text, View};

/// How they show them.
pub enum Early {
    /// As they are.
    Nothing,
    /// Each for itself.
    Each(Box<dyn Each>),
    /// For people, batch by batch.
    Text(Box<Text>),
}

impl Early {
    /// Whether records stay as they are.
    pub fn is_idle(&self) -> bool {
        matches!(self, Early::Nothing)
    }

    /// Appends to `out` what is shown of those of `lines` that are wanted.
    pub fn show(&self, filter: &Filter, lines: &[u8], turn: Turn, out: &mut Vec<u8>) {
        match self {
            Early::Nothing => filter.select(lines, |line| out.extend_from_slice(line)),
            Early::Each(view) => filter.select(lines, |line| view.record(line, out)),
            Early::Text(text) => {
                let mut batch = text.batch();
                filter.select(lines, |line| batch.push(line));
                text.show(batch, turn, out);
            }
        }
    }

    /// Appends what stands before the first record.
    pub fn head(&self, out: &mut Vec<u8>) {
        if let Early::Each(view) = self {
            view.head(out);
        }
    }

    /// Appends what stands behind the last one.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if let Early::Text(text) = self {
            text.end(out);
        }
    }
}
