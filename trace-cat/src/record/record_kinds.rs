//! The rows of the table of events, found by a record's numbers.

use spec::event_numbers::{BARRIER_INIT, RW_UNLOCK, SEMA_INIT, THR_KEYCREATE};
use spec::record::EVENT_WIDTH;
use spec::tables::CATEGORIES;
use spec::{Column, EVENTS, Event};

use super::fields::Fields;

/// One record kind of an event.
#[derive(Clone, Copy, Debug)]
pub struct KnownKind {
    pub category: &'static str,
    pub event: &'static Event,
    /// 0 for the only record of a call, 1 for the first of two, 2 for the second.
    pub which: u8,
    /// a1 to a5.
    pub columns: &'static [Option<Column>; 5],
    /// How many columns there are up to the last that has a name.
    pub used: usize,
}

/// All record kinds, each found without a search.
#[derive(Debug)]
pub struct RecordKindTable {
    /// By [`place`]: 0 for none, else one more than the index in `kinds`.
    places: Box<[u16]>,
    pub kinds: Vec<KnownKind>,
}

/// How many numbers an event can have within its category.
const EVENT_NUMBERS: usize = 10usize.pow(EVENT_WIDTH as u32);
/// Places of all numbers, and three values of which.
const PLACES: usize = CATEGORIES.len() * EVENT_NUMBERS * 3;

fn place((event1, event2): (u8, u8), which: u8) -> usize {
    (usize::from(event1) * EVENT_NUMBERS + usize::from(event2)) * 3 + usize::from(which)
}

impl Default for RecordKindTable {
    fn default() -> RecordKindTable {
        let mut table = RecordKindTable { places: vec![0; PLACES].into(), kinds: Vec::new() };
        for event in &EVENTS {
            for kind in event.kinds {
                let used = kind.columns.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                let category = CATEGORIES[usize::from(event.category)];
                let (which, columns) = (kind.which, &kind.columns);
                table.kinds.push(KnownKind { category, event, which, columns, used });
                table.places[place((event.category, event.number), which)] = table.kinds.len() as u16;
            }
        }
        table
    }
}

impl RecordKindTable {
    /// The kind of a record, if it is in the table.
    pub fn find(&self, fields: &Fields) -> Option<&KnownKind> {
        self.kinds.get(self.index(fields)?)
    }

    /// The index of a record's kind in [`kinds`](RecordKindTable::kinds).
    pub fn index(&self, fields: &Fields) -> Option<usize> {
        let place = self.places.get(place(fields.event(), fields.which()))?;
        usize::from(*place).checked_sub(1)
    }
}

/// The name of the value that THR_TRACE_DETAIL puts into a column (0 for a1) without another use.
pub fn detail_name(event: (u8, u8), which: u8, index: usize) -> Option<&'static str> {
    match (event, which, index) {
        ((2 | 5 | 6, _), 1, 3) => Some("holder"),
        (RW_UNLOCK, 0, 3) => Some("write"),
        (THR_KEYCREATE, 0, 3) => Some("key"),
        // Their a5 is the result.
        (SEMA_INIT | BARRIER_INIT, 0, 3) => Some("caller"),
        (_, 0 | 1, 4) => Some("caller"),
        _ => None,
    }
}

/// The index of the column into which THR_TRACE_DETAIL puts the address of the caller; `None` if such records have none for it.
pub fn caller_column(event: (u8, u8), which: u8) -> Option<usize> {
    let kind = Event::find(event.0, event.1)?.kinds.iter().find(|kind| kind.which == which)?;
    let is_free = |index: usize| kind.columns[index].is_none();
    (0..kind.columns.len()).find(|&index| is_free(index) && detail_name(event, which, index) == Some("caller"))
}

/// The name of a category, or its number.
pub fn category_name(event1: u8) -> Vec<u8> {
    match CATEGORIES.get(usize::from(event1)) {
        Some(name) => name.as_bytes().to_vec(),
        None => event1.to_string().into_bytes(),
    }
}

/// A name for an event whose record kind is not in the table: the event's own if it has one, else `user.05`.
pub fn event_name(fields: &Fields) -> Vec<u8> {
    let (event1, event2) = fields.event();
    match Event::find(event1, event2) {
        Some(event) => event.name.as_bytes().to_vec(),
        None => [&category_name(event1)[..], format!(".{event2:02}").as_bytes()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_address_has_a_column_that_nothing_else_has() {
        let columns = [((2, 2), 1), ((2, 4), 0), ((4, 1), 0), ((7, 1), 0), ((4, 31), 0), ((2, 2), 2), ((12, 99), 0)];
        let expected = [Some(4), Some(4), Some(3), Some(3), None, None, None];
        assert_eq!(columns.map(|(event, which)| caller_column(event, which)), expected);
    }

    #[test]
    fn every_record_kind_is_found_and_nothing_else() {
        let table = RecordKindTable::default();
        let mut found = 0;
        for (event1, event2, which) in (0..100).flat_map(|a| (0..100).flat_map(move |b| (0..3).map(move |w| (a, b, w))))
        {
            let line = format!(
                "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:{event1:02}:{event2:02}:{which}:0:0:0:0:0"
            );
            let known = table.find(&Fields::new(line.as_bytes()).unwrap());
            let kind = Event::find(event1, event2).and_then(|event| event.kind(which));
            assert_eq!(known.map(|known| known.columns), kind.map(|kind| &kind.columns), "{event1} {event2} {which}");
            found += usize::from(known.is_some());
        }
        assert_eq!(found, table.kinds.len());
    }
}
