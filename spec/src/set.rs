//! Sets of events: the lists of `THR_TRACE_EVENTS` and of trace-cat's `-e`.

use crate::tables::{CATEGORIES, EVENTS, EventId, FUNC};

/// A set of events.
///
/// An event that the table does not have (a program's own, of category `user`) is in the set if its category is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSet {
    events: [u64; 2],
    categories: u16,
}

const _: () = assert!(EVENTS.len() <= 128 && CATEGORIES.len() <= 16);

impl EventSet {
    /// Only the events of category 0, the trace itself, which are in every set.
    pub const NONE: EventSet = EventSet { events: [0; 2], categories: 1 };
    /// Every event.
    pub const ALL: EventSet = EventSet { events: [u64::MAX; 2], categories: u16::MAX };
    /// What is recorded unless a list names events: all but functions, of which there are too many.
    pub const DEFAULT: EventSet = {
        let EventSet { mut events, categories } = EventSet::ALL;
        let mut index = 0;
        while index < EVENTS.len() {
            if EVENTS[index].category == FUNC {
                events[(index / 64) & 1] &= !(1 << (index % 64));
            }
            index += 1;
        }
        EventSet { events, categories: categories & !(1 << FUNC) }
    };

    /// The set that a list of categories and events describes, with colons or commas between them.
    ///
    /// `mutex:cond_wait` names a category and a single event. A leading `-` takes a name away, and a list whose first
    /// name has one starts with all events. UnixWare's names, with an underscore in front (`_spin_lock`), are accepted.
    /// `unknown` is called with each name that is neither a category nor an event.
    pub fn parse<'a>(list: &'a [u8], unknown: &mut dyn FnMut(&'a [u8])) -> EventSet {
        EventSet::parse_with(EventSet::ALL, list, unknown)
    }

    /// The same for a list of events to record: one whose first name has a `-` starts with [`EventSet::DEFAULT`].
    pub fn parse_recorded<'a>(list: &'a [u8], unknown: &mut dyn FnMut(&'a [u8])) -> EventSet {
        EventSet::parse_with(EventSet::DEFAULT, list, unknown)
    }

    fn parse_with<'a>(all: EventSet, list: &'a [u8], unknown: &mut dyn FnMut(&'a [u8])) -> EventSet {
        let mut set = if list.first() == Some(&b'-') { all } else { EventSet::NONE };
        for item in list.split(|&byte| matches!(byte, b':' | b',')).filter(|item| !item.is_empty()) {
            let (name, wanted) = match item {
                [b'-', name @ ..] => (name, false),
                name => (name, true),
            };
            let name = name.strip_prefix(b"_").unwrap_or(name);
            if let Some(category) = CATEGORIES.iter().skip(1).position(|category| category.as_bytes() == name) {
                set.set_category(category + 1, wanted);
            } else if let Some(index) = EVENTS.iter().position(|event| event.name.as_bytes() == name) {
                set.set_event(index, wanted);
            } else {
                unknown(item);
            }
        }
        set
    }

    fn set_category(&mut self, category: usize, wanted: bool) {
        let bit = 1 << category;
        self.categories = if wanted { self.categories | bit } else { self.categories & !bit };
        for (index, event) in EVENTS.iter().enumerate() {
            if usize::from(event.category) == category {
                self.set_event(index, wanted);
            }
        }
    }

    fn set_event(&mut self, index: usize, wanted: bool) {
        let bit = 1 << (index % 64);
        let word = &mut self.events[(index / 64) & 1];
        *word = if wanted { *word | bit } else { *word & !bit };
    }

    /// True if the event is in the set.
    pub fn contains(&self, id: EventId) -> bool {
        id.event().category == 0 || self.events[(id.index() / 64) & 1] >> (id.index() % 64) & 1 == 1
    }

