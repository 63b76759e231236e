//! Which of the merged records are wanted.
//!
//! ```text
//! record_filter      what one record decides: -e, -p, -l, --tid
//! call_filter        what both records of a call decide: --object, --blocked, --longer
//! selected_records   the records that call_filter selected, as many as there are
//! line_limit         how many: --head, --tail
//! streaming_filter   all of it for records that come as they are made: --follow
//! ```
//!
//! `--since` and `--until` decide which slices are merged at all. [`Filter`] is asked of each merged record, in many threads,
//! and [`LineLimit`] counts what is left, in order.

mod call_filter;
mod line_limit;
mod record_filter;
mod selected_records;
mod streaming_filter;

use std::io;

use memchr::memchr;

use crate::merge::Merge;
use crate::options::Selection;
use call_filter::{CallConditions, CallFilter};
pub use line_limit::LineLimit;
use record_filter::{EventTable, RecordFilter};
pub use streaming_filter::StreamingFilter;

/// What is asked of records. All must agree; what was not given agrees with everything.
#[derive(Debug)]
pub struct Filter {
    plain: RecordFilter,
    calls: Option<CallFilter>,
}

impl Filter {
    /// Lists that are empty ask for nothing in particular.
    pub fn new(selection: Selection) -> Filter {
        let Selection { events, pids, lwps, tids, objects, blocked, longer, .. } = selection;
        let question = CallConditions { objects, blocked, longer };
        Filter {
            plain: RecordFilter { events: events.map(EventTable::new), pids, lwps, tids },
            calls: (!question.is_idle()).then(|| CallFilter::new(question)),
        }
    }

    /// Whether everything is wanted.
    pub fn is_idle(&self) -> bool {
        let RecordFilter { events, pids, lwps, tids } = &self.plain;
        events.is_none() && pids.is_empty() && lwps.is_empty() && tids.is_empty() && self.calls.is_none()
    }

    /// Goes through the trace first, if that is needed to judge records.
    ///
    /// # Errors
    /// What a temporary file says.
    pub fn prepare(&mut self, merge: &Merge) -> io::Result<()> {
        let Filter { plain, calls } = self;
        calls.as_mut().map_or(Ok(()), |calls| calls.mark(merge, &|line| plain.wants(line)))
    }

    /// Gives those of `lines` to `put` that are wanted. `lines` are in order.
    pub fn select<'a>(&self, lines: &'a [u8], mut put: impl FnMut(&'a [u8])) {
        let mut cursor = self.calls.as_ref().map(|calls| calls.cursor(lines));
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &lines[at..]) {
            let line = &lines[at..at + length + 1];
            if self.plain.wants(line) && cursor.as_mut().is_none_or(|cursor| cursor.wants(line)) {
                put(line);
            }
            at += line.len();
        }
    }

    /// What went wrong while records were judged.
    ///
    /// # Errors
    /// What a temporary file said.
    pub fn result(&self) -> io::Result<()> {
        self.calls.as_ref().map_or(Ok(()), CallFilter::result)
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
        let filter = Filter::new(Selection { events, pids: pids.into(), lwps: lwps.into(), ..Selection::default() });
        (0..LINES.len()).filter(|&line| filter.plain.wants(LINES[line].as_bytes())).collect()
    }

    #[test]
    fn each_filter_and_all_together() {
        assert_eq!(wanted(None, &[], &[]), [0, 1, 2, 3]);
        assert_eq!(wanted(None, &[19953], &[]), [0, 1]);
        assert_eq!(wanted(None, &[19953, 7], &[19956, 7]), [1, 2, 3]);
        assert_eq!(wanted(Some("mutex_lock"), &[], &[]), [0, 3], "losses always show");
        assert_eq!(wanted(Some("-cond"), &[], &[]), [0, 2, 3]);
        assert_eq!(wanted(Some("user"), &[7], &[]), [2, 3]);
        assert_eq!(wanted(Some(""), &[19953], &[]), [0usize; 0]);
    }
}
