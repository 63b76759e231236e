//! Records of threads that cannot get a slot yet, because the process's files are being made: by the thread itself, which a
//! signal handler has interrupted there, or by another one that does not go on; or by a vfork child, which makes none for its parent.
//! They are kept until there is a slot for them.
//!
//! An entry is one thread's from the moment in which that has stored its record's number there, marked as [`INCOMPLETE`], and can be
//! read once the mark is gone. Whoever marks the number as [`TAKEN`] has the record, and frees the entry when it is somewhere else:
//! should a jump leave that, the record is still here. No two records have the same number.
//!
//! A forked child inherits its parent's records. Its own are those with greater numbers than the one that it notes before its first,
//! in a word that the kernel wipes: so it may keep some at any time, and has nothing to forget.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use spec::RecordKind;
use spec::encode::UntimedRecord;

use crate::process_state::PROCESS;

/// A record that has no slot yet.
pub struct KeptRecord {
    /// Greater than those of the thread's earlier records; 0 if the entry is free.
    number: AtomicU64,
    /// The thread whose record it is.
    lwp: AtomicU32,
    tid: AtomicU64,
    /// A reading of the clock.
    time: AtomicU64,
    kind: AtomicPtr<RecordKind>,
    arguments: [AtomicU64; 5],
}

/// What a [`KeptRecord`] is about.
#[derive(Clone, Copy)]
pub struct Kept {
    pub lwp: u32,
    pub tid: u64,
    /// A reading of the clock.
    pub time: u64,
    pub line: UntimedRecord,
}

static RECORDS: [KeptRecord; 256] = [const { KeptRecord::new() }; 256];
/// Set in the number of a record that is being put somewhere else.
const TAKEN: u64 = 1 << 63;

/// Set in the number of a record that is being stored.
const INCOMPLETE: u64 = 1 << 62;

/// The last number that was given.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

impl KeptRecord {
    const fn new() -> KeptRecord {
        KeptRecord {
            number: AtomicU64::new(0),
            lwp: AtomicU32::new(0),
            tid: AtomicU64::new(0),
            time: AtomicU64::new(0),
            kind: AtomicPtr::new(null_mut()),
            arguments: [const { AtomicU64::new(0) }; 5],
        }
    }

    /// Stores a record with this number; `false` if the entry is not free.
    fn store(&self, number: u64, since: u64, record: &Kept) -> bool {
        let before = self.number.load(Relaxed);
        // A parent's record that is not complete is one that the parent's thread, which is this one, may still return into.
        let is_free = before == 0 || before & INCOMPLETE == 0 && before & !TAKEN < since;
        // ORDERING: Acquire pairs with the Release in `free`: the last user of the entry has read what is stored now.
        if !is_free || self.number.compare_exchange(before, number | INCOMPLETE, Acquire, Relaxed).is_err() {
            return false;
        }
        self.lwp.store(record.lwp, Relaxed);
        self.tid.store(record.tid, Relaxed);
        self.time.store(record.time, Relaxed);
        self.kind.store((&raw const *record.line.kind).cast_mut(), Relaxed);
        self.arguments.iter().zip(record.line.arguments).for_each(|(word, value)| word.store(value, Relaxed));
        // ORDERING: Release pairs with the Acquire in `number_of`: who sees the number sees the record.
        self.number.store(number, Release);
        true
    }

    /// Its number, if it is a complete record of a thread of this process that is meant.
    fn number_of(&self, is_meant: impl Fn(u32) -> bool) -> Option<u64> {
        let (number, since) = (self.number.load(Acquire), PROCESS.kept_since.load(Relaxed));
        let is_own = since != 0 && number > since && number & (TAKEN | INCOMPLETE) == 0;
        (is_own && is_meant(self.lwp.load(Relaxed))).then_some(number)
    }

    /// Marks the record with this number as taken and returns it; `None` if another thread has.
    fn take(&self, number: u64) -> Option<Kept> {
        // ORDERING: Acquire pairs with the Release in `store`.
        self.number.compare_exchange(number, number | TAKEN, Acquire, Relaxed).ok()?;
        Some(self.read())
    }

    /// The record, whose number has been seen.
    fn read(&self) -> Kept {
        // SAFETY: `store` has put a reference to a static there before it stored the number.
        let kind = unsafe { &*self.kind.load(Relaxed) };
        let line = UntimedRecord { kind, arguments: self.arguments.each_ref().map(|word| word.load(Relaxed)) };
        let (lwp, tid, time) = (self.lwp.load(Relaxed), self.tid.load(Relaxed), self.time.load(Relaxed));
        Kept { lwp, tid, time, line }
    }

    /// Frees the entry of the record with this number, unless a forked child that returns into this has used it for its own.
    fn free(&self, number: u64) {
        // ORDERING: Release pairs with the Acquire in `store`: the entry's next user stores after this has read.
        let _ = self.number.compare_exchange(number | TAKEN, 0, Release, Relaxed);
    }
}

