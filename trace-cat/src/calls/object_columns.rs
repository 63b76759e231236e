//! Which columns of a record are objects. `--object` compares these columns, and `--split object` makes a file for each value.

use spec::{Base, Column, Event};

use crate::record::columns;
use crate::record::event_table::EventTable;

/// The names of columns that are addresses of objects on which calls wait or work.
const ADDRESSES: [&str; 10] =
    ["mutex", "cond", "sem", "rwlock", "barrier", "spin", "once_control", "uaddr", "uaddr2", "object"];

/// True if a column is an object: an address, or a thread that something is done to.
pub fn is_object(column: &Column) -> bool {
    column.base == Base::Thread || ADDRESSES.contains(&column.name)
}

/// Which of a1 to a5 are objects: a bit for each, by event and kind of record.
#[derive(Debug)]
pub struct ObjectColumns(EventTable<[u8; 3]>);

impl ObjectColumns {
    /// The object columns of the table of events.
    pub fn new() -> ObjectColumns {
        ObjectColumns(EventTable::new(|category, number| {
            let kind = |which| Event::find(category, number)?.kind(which);
            [0, 1, 2].map(|which| {
                let columns = kind(which).map_or(&[None; 5], |kind| &kind.columns).iter().enumerate();
                columns.filter(|(_, column)| column.as_ref().is_some_and(is_object)).map(|(at, _)| 1 << at).sum()
            })
        }))
    }

    /// The objects that the record `line`, whose event is `event`, names.
    pub fn of<'a>(&self, event: (u8, u8, u8), line: &'a [u8]) -> impl Iterator<Item = u64> + use<'a> {
        let (category, number, which) = event;
        let bits = self.0.get(category, number).get(usize::from(which)).copied().unwrap_or(0);
        (0..5).filter(move |at| bits >> at & 1 == 1).map(|at| columns::hex(columns::argument(line, at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::EVENTS;

    #[test]
    fn every_hex_column_of_the_table_is_an_object_or_is_listed_as_another_value() {
        let other_values = [
            "mask",
            "name_id",
            "thread",
            "attr",
            "start_routine",
            "arg",
            "exit_status",
            "set",
            "oldset",
            "key_address",
            "destructor",
            "value",
            "init_routine",
            "name_0_7",
            "name_8_15",
            "cpus",
            "oflag",
            "mode",
            "name",
            "op",
            "call_site",
            "function",
            "frame_1",
            "frame_2",
            "frame_3",
            "frame_4",
            "frame_5",
        ];
        for event in &EVENTS {
            for column in event.kinds.iter().flat_map(|kind| kind.columns.iter().flatten()) {
                let hex = matches!(column.base, Base::Hex | Base::Thread);
                let known = is_object(column) || other_values.contains(&column.name);
                assert!(!hex || known, "is {} of {} an object?", column.name, event.name);
                assert!(hex || !is_object(column), "{} of {}", column.name, event.name);
            }
        }
    }

    #[test]
    fn all_objects_of_a_record_are_returned() {
        let objects = ObjectColumns::new();
        for (event, expected) in [
            ("03:04:1", &[0x10, 0x20][..]),
            ("03:04:2", &[]),
            ("02:04:0", &[0x10]),
            ("10:03:1", &[0x10, 0x40]),
            ("01:01:2", &[0x20]),
            ("01:03:1", &[0x10]),
            ("12:03:1", &[]),
            ("99:99:0", &[]),
        ] {
            let line =
                format!("1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:{event}:0x10:0x20:0x30:0x40:0x50\n");
            let event = columns::event(line.as_bytes());
            assert_eq!(objects.of(event, line.as_bytes()).collect::<Vec<_>>(), expected, "{line}");
        }
    }
}
