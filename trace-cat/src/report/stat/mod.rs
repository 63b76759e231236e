//! `--stat`: counts the records that the filters want; nothing else is printed.
//!
//! Memory grows with threads, events and objects, not with records. The number of objects is limited.

mod counts;
mod tables;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::process_info::processes_in_directory;
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
        let mut processes = HashMap::new();
        for process in self.directories.iter().flat_map(|directory| processes_in_directory(directory)) {
            if let Entry::Vacant(place) = processes.entry(process.pid) {
                place.insert(process);
            }
        }
        self.count_open_calls();
        tables::append_tables(self, &processes, out);
    }
}

#[cfg(test)]
mod tests;
