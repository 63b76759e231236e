//! The tables of `events.tsv` and `functions.tsv`: every event with its columns, every traced C function with its event.

/// The names of the categories, as in `THR_TRACE_EVENTS`; the index is the category's number.
///
/// Category 0, the trace itself, is always on, and `THR_TRACE_EVENTS` does not accept its name.
pub const CATEGORIES: [&str; 14] = [
    "trace",
    "thread",
    "mutex",
    "cond",
    "sema",
    "rwlock",
    "rmutex",
    "barrier",
    "barrier_spin",
    "spin",
    "futex",
    "process",
    "user",
    "func",
];

/// The category of the trace itself.
pub const TRACE: u8 = 0;
/// The category of threads.
pub const THREAD: u8 = 1;
/// The category of mutexes that are not recursive.
pub const MUTEX: u8 = 2;
/// The category of condition variables.
pub const COND: u8 = 3;
/// The category of semaphores.
pub const SEMA: u8 = 4;
/// The category of reader-writer locks.
pub const RWLOCK: u8 = 5;
/// The category of recursive mutexes, whose events mirror those of category [`MUTEX`].
pub const RMUTEX: u8 = 6;
/// The category of barriers.
pub const BARRIER: u8 = 7;
/// The category of barriers whose threads spin.
pub const BARRIER_SPIN: u8 = 8;
/// The category of spin locks.
pub const SPIN: u8 = 9;
/// The category of futexes.
pub const FUTEX: u8 = 10;
/// The category of processes.
pub const PROCESS: u8 = 11;
/// The category of what the program itself records.
pub const USER: u8 = 12;
/// Numbers of [`USER`] from this one on have the rows of the table; those below are the program's.
pub const USER_EVENTS: u8 = 90;
/// The category of the program's functions.
pub const FUNC: u8 = 13;

/// How a column's value is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// Decimal, with a minus where negative: an `int`, an errno value, a truth value.
    Signed,
    /// Decimal: a count, a size, a key.
    Unsigned,
    /// `0x` and lower-case hex without leading zeros; `0` for zero: an address, a bit set.
    Hex,
    /// A thread ID: `0x` and at least twelve hex digits, as in the record's own `tid`; `0` for zero.
    Thread,
}

/// One argument column of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in `events.tsv`; `rval` is what the function returned, 0 or an errno value.
    pub name: &'static str,
    /// How its value is printed.
    pub base: Base,
}

/// When a record's time is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stamp {
    /// Before the call: the record is of something that the thread gives away.
    Before,
    /// After the call: the record is of something that the thread obtains.
    After,
}

/// Which calls of an event `THR_TRACE_LEVEL=blocked` records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// All of them.
    Always,
    /// Those that had to wait.
    Blocked,
    /// Those that failed.
    Failed,
    /// Those that found a waiter.
    Waiters,
    /// None.
    Never,
}

/// How a record changes the number of locks (mutexes, rwlocks and spin locks) that its thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockEffect {
    /// It does not.
    None,
    /// The thread holds one more if the call succeeded.
    Acquires {
        /// The index of the argument that is 0 if the call succeeded; 5 if the call cannot fail.
        rval: usize,
    },
    /// The thread holds one less if the call succeeded.
    Releases {
        /// The index of the argument that is 0 if the call succeeded; 5 if the call cannot fail.
        rval: usize,
    },
}

/// The lock effect of the record kind with these numbers and columns.
const fn lock_effect_of(category: u8, number: u8, which: u8, columns: &[Option<Column>; 5]) -> LockEffect {
    let mut rval = 0;
    while rval < 5 {
        if let Some(column) = columns[rval]
            && matches!(column.name.as_bytes(), b"rval")
        {
            break;
        }
        rval += 1;
    }
    match (category, number, which) {
        (MUTEX | RMUTEX, 2 | 30, 2) | (MUTEX | RMUTEX, 3, 0) => LockEffect::Acquires { rval },
        (RWLOCK, 2 | 3 | 30 | 31, 2) | (RWLOCK, 5 | 6, 0) => LockEffect::Acquires { rval },
        (SPIN, 2, 2) | (SPIN, 3, 0) => LockEffect::Acquires { rval },
        (MUTEX | RMUTEX | RWLOCK | SPIN, 4, 0) => LockEffect::Releases { rval },
        _ => LockEffect::None,
    }
}

