//! Objects: what is known of each, and its figures.

use spec::futex_locks::FutexLock;

use super::caller_sums::CallerSums;
use super::futex_state::PendingUnlock;
use super::histogram::DurationHistogram;
use super::occupancy::Occupancy;
use super::wait_blocks::WaitBlocks;
use super::wait_shares::Holder;
use super::waker::Waker;
use super::wakeups::Wakeups;

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    Mutex,
    Rmutex,
    Rwlock,
    Spin,
    Once,
    Cond,
    Sema,
    Barrier,
    Futex,
}

/// Whose threads waits for a lock have shown as its owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeenOwners {
    Own,
    /// A wait began without a call site, beside which the owner would be.
    Hidden,
    /// One was a thread of another process, or does not show in its own one's records.
    Elsewhere,
}

impl ObjectKind {
    pub const ALL: [ObjectKind; 9] = {
        use ObjectKind::{Barrier, Cond, Futex, Mutex, Once, Rmutex, Rwlock, Sema, Spin};
        [Mutex, Rmutex, Rwlock, Spin, Once, Cond, Sema, Barrier, Futex]
    };

    /// Waiting for it is contention, not idleness.
    pub fn is_lock(self) -> bool {
        use ObjectKind::{Mutex, Once, Rmutex, Rwlock, Spin};
        matches!(self, Mutex | Rmutex | Rwlock | Spin | Once)
    }

    /// How many bytes it has on x86-64.
    pub fn size(self) -> u64 {
        match self {
            ObjectKind::Mutex | ObjectKind::Rmutex => 40,
            ObjectKind::Rwlock => 56,
            ObjectKind::Cond => 48,
            ObjectKind::Sema | ObjectKind::Barrier => 32,
            ObjectKind::Spin | ObjectKind::Once | ObjectKind::Futex => 4,
        }
    }

    /// Its name, which is that of its category of events.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Mutex => "mutex",
            ObjectKind::Rmutex => "rmutex",
            ObjectKind::Rwlock => "rwlock",
            ObjectKind::Spin => "spin",
            ObjectKind::Once => "once",
            ObjectKind::Cond => "cond",
            ObjectKind::Sema => "sema",
            ObjectKind::Barrier => "barrier",
            ObjectKind::Futex => "futex",
        }
    }
}

/// An object during its life.
#[derive(Debug)]
pub struct ObjectState {
    /// The index of the process that used it first.
    pub process: u32,
    pub address: u64,
    /// How many objects this address has had, this one included.
    pub number: u32,
    pub kind: ObjectKind,
    /// Where it was initialised, or else first used.
    pub site: u32,
    /// The lock that all waits for a futex so far were in, if there was one.
    pub futex_lock: Option<Option<&'static FutexLock>>,
    /// The ID of the name that the program has given it, or 0.
    pub name: u64,
    /// The site is that of an initialisation.
    pub is_initialised: bool,
    /// Its process has initialised it, with a call site or without.
    pub is_made_here: bool,
    /// Processes share it: a semaphore that was opened, or initialised so.
    pub is_shared: bool,
    /// A lock that another process may have, whose holds this object does not show.
    pub may_be_held_elsewhere: bool,
    /// What waits for it have shown of its owners.
    pub owners: SeenOwners,
    /// It was initialised with attributes, or a semaphore for processes: it may be one for several.
    pub has_attributes: bool,
    /// The clock of a condition, if its initialisation is recorded.
    pub clock: Option<i32>,
    /// It was initialised without attributes, so that it is none for several processes.
    pub has_no_attributes: bool,
    /// A lock that a thread has unlocked which was not its owner: any thread may be the one that does so.
    pub is_handed_on: bool,
    /// A lock that a thread of a forked child has unlocked, while that of its ancestor which had it at the fork has not: it is handed on, unless
    /// each process has one of its own.
    pub may_be_handed_on: bool,
    /// An rwlock of which a thread has released a read lock that another one had taken.
    pub hands_on_readers: bool,
    /// A thread had it of which no release is recorded.
    pub has_lost_holds: bool,
    /// A mutex whose attributes are not known, which the next owner gets if its owner has ended.
    pub may_be_robust: bool,
    /// A call on it is recorded, in the selected time or not.
    pub is_called: bool,
    /// Its number, or that of the first object of the sum that it belongs to, and how many objects were added to that.
    pub first: u32,
    pub others: u32,
    /// A finding names it, or a wait for a condition that has not returned may acquire it.
    pub is_named: bool,
    pub cond_waits: u32,
    /// Threads took it while they held others, and others while they held it.
    pub is_inner: bool,
    pub is_outer: bool,
    pub occupancy: Occupancy,
    /// The waits and wake-ups of a condition, semaphore, barrier or futex word.
    pub wakeups: Wakeups,
    /// The thread that had it last.
    pub last_holder: Option<u32>,
    /// A release that may have happened.
    pub pending_unlock: Option<Box<PendingUnlock>>,
    /// The last release, if no later one is missing.
    pub last_release: Option<Waker>,
    /// The last one that ended an exclusive hold.
    pub last_exclusive_release: Option<Waker>,
    pub figures: ObjectFigures,
}

