//! The filters that one record decides: `-e`, `-p`, `-l` and `--tid`.

use spec::EventSet;

use crate::record::columns;

/// What a record tells by itself: `-e`, `-p`, `-l` and `--tid`.
#[derive(Debug)]
pub struct RecordFilter {
    pub events: Option<EventTable>,
    pub pids: Vec<u32>,
    pub lwps: Vec<u32>,
    pub tids: Vec<u64>,
}

impl RecordFilter {
    /// Whether the record `line` is wanted.
    pub fn wants(&self, line: &[u8]) -> bool {
        (self.pids.is_empty() || self.pids.contains(&columns::pid(line)))
            && (self.lwps.is_empty() || self.lwps.contains(&columns::lwpid(line)))
            && (self.tids.is_empty() || self.tids.contains(&columns::tid(line)))
            && self.events.as_ref().is_none_or(|events| events.contains(line))
    }
}

/// An [`EventSet`] with an answer for each pair of two-digit numbers.
#[derive(Debug)]
pub struct EventTable(Box<[bool]>);

impl EventTable {
    /// The answers of `set`.
    pub fn new(set: EventSet) -> EventTable {
        EventTable((0..100 * 100).map(|pair| set.contains_numbers((pair / 100) as u8, (pair % 100) as u8)).collect())
    }

    fn contains(&self, line: &[u8]) -> bool {
        let (category, number, _) = columns::event(line);
        self.0.get(usize::from(category) * 100 + usize::from(number)).is_none_or(|&wanted| wanted)
    }
}
