//! A value for each event, found without a search.

/// How many numbers a category can have, and an event within its category: two digits.
const NUMBERS: u8 = 100;

/// A value for each category and each number of an event within it.
#[derive(Debug)]
pub struct EventTable<T>(Box<[T]>);

impl<T: Copy + Default> EventTable<T> {
    /// Calls `value` with each category and number, and makes a table of the results.
    pub fn new(value: impl Fn(u8, u8) -> T) -> EventTable<T> {
        let value = &value;
        EventTable((0..NUMBERS).flat_map(|category| (0..NUMBERS).map(move |number| value(category, number))).collect())
    }

    /// The value of an event; the default if a number has more than two digits.
    pub fn get(&self, category: u8, number: u8) -> T {
        let index = usize::from(category) * usize::from(NUMBERS) + usize::from(number);
        self.0.get(index).copied().unwrap_or_default()
    }
}