/// One kind of record that an event makes: a row of `events.tsv`.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordKind {
    /// Bytes 52-59 of the record, `event1:event2:which:`.
    pub event_text: [u8; 8],
    /// 0 for the only record of a call, 1 for the first of two, 2 for the second.
    pub which: u8,
    /// When its time is read.
    pub stamp: Stamp,
    /// Which calls `THR_TRACE_LEVEL=blocked` records.
    pub level: Level,
    /// The columns a1 to a5. A `None` is printed as 0, unless `THR_TRACE_DETAIL` fills it.
    pub columns: [Option<Column>; 5],
    /// How it changes the number of locks that its thread holds.
    pub lock_effect: LockEffect,
    /// The bases in which the encoder writes a1 to a5. An empty column has the base of the value with which `THR_TRACE_DETAIL`
    /// fills it.
    pub(crate) bases: [Base; 5],
}

impl RecordKind {
    /// A record kind. `const`, so that the encoder's text and bases are read-only data of the program.
    pub const fn new(
        category: u8,
        number: u8,
        which: u8,
        stamp: Stamp,
        level: Level,
        columns: [Option<Column>; 5],
    ) -> RecordKind {
        // THR_TRACE_DETAIL fills empty columns with counts and keys, the last one with an address; if that has the result, the one
        // before it.
        let fourth = if columns[3].is_none() && columns[4].is_some() { Base::Hex } else { Base::Unsigned };
        let mut bases = [Base::Unsigned, Base::Unsigned, Base::Unsigned, fourth, Base::Hex];
        let mut index = 0;
        while index < 5 {
            if let Some(column) = columns[index] {
                bases[index] = column.base;
            }
            index += 1;
        }
        let event_text = [
            b'0' + category / 10,
            b'0' + category % 10,
            b':',
            b'0' + number / 10,
            b'0' + number % 10,
            b':',
            b'0' + which,
            b':',
        ];
        RecordKind {
            event_text,
            which,
            stamp,
            level,
            columns,
            lock_effect: lock_effect_of(category, number, which, &columns),
            bases,
        }
    }
}

impl RecordKind {
    /// A record kind of a program's own: its columns are signed numbers without names.
    pub const fn of_user(number: u8, which: u8) -> RecordKind {
        let kind = RecordKind::new(USER, number, which, Stamp::Before, Level::Always, [None; 5]);
        RecordKind { bases: [Base::Signed; 5], ..kind }
    }
}

/// One event, which makes one or two kinds of records.
#[derive(Debug)]
pub struct Event {
    /// Its category, `event1`.
    pub category: u8,
    /// Its number within the category, `event2`.
    pub number: u8,
    /// Its name, unique in the table.
    pub name: &'static str,
    /// The kinds of its records: one (which 0), or two (which 1 and 2).
    pub kinds: &'static [RecordKind],
}

/// An event's place in [`EVENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId(pub(crate) u8);

impl EventId {
    /// The place as an index, which is less than `EVENTS.len()`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The event at this place.
    pub fn event(self) -> &'static Event {
        &EVENTS[self.index()]
    }
}

/// One traced C function: a row of `functions.tsv`.
#[derive(Debug)]
pub struct Function {
    /// Its name in C; of a function's old version beside the default one, `pthread_kill@GLIBC_2.2.5`.
    pub symbol: &'static str,
    /// What the library exports, in the notation of linkers: `fork`, which is any version, or a default version,
    /// `pthread_kill@@GLIBC_2.34`, or an old one, `pthread_kill@GLIBC_2.2.5`.
    pub export: &'static str,
    /// The event that a call of it records.
    pub event: EventId,
    /// The name under which the next function is looked up, in the same notation.
    pub next: &'static str,
    /// Its C prototype.
    pub prototype: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

impl Event {
    /// The event with these numbers, if the table has one.
    pub fn find(category: u8, number: u8) -> Option<&'static Event> {
        let key = (category, number);
        EVENTS.binary_search_by_key(&key, |event| (event.category, event.number)).ok().map(|index| &EVENTS[index])
    }