impl ObjectState {
    /// The lock in the code of which all waits for a futex were.
    pub fn futex_lock(&self) -> Option<&'static FutexLock> {
        self.futex_lock.flatten()
    }

    /// Takes a wait for a futex in the code of this lock, or elsewhere.
    pub fn note_futex_lock(&mut self, lock: Option<&'static FutexLock>) {
        let known = self.futex_lock.get_or_insert(lock);
        // One word may serve several locks and conditions.
        *known = known.filter(|known| lock.is_some_and(|lock| known.is_same_lock(lock)));
    }

    /// What the object is called: the lock that it is known to be, or else its kind.
    pub fn kind_name(&self) -> &'static str {
        self.futex_lock().map_or(self.kind.name(), |lock| lock.name)
    }

    pub fn new(process: u32, address: u64, number: u32, kind: ObjectKind, site: u32) -> ObjectState {
        ObjectState {
            process,
            address,
            number,
            kind,
            site,
            futex_lock: None,
            name: 0,
            is_initialised: false,
            is_made_here: false,
            is_shared: false,
            may_be_held_elsewhere: false,
            owners: SeenOwners::Own,
            has_attributes: false,
            clock: None,
            has_no_attributes: false,
            is_handed_on: false,
            may_be_handed_on: false,
            hands_on_readers: false,
            has_lost_holds: false,
            may_be_robust: false,
            is_called: false,
            first: 0,
            others: 0,
            is_named: false,
            cond_waits: 0,
            is_inner: false,
            is_outer: false,
            occupancy: Occupancy::default(),
            wakeups: Wakeups::default(),
            last_holder: None,
            pending_unlock: None,
            last_release: None,
            last_exclusive_release: None,
            figures: ObjectFigures::default(),
        }
    }

    /// Whether nobody knows who releases it, although it is known who has it.
    pub fn is_released_by_others(&self) -> bool {
        let has_readers = self.kind == ObjectKind::Rwlock && !self.occupancy.is_exclusive();
        if has_readers { self.hands_on_readers } else { self.has_no_certain_owner() }
    }

    /// Whether another thread than the one that has it for itself may be the one that releases it.
    pub fn has_no_certain_owner(&self) -> bool {
        self.is_handed_on || self.may_be_handed_on
    }

    /// Whether it may be in memory that processes share: it is not among the data of the program, nor in the heap behind that, which the kernel
    /// maps from two thirds of the address space on (ELF_ET_DYN_BASE, arch/x86/include/asm/elf.h).
    pub fn may_be_in_shared_memory(&self) -> bool {
        !(0x5555_5555_4000..0x6000_0000_0000).contains(&self.address)
    }

    /// Whether its process has initialised it as one for itself.
    fn is_made_private(&self) -> bool {
        self.is_made_here && self.has_no_attributes
    }

    /// Whether an object of another process at the same place in its page may be this one.
    pub fn may_be_same(&self, other: &ObjectState) -> bool {
        !(self.is_made_here && other.is_made_here || self.is_made_private() || other.is_made_private())
    }

    /// Its address and its kind, by which it is selected.
    pub fn identity(&self) -> (u64, ObjectKind) {
        (self.address, self.kind)
    }
}

impl ObjectState {
    /// Whether nothing tells it apart from other objects of its site, once it has ended: nobody waited for it, and no finding or
    /// cycle of locks can name it.
    pub fn may_be_summed_up(&self) -> bool {
        let is_waited_for = self.figures.wait.count() > 0 || self.cond_waits > 0;
        let is_quiet = self.occupancy.is_quiet() && self.wakeups.is_quiet();
        is_quiet && !(is_waited_for || self.is_shared || self.is_named || self.is_inner && self.is_outer)
    }

