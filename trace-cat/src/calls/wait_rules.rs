//! Which calls waited.
//!
//! Where the table has a column for it, that decides; elsewhere what is known of the event does:
//!
//! | calls | waited if |
//! |---|---|
//! | locks (mutex, rmutex, rwlock, spin) | `block?` of the second record is not 0 |
//! | waits for a semaphore | `s_count` of the first is 0: there was no token |
//! | waits at a barrier | `b_count` of the first is not 1: others were still missing |
//! | waits for a condition | always |
//! | futex_wait | its result is not EAGAIN: the word was as expected |
//! | joins, thr_once | the second record is later than the first |
//! | all others | never |

use spec::{EVENTS, Event};

use super::object_columns::place;
use crate::record::columns;

/// How it is told of an event's calls whether they waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// They never do.
    #[default]
    Never,
    /// They always do.
    Always,
    /// If the second record is later than the first.
    Later,
    /// If this column of the first record is 0.
    FirstZero(u8),
    /// If this column of the first record is not 1.
    FirstNotOne(u8),
    /// If this column of the second record is not 0.
    SecondNotZero(u8),
    /// If this column of the second record is not EAGAIN.
    SecondNotAgain(u8),
}

impl Rule {
    fn of(event: &Event) -> Rule {
        let [first, second] = event.kinds else { return Rule::Never };
        let column = |form: &spec::RecordKind, names: &[&str]| {
            let at = form.columns.iter().position(|column| column.is_some_and(|column| names.contains(&column.name)));
            at.map(|at| at as u8)
        };
        if let Some(at) = column(second, &["block?"]) {
            return Rule::SecondNotZero(at);
        }
        if let Some(at) = column(first, &["s_count"]) {
            return Rule::FirstZero(at);
        }
        if let Some(at) = column(first, &["b_count", "bs_count"]) {
            return Rule::FirstNotOne(at);
        }
        match event.name {
            "cond_wait" | "cond_timedwait" | "cond_clockwait" => Rule::Always,
            "thr_join" | "thr_timedjoin" | "thr_once" => Rule::Later,
            "futex_wait" => Rule::SecondNotAgain(0),
            _ => Rule::Never,
        }
    }

    /// What a record says for itself: whether the call waited, as far as this is asked of this record.
    pub fn says(self, which: u8, line: &[u8]) -> bool {
        let text = |at: u8| columns::argument(line, usize::from(at));
        match (self, which) {
            (Rule::FirstZero(at), 1) => text(at) == b"0",
            (Rule::FirstNotOne(at), 1) => text(at) != b"1",
            (Rule::SecondNotZero(at), 2) => text(at) != b"0",
            (Rule::SecondNotAgain(at), 2) => text(at) != b"11",
            _ => false,
        }
    }

    /// Whether a call waited whose records say this, and which lasted so many nanoseconds.
    pub fn waited(self, first: bool, second: bool, lasted: u64) -> bool {
        match self {
            Rule::Never => false,
            Rule::Always => true,
            Rule::Later => lasted > 0,
            Rule::FirstZero(_) | Rule::FirstNotOne(_) => first,
            Rule::SecondNotZero(_) | Rule::SecondNotAgain(_) => second,
        }
    }

    /// Whether a call can wait at all; if it does not end, it does.
    pub fn can_wait(self) -> bool {
        self != Rule::Never
    }
}

/// The rule of each event.
#[derive(Debug)]
pub struct Waits(Box<[Rule]>);

impl Waits {
    /// Those of the table.
    pub fn new() -> Waits {
        let mut rules = vec![Rule::Never; 100 * 100].into_boxed_slice();
        for event in &EVENTS {
            rules[place(event.category, event.number)] = Rule::of(event);
        }
        Waits(rules)
    }

    /// The rule of one event.
    pub fn rule(&self, category: u8, number: u8) -> Rule {
        self.0.get(place(category, number)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_the_table_has_the_rule_that_is_meant() {
        let waits = Waits::new();
        for event in EVENTS.iter().filter(|event| event.kinds.len() == 2) {
            let expected = match event.name {
                "thr_create" | "futex_op" | "proc_fork" | "proc_exec" => Rule::Never,
                "thr_join" | "thr_timedjoin" | "thr_once" => Rule::Later,
                "cond_wait" | "cond_timedwait" | "cond_clockwait" => Rule::Always,
                "sema_wait" | "sema_timedwait" => Rule::FirstZero(1),
                "barrier_wait" | "barrier_spin_wait" => Rule::FirstNotOne(1),
                "spin_lock" => Rule::SecondNotZero(0),
                "futex_wait" => Rule::SecondNotAgain(0),
                name if name.contains("mutex_") || name.starts_with("rw_") => Rule::SecondNotZero(1),
                name => panic!("what of {name}?"),
            };
            assert_eq!(waits.rule(event.category, event.number), expected, "{}", event.name);
        }
        assert_eq!(
            (waits.rule(2, 4), waits.rule(12, 1), waits.rule(255, 255)),
            (Rule::Never, Rule::Never, Rule::Never)
        );
    }
}
