//! Records of threads that cannot get a slot yet, because the process's files are being made: by the thread itself, which a
//! signal handler has interrupted there, or by another one that does not go on. They are kept until there is a slot for them.
//!
//! An entry is one thread's from the moment in which that has stored its LWP there, and can be read once it has a number. Whoever
//! marks the number as [`TAKEN`] has the record, and frees the entry when it is somewhere else: should a jump leave that, the record
//! is still here. No two records have the same number.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use spec::RecordKind;
use spec::encode::UntimedRecord;

/// A record that has no slot yet.
pub struct KeptRecord {
    /// The thread whose record it is; 0 if the entry is free.
    lwp: AtomicU32,
    /// Greater than those of the thread's earlier records; 0 until the others are stored.
    number: AtomicU64,
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

/// How many records were kept.
static KEPT: AtomicU64 = AtomicU64::new(0);

impl KeptRecord {
    const fn new() -> KeptRecord {
        KeptRecord {
            lwp: AtomicU32::new(0),
            number: AtomicU64::new(0),
            tid: AtomicU64::new(0),
            time: AtomicU64::new(0),
            kind: AtomicPtr::new(null_mut()),
            arguments: [const { AtomicU64::new(0) }; 5],
        }
    }

    fn store(&self, record: &Kept) {
        self.tid.store(record.tid, Relaxed);
        self.time.store(record.time, Relaxed);
        self.kind.store((&raw const *record.line.kind).cast_mut(), Relaxed);
        self.arguments.iter().zip(record.line.arguments).for_each(|(word, value)| word.store(value, Relaxed));
        // ORDERING: Release pairs with the Acquire in `number_of`: who sees the number sees the record.
        self.number.store(1 + KEPT.fetch_add(1, Relaxed), Release);
    }

    /// Its number, if it is a complete record of a thread that is meant.
    fn number_of(&self, is_meant: impl Fn(u32) -> bool) -> Option<u64> {
        let number = self.number.load(Acquire);
        let lwp = self.lwp.load(Relaxed);
        (number != 0 && number & TAKEN == 0 && lwp != 0 && is_meant(lwp)).then_some(number)
    }

    /// Marks the record with this number as taken and returns it; `None` if another thread has.
    fn take(&self, number: u64) -> Option<Kept> {
        // ORDERING: Acquire pairs with the Release in `store`.
        self.number.compare_exchange(number, number | TAKEN, Acquire, Relaxed).ok()?;
        // SAFETY: `store` has put a reference to a static there before it stored the number.
        let kind = unsafe { &*self.kind.load(Relaxed) };
        let line = UntimedRecord { kind, arguments: self.arguments.each_ref().map(|word| word.load(Relaxed)) };
        let (lwp, tid, time) = (self.lwp.load(Relaxed), self.tid.load(Relaxed), self.time.load(Relaxed));
        Some(Kept { lwp, tid, time, line })
    }

    fn free(&self) {
        self.number.store(0, Relaxed);
        // ORDERING: Release pairs with the Acquire in `keep`: the entry's next user stores after this has read.
        self.lwp.store(0, Release);
    }
}

/// Keeps a record; `false` if there is no room.
pub fn keep(record: &Kept) -> bool {
    let free = RECORDS.iter().find(|entry| entry.lwp.compare_exchange(0, record.lwp, Acquire, Relaxed).is_ok());
    free.is_some_and(|entry| {
        entry.store(record);
        true
    })
}

/// Gives `put` the first record of the threads that are meant, and forgets it afterwards; `None` if there is none.
pub fn move_first<R>(is_meant: impl Fn(u32) -> bool, put: impl FnOnce(Kept) -> R) -> Option<R> {
    while KEPT.load(Relaxed) != 0 {
        let numbered = RECORDS.iter().filter_map(|entry| Some((entry.number_of(&is_meant)?, entry)));
        let (number, first) = numbered.min_by_key(|(number, _)| *number)?;
        if let Some(record) = first.take(number) {
            let result = put(record);
            first.free();
            return Some(result);
        }
    }
    None
}

/// Lets the records be taken again that threads which are `gone` were putting somewhere else, or have left by a jump.
pub fn take_back(is_gone: impl Fn(u32) -> bool) {
    for entry in RECORDS.iter().filter(|entry| entry.number.load(Relaxed) & TAKEN != 0) {
        if is_gone(entry.lwp.load(Relaxed)) {
            entry.number.fetch_and(!TAKEN, Relaxed);
        }
    }
}

/// Whether there are records that nobody has taken out.
pub fn has_some() -> bool {
    KEPT.load(Relaxed) != 0 && RECORDS.iter().any(|entry| entry.number_of(|_| true).is_some())
}

/// Forgets all records, in a forked child: they are its parent's.
pub fn forget() {
    for entry in &RECORDS {
        entry.number.store(0, Relaxed);
        entry.lwp.store(0, Relaxed);
    }
    KEPT.store(0, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::id;

    #[test]
    fn records_are_kept_in_order_until_their_thread_takes_them() {
        let kept = |lwp, number| {
            let line = UntimedRecord { kind: &id::SEMA_POST_0, arguments: [number, 0, 0, 0, 0] };
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
        assert!(kept(2, 0));
        forget();
        assert_eq!(take(2), None);
    }
}
