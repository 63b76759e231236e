//! Which of the merged records are wanted.
//!
//! `--since` and `--until` decide which slices are merged at all. [`Filter`] decides about each merged record, in many
//! threads, and [`LineLimit`] counts the selected records, in order.

mod batch_note;
mod call_filter;
mod line_limit;
mod needed_records;
mod open_call_table;
mod record_filter;
mod selected_records;
mod streaming_filter;

use std::io;

use crate::calls::process_ends::{EndingRecord, ProcessEnds};
use crate::merge::Merge;
use crate::options::Selection;
use crate::record::call_stack::{StackOwners, is_stack};
use crate::record::columns;
use call_filter::{CallFilter, CallFilterCursor};
pub use line_limit::LineLimit;
pub use needed_records::NeededRecords;
pub use open_call_table::OpenCallTable;
use record_filter::RecordFilter;
pub use streaming_filter::StreamingFilter;

/// The conditions that records have to meet.
#[derive(Debug)]
pub struct Filter {
    records: RecordFilter,
    calls: Option<CallFilter>,
}

impl Filter {
    /// The conditions of `selection`.
    pub fn new(selection: &Selection) -> Filter {
        Filter { records: RecordFilter::new(selection), calls: CallFilter::new(selection) }
    }

    /// True if every record is selected.
    pub fn accepts_all(&self) -> bool {
        self.records.accepts_all() && self.calls.is_none()
    }

    /// Reads the trace once if a condition is about calls, to find which records belong to the calls that meet it. `running` are
    /// the processes that run, each with the present in the time of its records.
    pub fn prepare(&mut self, merge: &Merge, running: &[(u32, u64)]) -> io::Result<()> {
        let Filter { records, calls } = self;
        let ends = ProcessEnds::with_running(running.iter().copied());
        calls.as_mut().map_or(Ok(()), |calls| calls.prepare(merge, ends, &|line| records.wants(line)))
    }

    /// The selected calls without a return record, and how many more might meet the conditions if no record was lost.
    pub fn open_calls(&self) -> (OpenCallTable, u64) {
        self.calls
            .as_ref()
            .map(CallFilter::open_calls)
            .map_or_else(Default::default, |(table, more)| (table.clone(), more))
    }

    /// Gives the selected ones of `lines`, which are in order and have all records of their times, to `put`. Stacks are selected with
    /// their records.
    pub fn select<'a>(&self, lines: &'a [u8], mut put: impl FnMut(&'a [u8])) {
        if self.accepts_all() {
            return columns::lines(lines).for_each(put);
        }
        let mut cursor = self.calls.as_ref().map(|calls| calls.cursor(lines));
        let mut owners = StackOwners::default();
        for line in columns::lines(lines) {
            if is_stack(line) {
                if owners.own(line) {
                    put(line);
                }
                continue;
            }
            // Conditions on calls do not hide losses.
            let is_loss = || EndingRecord::of(columns::event(line)) == Some(EndingRecord::Loss);
            let wants = |cursor: &mut CallFilterCursor| is_loss() || cursor.wants(line);
            if self.records.wants(line) && cursor.as_mut().is_none_or(wants) {
                owners.add(line, ());
                put(line);
            }
        }
    }

    /// Whether records were selected without an error.
    pub fn result(self) -> io::Result<()> {
        self.calls.map_or(Ok(()), CallFilter::result)
    }
}

#[cfg(test)]
mod call_filter_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use spec::EventSet;

    const LINES: [&str; 4] = [
        "1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n",
        "1795174740:544763329:0019956:0019953:0x7fc5de3f86c0:03:04:1:0x559469ed90a0:0:0:0:0\n",
        "1795174740:544763329:0000007:0000007:0x7fc5de3f86c0:12:05:0:0:0:0:0:0\n",
        "1795174740:544763329:0000007:0000007:0x7fc5de3f86c0:00:01:0:5:28:0:0:0\n",
    ];

    fn wanted(events: Option<&str>, pids: &[u32], lwps: &[u32]) -> Vec<usize> {
        let events = events.map(|list| EventSet::parse(list.as_bytes(), &mut |_| panic!("unknown name")));
        let filter = Filter::new(&Selection { events, pids: pids.into(), lwps: lwps.into(), ..Selection::default() });
        (0..LINES.len()).filter(|&line| filter.records.wants(LINES[line].as_bytes())).collect()
    }

    #[test]
    fn each_filter_and_all_together() {
        assert_eq!(wanted(None, &[], &[]), [0, 1, 2, 3]);
        assert_eq!(wanted(None, &[19953], &[]), [0, 1]);
        assert_eq!(wanted(None, &[19953, 7], &[19956, 7]), [1, 2, 3]);
        assert_eq!(wanted(Some("mutex_lock"), &[], &[]), [0, 3], "loss records are always selected");
        assert_eq!(wanted(Some("-cond"), &[], &[]), [0, 2, 3]);
        assert_eq!(wanted(Some("user"), &[7], &[]), [2, 3]);
        assert_eq!(wanted(Some(""), &[19953], &[]), [0usize; 0]);
    }
}
