//! The filters that one record decides: `-e`, `-p`, `-l` and `--tid`.

use spec::EventSet;

use crate::record::columns;

/// The conditions of `-e`, `-p`, `-l` and `--tid`. An empty list, or no table, is no condition.
#[derive(Debug)]
pub struct RecordFilter {
    pub events: Option<EventTable>,
    pub pids: Vec<u32>,
    pub lwps: Vec<u32>,
    pub tids: Vec<u64>,
}

impl RecordFilter {
    /// True if there is no condition.
    pub fn is_idle(&self) -> bool {
        let RecordFilter { events, pids, lwps, tids } = self;
        events.is_none() && pids.is_empty() && lwps.is_empty() && tids.is_empty()
    }

    /// True if the record `line` meets all conditions.
    pub fn wants(&self, line: &[u8]) -> bool {
        (self.pids.is_empty() || self.pids.contains(&columns::pid(line)))
            && (self.lwps.is_empty() || self.lwps.contains(&columns::lwpid(line)))
            && (self.tids.is_empty() || self.tids.contains(&columns::tid(line)))
            && self.events.as_ref().is_none_or(|events| events.contains(line))
    }
}

/// An [`EventSet`] as a table of all pairs of two-digit numbers.
#[derive(Debug)]
pub struct EventTable(Box<[bool]>);

impl EventTable {
    /// The table of `set`.
    pub fn new(set: EventSet) -> EventTable {
        EventTable((0..100 * 100).map(|pair| set.contains_numbers((pair / 100) as u8, (pair % 100) as u8)).collect())
    }

    fn contains(&self, line: &[u8]) -> bool {
        let (category, number, _) = columns::event(line);
        self.0.get(usize::from(category) * 100 + usize::from(number)).is_none_or(|&wanted| wanted)
    }
}
