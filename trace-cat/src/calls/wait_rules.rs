//! Which calls waited.
//!
//! A column of the event decides where the table has one for it, and the kind of call elsewhere:
//!
//! | calls | waited if |
//! |---|---|
//! | locks (mutex, rmutex, rwlock, spin) | `block?` of the return record is not 0 |
//! | waits for a semaphore | `s_count` of the entry record is 0: there was no token |
//! | waits at a barrier | `b_count` of the entry record is not 1: other threads were missing |
//! | waits for a condition | always |
//! | futex_wait | the error is not EAGAIN: the word had the expected value |
//! | futex_op | the operation is one that locks or waits, because the kernel is called only when that takes a wait |
//! | joins, thr_once | the return record is later than the entry record |
//! | all others | never |

use spec::{Event, RecordKind};

use crate::record::columns;
use crate::record::event_table::EventTable;
use crate::record::fields::bits;
use crate::record::futex_operations::may_wait;

/// How the records of an event's calls show whether these waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitRule {
    /// They never wait.
    #[default]
    Never,
    /// They always wait.
    Always,
    /// They waited if the return record is later than the entry record.
    Later,
    /// They waited if this column of the entry record is 0.
    EntryZero(u8),
    /// They waited if this column of the entry record is not 1.
    EntryNotOne(u8),
    /// They waited if this column of the return record is not 0.
    ReturnNotZero(u8),
    /// They waited if this column of the return record is not EAGAIN.
    ReturnNotAgain(u8),
    /// They waited if this column of the entry record is an operation of futex(2) that may wait.
    EntryMayWait(u8),
}

impl WaitRule {
    fn of(event: &Event) -> WaitRule {
        let [entry, returned] = event.kinds else { return WaitRule::Never };
        let column = |kind: &RecordKind, names: &[&str]| {
            let index =
                kind.columns.iter().position(|column| column.is_some_and(|column| names.contains(&column.name)));
            index.map(|index| index as u8)
        };
        if let Some(index) = column(returned, &["block?"]) {
            return WaitRule::ReturnNotZero(index);
        }
        if let Some(index) = column(entry, &["s_count"]) {
            return WaitRule::EntryZero(index);
        }
        if let Some(index) = column(entry, &["b_count", "bs_count"]) {
            return WaitRule::EntryNotOne(index);
        }
        if let (Some(index), "futex_op") = (column(entry, &["op"]), event.name) {
            return WaitRule::EntryMayWait(index);
        }
        if let (Some(index), "futex_wait") = (column(returned, &["errno"]), event.name) {
            return WaitRule::ReturnNotAgain(index);
        }
        match event.name {
            "cond_wait" | "cond_timedwait" | "cond_clockwait" => WaitRule::Always,
            "thr_join" | "thr_timedjoin" | "thr_once" => WaitRule::Later,
            _ => WaitRule::Never,
        }
    }

    /// True if this rule is about this record of a call, and the record shows that the call waited.
    pub fn record_shows_wait(self, which: u8, line: &[u8]) -> bool {
        let text = |index: u8| columns::argument(line, usize::from(index));
        match (self, which) {
            (WaitRule::EntryZero(index), 1) => text(index) == b"0",
            (WaitRule::EntryNotOne(index), 1) => text(index) != b"1",
            (WaitRule::ReturnNotZero(index), 2) => text(index) != b"0",
            (WaitRule::ReturnNotAgain(index), 2) => text(index) != b"11",
            (WaitRule::EntryMayWait(index), 1) => may_wait(bits(text(index))),
            _ => false,
        }
    }

    /// True if a call waited that lasted `duration` nanoseconds, and whose records show this (see
    /// [`record_shows_wait`](WaitRule::record_shows_wait)).
    pub fn waited(self, entry_shows_wait: bool, return_shows_wait: bool, duration: u64) -> bool {
        match self {
            WaitRule::Never => false,
            WaitRule::Always => true,
            WaitRule::Later => duration > 0,
            WaitRule::EntryZero(_) | WaitRule::EntryNotOne(_) | WaitRule::EntryMayWait(_) => entry_shows_wait,
            WaitRule::ReturnNotZero(_) | WaitRule::ReturnNotAgain(_) => return_shows_wait,
        }
    }

    /// True if a call can wait at all; then a call that does not end waits.
    pub fn can_wait(self) -> bool {
        self != WaitRule::Never
    }
}

/// The rules of all events.
pub fn wait_rules() -> EventTable<WaitRule> {
    EventTable::new(|category, number| Event::find(category, number).map_or(WaitRule::Never, WaitRule::of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::EVENTS;

    #[test]
    fn every_event_with_two_records_has_the_intended_rule() {
        let waits = wait_rules();
        for event in EVENTS.iter().filter(|event| event.kinds.len() == 2) {
            let expected = match event.name {
                "trace_stack" | "thr_create" | "thr_sleep" | "user_span" | "proc_fork" | "proc_exec" => WaitRule::Never,
                "thr_join" | "thr_timedjoin" | "thr_once" => WaitRule::Later,
                "cond_wait" | "cond_timedwait" | "cond_clockwait" => WaitRule::Always,
                "sema_wait" | "sema_timedwait" => WaitRule::EntryZero(1),
                "barrier_wait" | "barrier_spin_wait" => WaitRule::EntryNotOne(1),
                "spin_lock" => WaitRule::ReturnNotZero(0),
                "futex_wait" => WaitRule::ReturnNotAgain(1),
                "futex_op" => WaitRule::EntryMayWait(1),
                name if name.contains("mutex_") || name.starts_with("rw_") => WaitRule::ReturnNotZero(1),
                name => panic!("no rule is expected for {name}"),
            };
            assert_eq!(waits.get(event.category, event.number), expected, "{}", event.name);
        }
        assert_eq!(
            (waits.get(2, 4), waits.get(12, 1), waits.get(255, 255)),
            (WaitRule::Never, WaitRule::Never, WaitRule::Never)
        );
    }
}