    /// When a thread last acquired or released it, or began one of its longest waits.
    pub fn last_use(&self) -> u64 {
        self.figures.worst.iter().map(|wait| wait.time).fold(self.occupancy.changed_at(), u64::max)
    }

    /// Forgets who released it: a later release may be missing.
    pub fn forget_releases(&mut self) {
        (self.last_release, self.last_exclusive_release) = (None, None);
    }
}

/// The figures of an object.
#[derive(Debug, Default)]
pub struct ObjectFigures {
    /// Calls on it; the mutex of a wait for a condition is not counted.
    pub calls: u64,
    /// The waits that ended or were open in the end.
    pub wait: DurationHistogram,
    /// When their time was, if that is asked for.
    pub wait_blocks: Option<Box<WaitBlocks>>,
    /// The time waited that is contention, and the time that is idleness.
    pub contention: u64,
    pub idleness: u64,
    /// How many of these were open.
    pub open_waits: u64,
    /// Tries that found it taken.
    pub failed_tries: u64,
    pub timeouts: u64,
    /// Acquisitions by another thread than the last one.
    pub owner_changes: u64,
    /// Holds whose end is known, or which lasted in the end.
    pub hold: DurationHistogram,
    /// Holds whose release is missing.
    pub lost_holds: u64,
    /// The most threads that waited at a time.
    pub max_waiters: u32,
    pub handoff: u64,
    pub unknown: u64,
    /// By holder: how long others waited.
    pub blamed: CallerSums<Holder>,
    /// The same of those that are not listed.
    pub blamed_others: u64,
    /// By the thread that ended waits, and where: how many.
    pub wakers: CallerSums<(u32, u32)>,
    /// Signals and broadcasts that no thread waited for.
    pub wasted_signals: u64,
    /// The longest waits, the longest first.
    pub worst: Vec<WorstWait>,
}

/// One of an object's longest waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstWait {
    /// When it began.
    pub time: u64,
    pub thread: u32,
    pub waited: u64,
    /// Who is to blame for most of it.
    pub holder: Option<u32>,
    /// Where the thread waited.
    pub site: u32,
}

/// How many of an object's longest waits are kept.
const WORST_MAX: usize = 5;

impl ObjectFigures {
    /// Whether there was a call on it, a wait for it or a hold of it.
    pub fn is_used(&self) -> bool {
        self.calls + self.wait.count() + self.hold.count() > 0
    }

    /// Adds those of another object.
    pub fn add(&mut self, other: &ObjectFigures) {
        self.calls += other.calls;
        self.wait.merge(&other.wait);
        if let Some(blocks) = &other.wait_blocks {
            self.wait_blocks.get_or_insert_default().merge(blocks);
        }
        self.contention += other.contention;
        self.idleness += other.idleness;
        self.open_waits += other.open_waits;
        self.failed_tries += other.failed_tries;
        self.timeouts += other.timeouts;
        self.owner_changes += other.owner_changes;
        self.hold.merge(&other.hold);
        self.lost_holds += other.lost_holds;
        self.max_waiters = self.max_waiters.max(other.max_waiters);
        self.handoff += other.handoff;
        self.unknown += other.unknown;
        self.blamed.merge(&other.blamed);
        self.blamed_others += other.blamed_others;
        self.wakers.merge(&other.wakers);
        self.wasted_signals += other.wasted_signals;
        other.worst.iter().for_each(|wait| self.add_worst(*wait));
    }

    /// How long others waited for each thread and the site where it had acquired the object.
    pub fn holders(&self) -> Vec<((u32, u32), u64)> {
        self.blamed.in_order().iter().map(|(holder, time)| ((holder.thread, holder.site), *time)).collect()
    }

    /// Completes the figures, after all waits have been added.
    pub fn complete(&mut self) {
        self.blamed.put_in_order();
        self.wakers.put_in_order();
    }

    /// Whether a wait of so many nanoseconds is one of the longest so far.
    pub fn is_among_worst(&self, waited: u64) -> bool {
        self.worst.len() < WORST_MAX || self.worst.last().is_some_and(|known| known.waited < waited)
    }

    /// Adds a wait to the longest, if it is one of them.
    pub fn add_worst(&mut self, wait: WorstWait) {
        let place = self.worst.partition_point(|known| known.waited >= wait.waited);
        if place < WORST_MAX {
            self.worst.truncate(WORST_MAX - 1);
            self.worst.reserve_exact(1);
            self.worst.insert(place, wait);
        }
    }
}