/// Notes which number the records of this process begin with, if it has kept none.
pub fn begin_keeping() {
    if PROCESS.kept_since.load(Relaxed) == 0 {
        let since = 1 + LAST_NUMBER.fetch_add(1, Relaxed);
        let _ = PROCESS.kept_since.compare_exchange(0, since, Relaxed, Relaxed);
    }
}

/// Keeps a record; `false` if there is no room. [`begin_keeping`] has been called.
pub fn keep(record: &Kept) -> bool {
    let since = PROCESS.kept_since.load(Relaxed);
    let number = 1 + LAST_NUMBER.fetch_add(1, Relaxed);
    // A child that a signal handler forks returns into this. What it notes later is greater than the number.
    PROCESS.kept_since.load(Relaxed) != since || RECORDS.iter().any(|entry| entry.store(number, since, record))
}

/// Gives `put` the first record of the threads that are meant, and forgets it afterwards; `None` if there is none.
pub fn move_first<R>(is_meant: impl Fn(u32) -> bool, put: impl FnOnce(Kept) -> R) -> Option<R> {
    while PROCESS.kept_since.load(Relaxed) != 0 {
        let numbered = RECORDS.iter().filter_map(|entry| Some((entry.number_of(&is_meant)?, entry)));
        let (number, first) = numbered.min_by_key(|(number, _)| *number)?;
        if let Some(record) = first.take(number) {
            let result = put(record);
            first.free(number);
            return Some(result);
        }
    }
    None
}

/// Gives `read` the first record that has a greater number than `after`, and returns its number; `None` if there is none.
pub fn read_next(after: u64, read: impl FnOnce(Kept)) -> Option<u64> {
    let numbered = RECORDS.iter().filter_map(|entry| Some((entry.number_of(|_| true)?, entry)));
    let (number, next) = numbered.filter(|(number, _)| *number > after).min_by_key(|(number, _)| *number)?;
    read(next.read());
    Some(number)
}

/// Lets the records be taken again that threads which are `gone` were putting somewhere else, or have left by a jump.
pub fn take_back(is_gone: impl Fn(u32) -> bool) {
    let since = PROCESS.kept_since.load(Relaxed);
    if since == 0 {
        return;
    }
    for entry in &RECORDS {
        let number = entry.number.load(Relaxed);
        let is_own = number & !TAKEN > since;
        if number & TAKEN != 0 && is_own && is_gone(entry.lwp.load(Relaxed)) {
            let _ = entry.number.compare_exchange(number, number & !TAKEN, Relaxed, Relaxed);
        }
    }
}

/// Whether there are records that nobody has taken out.
pub fn has_some() -> bool {
    PROCESS.kept_since.load(Relaxed) != 0 && RECORDS.iter().any(|entry| entry.number_of(|_| true).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::id;

    #[test]
    fn records_are_kept_in_order_until_their_thread_takes_them() {
        let kept = |lwp, number| {
            let line = UntimedRecord { kind: &id::SEMA_POST_0, arguments: [number, 0, 0, 0, 0] };
            begin_keeping();
            keep(&Kept { lwp, tid: 1, time: 2, line })
        };
        let take = |lwp: u32| move_first(|other| other == lwp, |record| record.line.arguments[0]);
        assert!((0..200).all(|number| kept(1 + number as u32 % 2, number)));
        assert_eq!([take(1), take(1), take(2), take(3)], [Some(0), Some(2), Some(1), None]);
        // A free entry before used ones is taken first.
        assert!((200..259).all(|number| kept(1, number)) && !kept(1, 0), "room for 256");
        let rest: Vec<_> = core::iter::from_fn(|| take(1)).collect();
        let expected: Vec<_> = (4..200).step_by(2).chain(200..259).collect();
        assert_eq!(rest, expected);
        // A jump leaves the record that is being put somewhere.
        assert!(kept(3, 300) && kept(3, 301));
        let left = RECORDS.iter().find(|entry| entry.lwp.load(Relaxed) == 3).unwrap();
        left.take(left.number_of(|_| true).unwrap()).unwrap();
        assert_eq!(take(3), Some(301));
        take_back(|lwp| lwp == 2);
        assert_eq!(take(3), None);
        take_back(|lwp| lwp == 3);
        assert_eq!([take(3), take(3)], [Some(300), None]);
        // A forked child finds the word wiped. It has the room of its parent's records, but for one that is not complete.
        assert!(kept(2, 0) && kept(2, 1));
        RECORDS.iter().find(|entry| entry.lwp.load(Relaxed) == 2).unwrap().number.fetch_or(INCOMPLETE, Relaxed);
        PROCESS.kept_since.store(0, Relaxed);
        assert_eq!((has_some(), take(2)), (false, None));
        assert!((0..255).all(|number| kept(2, number)) && !kept(2, 0), "room for 255");
        assert_eq!(core::iter::from_fn(|| take(2)).collect::<Vec<_>>(), (0..255).collect::<Vec<_>>());
        assert!(!has_some());
    }
}
