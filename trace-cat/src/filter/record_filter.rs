//! The filters that one record decides: `-e`, `-p`, `-l` and `--tid`.

use crate::options::Selection;
use crate::record::columns;
use crate::record::event_table::EventTable;

/// The conditions of `-e`, `-p`, `-l` and `--tid`. An empty list, or no table, is no condition.
#[derive(Debug)]
pub struct RecordFilter {
    excluded_events: Option<EventTable<bool>>,
    pids: Vec<u32>,
    lwps: Vec<u32>,
    tids: Vec<u64>,
}

impl RecordFilter {
    /// The conditions of `selection` that one record decides.
    pub fn new(selection: &Selection) -> RecordFilter {
        let Selection { events, pids, lwps, tids, .. } = selection.clone();
        let excluded_events =
            events.map(|set| EventTable::new(|category, number| !set.contains_numbers(category, number)));
        RecordFilter { excluded_events, pids, lwps, tids }
    }

    /// True if there is no condition.
    pub fn accepts_all(&self) -> bool {
        let RecordFilter { excluded_events, pids, lwps, tids } = self;
        excluded_events.is_none() && pids.is_empty() && lwps.is_empty() && tids.is_empty()
    }

    /// True if the record `line` meets all conditions.
    pub fn wants(&self, line: &[u8]) -> bool {
        (self.pids.is_empty() || self.pids.contains(&columns::pid(line)))
            && (self.lwps.is_empty() || self.lwps.contains(&columns::lwpid(line)))
            && (self.tids.is_empty() || self.tids.contains(&columns::tid(line)))
            && self.excluded_events.as_ref().is_none_or(|excluded| {
                let (category, number, _) = columns::event(line);
                !excluded.get(category, number)
            })
    }
}
