//! What the table says of a record, found by its numbers.

use spec::tables::CATEGORIES;
use spec::{Column, EVENTS, Event};

use super::fields::Fields;

/// One form of an event.
#[derive(Clone, Copy, Debug)]
pub struct KnownKind {
    /// The category's name.
    pub category: &'static str,
    /// The event's name.
    pub name: &'static str,
    /// The event.
    pub event: &'static Event,
    /// 0 for the only record of a call, else 1 or 2.
    pub which: u8,
    /// a1 to a5.
    pub columns: &'static [Option<Column>; 5],
    /// How many of them there are up to the last that has a name.
    pub used: usize,
}

/// All forms, each to be found without a search.
#[derive(Debug)]
pub struct RecordKindTable {
    /// By [`place`]; 0 for none, else one more than the index in `forms`.
    places: Box<[u16]>,
    forms: Vec<KnownKind>,
}

/// Numbers of two digits, and three values of which.
const PLACES: usize = CATEGORIES.len() * 100 * 3;

fn place((event1, event2): (u8, u8), which: u8) -> usize {
    (usize::from(event1) * 100 + usize::from(event2)) * 3 + usize::from(which)
}

impl Default for RecordKindTable {
    fn default() -> RecordKindTable {
        let mut table = RecordKindTable { places: vec![0; PLACES].into(), forms: Vec::new() };
        for event in &EVENTS {
            for form in event.kinds {
                let used = form.columns.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                let category = CATEGORIES[usize::from(event.category)];
                table.forms.push(KnownKind {
                    category,
                    name: event.name,
                    event,
                    which: form.which,
                    columns: &form.columns,
                    used,
                });
                table.places[place((event.category, event.number), form.which)] = table.forms.len() as u16;
            }
        }
        table
    }
}

impl RecordKindTable {
    /// What is known of a record's event in this form, if it is in the table.
    pub fn find(&self, fields: &Fields) -> Option<&KnownKind> {
        self.forms.get(self.index(fields)?)
    }

    /// Where that is in [`forms`](Table::forms).
    pub fn index(&self, fields: &Fields) -> Option<usize> {
        let place = self.places.get(place(fields.event(), fields.which()))?;
        usize::from(*place).checked_sub(1)
    }

    /// All that is known.
    pub fn forms(&self) -> &[KnownKind] {
        &self.forms
    }
}

/// The name of a category, or its number.
pub fn category(event1: u8) -> Vec<u8> {
    match CATEGORIES.get(usize::from(event1)) {
        Some(name) => name.as_bytes().to_vec(),
        None => event1.to_string().into_bytes(),
    }
}

/// A name for an event whose form is not in the table: its own if it has one, else `user.05`.
pub fn name(fields: &Fields) -> Vec<u8> {
    match Event::find(fields.event().0, fields.event().1) {
        Some(event) => event.name.as_bytes().to_vec(),
        None => [&category(fields.event().0)[..], format!(".{:02}", fields.event().1).as_bytes()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_found_and_nothing_else() {
        let table = RecordKindTable::default();
        let mut found = 0;
        for (event1, event2, which) in (0..100).flat_map(|a| (0..100).flat_map(move |b| (0..3).map(move |w| (a, b, w))))
        {
            let line = format!(
                "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:{event1:02}:{event2:02}:{which}:0:0:0:0:0"
            );
            let known = table.find(&Fields::new(line.as_bytes()).unwrap());
            let form = Event::find(event1, event2).and_then(|event| event.kind(which));
            assert_eq!(known.map(|known| known.columns), form.map(|form| &form.columns), "{event1} {event2} {which}");
            found += usize::from(known.is_some());
        }
        assert_eq!(found, table.forms.len());
    }
}
