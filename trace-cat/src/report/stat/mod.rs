//! `--stat`: counts the records that the filters want; nothing else is printed.
//!
//! Memory grows with threads, events and objects, not with records. The number of objects is limited.

mod counts;
mod document;
mod tables;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::process_info::{ProcessInfo, processes_in_directory};
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
        let mut processes: HashMap<u32, ProcessInfo> = HashMap::new();
        for process in self.groups.chunk_by(|a, b| a.directory == b.directory).flat_map(|groups| {
            let processes = processes_in_directory(&groups[0].directory).into_iter();
            processes.filter(|process| groups.iter().any(|group| group.prefix == process.prefix))
        }) {
            match processes.entry(process.pid) {
                Entry::Vacant(place) => drop(place.insert(process)),
                // Records do not tell processes of one number apart.
                Entry::Occupied(known) if known.get().command != process.command => {
                    known.into_mut().command += &format!(", {}", process.command);
                }
                Entry::Occupied(_) => {}
            }
        }
        self.count_open_calls();
        let append = if self.as_document { document::append_document } else { tables::append_tables };
        append(self, &processes, out);
    }
}

#[cfg(test)]
mod tests;