    /// The record kind with this `which`, if the event has one.
    pub fn kind(&self, which: u8) -> Option<&'static RecordKind> {
        self.kinds.iter().find(|kind| kind.which == which)
    }
}

#[cfg(test)]
mod tests {
    use super::event_numbers::{USER_COUNTER, USER_MARK, USER_OBJECT, USER_SPAN};
    use super::*;

    #[test]
    fn events_are_found_by_number() {
        for (index, event) in EVENTS.iter().enumerate() {
            assert!(core::ptr::eq(Event::find(event.category, event.number).unwrap(), &EVENTS[index]));
        }
        assert!(Event::find(2, 99).is_none());
        let names = [USER_SPAN, USER_MARK, USER_COUNTER, USER_OBJECT]
            .map(|(category, number)| Event::find(category, number).unwrap().name);
        assert_eq!(names, ["user_span", "user_mark", "user_counter", "user_object"]);
    }

    #[test]
    fn an_event_has_one_record_or_a_pair() {
        for event in &EVENTS {
            let which: Vec<u8> = event.kinds.iter().map(|kind| kind.which).collect();
            assert!(which == [0] || which == [1, 2], "{}: {which:?}", event.name);
        }
    }

    #[test]
    fn recursive_mutexes_mirror_mutexes() {
        let of = |category| EVENTS.iter().filter(move |event| event.category == category);
        for (plain, recursive) in of(MUTEX).zip(of(RMUTEX)) {
            assert_eq!(format!("r{}", plain.name), recursive.name);
            assert_eq!(plain.number, recursive.number);
        }
        assert_eq!(of(MUTEX).count(), of(RMUTEX).count());
    }

    #[test]
    fn lock_effects_belong_to_the_records_of_locks_and_unlocks() {
        let names = |wanted: fn(LockEffect) -> bool| {
            let kinds = EVENTS.iter().flat_map(|event| event.kinds.iter().map(move |kind| (event.name, kind)));
            kinds
                .filter(|(_, kind)| wanted(kind.lock_effect))
                .map(|(name, kind)| format!("{name} {}", kind.which))
                .collect()
        };
        let acquires: Vec<String> = names(|lock_effect| matches!(lock_effect, LockEffect::Acquires { .. }));
        let releases: Vec<String> = names(|lock_effect| matches!(lock_effect, LockEffect::Releases { .. }));
        assert_eq!(releases, ["mutex_unlock 0", "rw_unlock 0", "rmutex_unlock 0", "spin_unlock 0"]);
        let locks = ["mutex_lock 2", "mutex_trylock 0", "mutex_timedlock 2", "rw_rdlock 2", "rw_wrlock 2"];
        let rwlocks = ["rw_tryrdlock 0", "rw_trywrlock 0", "rw_timedrdlock 2", "rw_timedwrlock 2"];
        let others = ["rmutex_lock 2", "rmutex_trylock 0", "rmutex_timedlock 2", "spin_lock 2", "spin_trylock 0"];
        assert_eq!(acquires, [&locks[..], &rwlocks, &others].concat());
        assert_eq!(id::MUTEX_LOCK_2.lock_effect, LockEffect::Acquires { rval: 0 });
        assert_eq!(id::MUTEX_TRYLOCK_0.lock_effect, LockEffect::Acquires { rval: 1 });
        assert_eq!(id::SPIN_LOCK_2.lock_effect, LockEffect::Acquires { rval: 5 });
    }

    #[test]
    fn the_numbers_of_unixware_do_not_change() {
        assert_eq!(&id::MUTEX_LOCK_1.event_text, b"02:02:1:");
        assert_eq!(&id::COND_TIMEDWAIT_2.event_text, b"03:05:2:");
        assert_eq!(&id::RMUTEX_UNLOCK_0.event_text, b"06:04:0:");
        assert_eq!(&id::THR_GETSPECIFIC_0.event_text, b"01:21:0:");
    }
}
