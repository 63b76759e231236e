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
pub enum WaitRule {
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

impl WaitRule {
    fn of(event: &Event) -> WaitRule {
        let [first, second] = event.kinds else { return WaitRule::Never };
        let column = |form: &spec::RecordKind, names: &[&str]| {
            let at = form.columns.iter().position(|column| column.is_some_and(|column| names.contains(&column.name)));
            at.map(|at| at as u8)
        };
        if let Some(at) = column(second, &["block?"]) {
            return WaitRule::SecondNotZero(at);
        }
        if let Some(at) = column(first, &["s_count"]) {
            return WaitRule::FirstZero(at);
        }
        if let Some(at) = column(first, &["b_count", "bs_count"]) {
            return WaitRule::FirstNotOne(at);
        }
        match event.name {
            "cond_wait" | "cond_timedwait" | "cond_clockwait" => WaitRule::Always,
            "thr_join" | "thr_timedjoin" | "thr_once" => WaitRule::Later,
            "futex_wait" => WaitRule::SecondNotAgain(0),
            _ => WaitRule::Never,
        }
    }

    /// What a record says for itself: whether the call waited, as far as this is asked of this record.
    pub fn record_shows_wait(self, which: u8, line: &[u8]) -> bool {
        let text = |at: u8| columns::argument(line, usize::from(at));
        match (self, which) {
            (WaitRule::FirstZero(at), 1) => text(at) == b"0",
            (WaitRule::FirstNotOne(at), 1) => text(at) != b"1",
            (WaitRule::SecondNotZero(at), 2) => text(at) != b"0",
            (WaitRule::SecondNotAgain(at), 2) => text(at) != b"11",
            _ => false,
        }
    }

    /// Whether a call waited whose records say this, and which lasted so many nanoseconds.
    pub fn waited(self, first: bool, second: bool, lasted: u64) -> bool {
        match self {
            WaitRule::Never => false,
            WaitRule::Always => true,
            WaitRule::Later => lasted > 0,
            WaitRule::FirstZero(_) | WaitRule::FirstNotOne(_) => first,
            WaitRule::SecondNotZero(_) | WaitRule::SecondNotAgain(_) => second,
        }
    }

    /// Whether a call can wait at all; if it does not end, it does.
    pub fn can_wait(self) -> bool {
        self != WaitRule::Never
    }
}

/// The rule of each event.
#[derive(Debug)]
pub struct WaitRules(Box<[WaitRule]>);

impl WaitRules {
    /// Those of the table.
    pub fn new() -> WaitRules {
        let mut rules = vec![WaitRule::Never; 100 * 100].into_boxed_slice();
        for event in &EVENTS {
            rules[place(event.category, event.number)] = WaitRule::of(event);
        }
        WaitRules(rules)
    }

    /// The rule of one event.
    pub fn rule(&self, category: u8, number: u8) -> WaitRule {
        self.0.get(place(category, number)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_the_table_has_the_rule_that_is_meant() {
        let waits = WaitRules::new();
        for event in EVENTS.iter().filter(|event| event.kinds.len() == 2) {
            let expected = match event.name {
                "thr_create" | "futex_op" | "proc_fork" | "proc_exec" => WaitRule::Never,
                "thr_join" | "thr_timedjoin" | "thr_once" => WaitRule::Later,
                "cond_wait" | "cond_timedwait" | "cond_clockwait" => WaitRule::Always,
                "sema_wait" | "sema_timedwait" => WaitRule::FirstZero(1),
                "barrier_wait" | "barrier_spin_wait" => WaitRule::FirstNotOne(1),
                "spin_lock" => WaitRule::SecondNotZero(0),
                "futex_wait" => WaitRule::SecondNotAgain(0),
                name if name.contains("mutex_") || name.starts_with("rw_") => WaitRule::SecondNotZero(1),
                name => panic!("what of {name}?"),
            };
            assert_eq!(waits.rule(event.category, event.number), expected, "{}", event.name);
        }
        assert_eq!(
            (waits.rule(2, 4), waits.rule(12, 1), waits.rule(255, 255)),
            (WaitRule::Never, WaitRule::Never, WaitRule::Never)
        );
    }
}
