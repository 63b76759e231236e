//! `--stat`: counts the records that the filters want; nothing else is printed.
//!
//! Memory grows with threads, events and objects, not with records. The number of objects is limited.

mod counts;
mod document;
mod tables;

use super::process_info::processes_in_groups;
use crate::output::TimelineFormatter;
use crate::record::fields::Fields;
pub use counts::TraceCounts;

impl TimelineFormatter for TraceCounts {
    fn record(&mut self, line: &[u8], _out: &mut Vec<u8>) {
        if let Some(fields) = Fields::new(line) {
            self.count(&fields);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let processes = processes_in_groups(&self.groups);
        self.count_open_calls();
        self.count_unreported_losses();
        let append = if self.as_document { document::append_document } else { tables::append_tables };
        append(self, &processes, out);
    }
}

#[cfg(test)]
mod tests;
