//! Which column of a record has what its call returned.

use spec::EVENTS;
use spec::event_numbers::THR_ONCE;

/// The values that show misuse.
const ERRORS: [i32; 4] = [libc::EINVAL, libc::EPERM, libc::EDEADLK, libc::ESRCH];
/// Categories from threads to spin locks are those of pthread functions.
const CATEGORIES: usize = 10;
const NUMBERS: usize = 64;

/// By category, event and record of the call: the index of the column, or none.
#[derive(Debug)]
pub struct ErrorColumns(Box<[[[u8; 3]; NUMBERS]; CATEGORIES]>);

/// The index of no column.
const NONE: u8 = 5;

impl ErrorColumns {
    pub fn new() -> ErrorColumns {
        let mut columns = Box::new([[[NONE; 3]; NUMBERS]; CATEGORIES]);
        // The column of pthread_once says who ran the routine.
        for event in EVENTS.iter().filter(|event| (event.category, event.number) != THR_ONCE) {
            for kind in event.kinds {
                let names = kind.columns.iter().map(|column| column.map_or("", |column| column.name));
                let index = names.into_iter().position(|name| matches!(name, "rval" | "errno"));
                let place = columns
                    .get_mut(event.category as usize)
                    .and_then(|numbers| numbers.get_mut(event.number as usize))
                    .filter(|_| event.category > 0);
                if let (Some(index), Some(place)) = (index, place) {
                    place[kind.which as usize] = index as u8;
                }
            }
        }
        ErrorColumns(columns)
    }

    /// The errno value of a record, if it shows misuse.
    pub fn error(&self, event: (u8, u8), which: u8, arguments: &[u64; 5]) -> Option<u8> {
        let column = *self.0.get(event.0 as usize)?.get(event.1 as usize)?.get(which as usize)?;
        let value = *arguments.get(column as usize)?;
        // Nearly all calls succeed.
        (value != 0 && ERRORS.iter().any(|error| *error as u64 == value)).then_some(value as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_in_the_column_of_what_was_returned() {
        let columns = ErrorColumns::new();
        let [invalid, once] = [libc::EINVAL as u64, 1];
        assert_eq!(columns.error((2, 2), 2, &[35, 0, 0, 0, 0]), Some(35));
        assert_eq!(columns.error((1, 3), 2, &[0, 0, 3, 0, 0]), Some(3));
        assert_eq!(columns.error((4, 1), 0, &[0, 0, 0, 0, invalid]), Some(22));
        assert_eq!(columns.error((2, 4), 0, &[1, 1, 0, 0, 0]), Some(1));
        let nothing = [((1, 38), 2, [once, 0, 0, 0, 0]), ((2, 2), 1, [1; 5]), ((2, 3), 0, [0, 16, 0, 0, 0])];
        for (event, which, arguments) in nothing {
            assert_eq!(columns.error(event, which, &arguments), None, "{event:?}");
        }
        assert_eq!(columns.error((10, 1), 2, &[1, 1, 1, 1, 1]), None);
        assert_eq!(columns.error((12, 99), 0, &[1; 5]), None);
    }
}