    /// True if the event with these numbers is in the set.
    pub fn contains_numbers(&self, category: u8, number: u8) -> bool {
        match EVENTS.binary_search_by_key(&(category, number), |event| (event.category, event.number)) {
            Ok(index) => self.contains(EventId(index as u8)),
            Err(_) => category < 16 && self.categories >> category & 1 == 1,
        }
    }

    /// The set as words, for [`EventSet::from_words`].
    pub fn words(&self) -> [u64; 3] {
        [self.events[0], self.events[1], self.categories.into()]
    }

    /// A set from words; any are valid.
    pub fn from_words([first, second, categories]: [u64; 3]) -> EventSet {
        EventSet { events: [first, second], categories: categories as u16 | EventSet::NONE.categories }
    }

    /// True if the set has only the events of category 0.
    pub fn is_none(&self) -> bool {
        EVENTS.iter().enumerate().all(|(index, event)| event.category == 0 || !self.contains(EventId(index as u8)))
            && self.categories & !1 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id;

    fn parsed(list: &str) -> (EventSet, Vec<String>) {
        let mut unknown = Vec::new();
        let set = EventSet::parse(list.as_bytes(), &mut |name| unknown.push(String::from_utf8(name.to_vec()).unwrap()));
        (set, unknown)
    }

    #[test]
    fn categories_and_events() {
        let (set, unknown) = parsed("mutex:cond_wait");
        assert!(unknown.is_empty());
        assert!(set.contains(id::MUTEX_LOCK) && set.contains(id::COND_WAIT));
        assert!(!set.contains(id::COND_SIGNAL) && !set.contains(id::RMUTEX_LOCK));
        assert!(set.contains(id::TRACE_LOST));
        assert_eq!(parsed("mutex,cond_wait"), parsed("mutex:cond_wait"));
        assert_eq!(parsed("-thr_self,-cond:"), parsed("-thr_self:-cond"));
    }

    #[test]
    fn a_list_that_starts_with_minus_starts_from_all() {
        let (set, _) = parsed("-thr_self:-cond");
        assert!(!set.contains(id::THR_SELF) && !set.contains(id::COND_WAIT) && set.contains(id::MUTEX_LOCK));
        assert!(set.contains_numbers(12, 5));
        let (set, _) = parsed("thread:-thr_self");
        assert!(!set.contains(id::THR_SELF) && set.contains(id::THR_JOIN) && !set.contains(id::MUTEX_LOCK));
    }

    #[test]
    fn functions_are_recorded_only_where_they_are_named() {
        let recorded = |list: &str| EventSet::parse_recorded(list.as_bytes(), &mut |name| panic!("{name:?}"));
        for (list, expected) in
            [("-cond", false), ("-cond:func", true), ("func", true), ("mutex", false), ("-func", false)]
        {
            assert_eq!(recorded(list).contains(id::FUNC_ENTER), expected, "{list}");
        }
        assert_eq!(recorded("-func"), EventSet::DEFAULT);
        assert!(EventSet::DEFAULT.contains(id::MUTEX_LOCK) && !EventSet::DEFAULT.contains_numbers(13, 7));
        assert!(parsed("-cond").0.contains(id::FUNC_LEAVE));
    }

    #[test]
    fn underscored_names_mean_the_same() {
        let (set, unknown) = parsed("_spin_lock:_barrier");
        assert!(unknown.is_empty());
        assert!(set.contains(id::SPIN_LOCK) && set.contains(id::BARRIER_WAIT));
    }

    #[test]
    fn unknown_names_are_reported_and_ignored() {
        let (set, unknown) = parsed("mutexes:-what:mutex");
        assert_eq!(unknown, ["mutexes", "-what"]);
        assert!(set.contains(id::MUTEX_LOCK));
    }

    #[test]
    fn an_empty_list_is_none() {
        assert!(parsed("").0.is_none());
        assert!(!parsed("user").0.is_none());
        assert!(parsed("user").0.contains_numbers(12, 99));
        assert!(!parsed("").0.contains_numbers(200, 200));
    }
}
