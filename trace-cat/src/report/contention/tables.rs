//! Processes and threads as the records show them, and the sites of calls.

use std::collections::{BTreeMap, HashMap};

use spec::event_numbers::{FUTEX_WAKE, SEMA_POST, THR_KILL, THR_SELF, THR_SIGQUEUE, THR_SIGSETMASK};

use foldhash::fast::RandomState;

use super::futex_state::FutexCall;
use super::holds::Knowledge;
use super::object_state::ObjectKind;
use super::waiter_wakes::WaitedWords;

/// A program that a process executes: an exec begins another.
#[derive(Debug)]
pub struct ProgramState {
    pub pid: u32,
    /// How many programs the process executed before.
    pub image: u32,
    /// The index of the process that forked it, if that is recorded.
    pub parent: Option<u32>,
    /// The time of the first record.
    pub begin: u64,
    /// When a forked child had certainly left its parent.
    pub forked_at: u64,
    /// How many objects there were when it began: those with lower numbers are older.
    pub objects_before: u32,
    /// The time of the last record.
    pub last: u64,
    pub end: ImageEnd,
    pub knowledge: Knowledge,
    /// What its records show of what was recorded.
    pub shown: ShownSettings,
    /// From when on no ring has overwritten records.
    pub complete_from: u64,
    /// How many of its threads lose records at the moment.
    pub gaps: u32,
    /// The newest records of its threads were in its own memory in the end, or may have been.
    pub lacks_newest: bool,
    /// Its trbuf is there still: it runs, or something else has ended it than itself.
    pub has_buffers: bool,
    pub threads: Vec<u32>,
    pub records: u64,
    pub lost: u64,
    /// How often it was changed while it ran what is recorded.
    pub changes: u64,
    /// When a thread first followed the last change.
    pub changed_at: u64,
    /// The thread of the last record, and the one that ended the process.
    pub last_thread: u32,
    pub exited_by: Option<u32>,
    /// The LWP that executes another program, and when it began to.
    pub exec: Option<(u32, u64)>,
    /// What the forking thread of each child held.
    pub fork_holds: HashMap<u32, Vec<InheritedHold>, RandomState>,
    /// A thread of it has begun to fork, and the call has not returned.
    pub is_forking: bool,
    /// The locks that threads had when one of them began to fork last, by address, and those that they have released since while it did.
    pub held_when_forking: Vec<(u64, u32)>,
    /// Those that threads of its parent had when it was forked.
    pub held_at_fork: Vec<(u64, u32)>,
    /// Its locks that others release than those that have them, and those that it has copies of from its parent, by address.
    pub handed_on: BTreeMap<u64, HandedOnLock>,
    /// When forks returned of which the child has no record yet, by its number.
    pub fork_returns: HashMap<u32, u64, RandomState>,
}

/// A lock that others release than those that have it: what one has for itself, or what they read.
#[derive(Clone, Copy, Debug)]
pub struct HandedOnLock {
    pub kind: ObjectKind,
    pub is_handed_on: bool,
    pub hands_on_readers: bool,
}

/// What the records of a process have shown of what was recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShownSettings {
    /// There was an acquisition that did not wait.
    pub all_levels: bool,
    /// The kinds of locks of which there was an unlock, each a bit.
    unlocked: u16,
}

impl ShownSettings {
    /// Takes the record of an unlock.
    pub fn note_unlock(&mut self, kind: ObjectKind) {
        self.unlocked |= 1 << kind as u16;
    }

    /// Whether there was an unlock of a kind of lock.
    pub fn has_unlock(&self, kind: ObjectKind) -> bool {
        self.unlocked & 1 << kind as u16 != 0
    }
}

impl ProgramState {
    /// Whether a thread of it is its main thread: the kernel knows that by the ID that the process has on its own host.
    pub fn is_main(&self, lwp: u32) -> bool {
        lwp == self.knowledge.own_pid.unwrap_or(self.pid)
    }

    /// The thread that ended it, or that was the last to do something.
    pub fn ended_by(&self) -> u32 {
        self.exited_by.unwrap_or(self.last_thread)
    }
}

/// A hold that a forked child begins with.
#[derive(Clone, Copy, Debug)]
pub struct InheritedHold {
    pub address: u64,
    pub kind: ObjectKind,
    pub is_exclusive: bool,
    pub site: u32,
    pub depth: u32,
}

/// A lock that a thread of a forked child finds locked by one of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockByFork {
    pub object: u32,
    pub owner: OwnerByFork,
    /// When it was found locked.
    pub time: u64,
    /// The thread that waits for it in the call that it has entered last.
    pub waiter: Option<u32>,
}

/// Who has a lock in the memory of a forked child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerByFork {
    /// The child's first thread, since the thread of the parent that forked it had the lock.
    FirstThread(u32),
    /// Another thread of an ancestor, which the child does not have.
    OfAncestor(u32),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageEnd {
    /// No record shows it.
    Unknown,
    Exit,
    Exec,
    Running,
}

/// A thread.
#[derive(Debug)]
pub struct ThreadState {
    pub process: u32,
    pub lwp: u32,
    /// A thread that has ended had this LWP before, one of its process or of an ancestor; or the LWP of the thread that forked it.
    pub has_used_lwp: bool,
    pub tid: u64,
    /// The time of the first record.
    pub begin: u64,
    /// The time of the last record.
    pub last: u64,
    /// The time of the last record that no signal handler is likely to have made within a call.
    pub last_outside: u64,
    /// The same before the record in progress.
    pub last_outside_before: u64,
    /// The time of the last record before the record in progress.
    pub last_before: u64,
    /// The time of the last record, if that and all others since the innermost wait began are those of unwinding: the thread was
    /// cancelled, and is still in its wait.
    pub unwound_at: u64,
    pub has_exited: bool,
    /// When it was first asked to end by pthread_cancel: it may have left a wait since.
    pub cancelled: Option<u64>,
    /// It does not let itself be cancelled, as its last record of that shows.
    pub disables_cancel: bool,
    /// The address and the time of its last unlock.
    pub last_release: Option<(u64, u64)>,
    /// The same of the release that its last trace_inflight record notes.
    pub in_flight: Option<(u64, u64)>,
    /// The name that pthread_setname_np gave it.
    pub name: Option<[u8; 16]>,
    /// The address of its start routine.
    pub start: Option<u64>,
    /// Its calls without a return record so far, the innermost last.
    pub open: Vec<OngoingCall>,
    /// The objects that it holds.
    pub holds: Vec<u32>,
    /// When it last returned from a wait for a lock by a word of its own.
    pub lock_wait_end: u64,
    /// The futexes that it has waited for, without those of known locks.
    pub waited_words: WaitedWords,
    pub contention: u64,
    pub idleness: u64,
    pub waits: u64,
    /// How long others waited for it.
    pub caused: u64,
    /// Its records are being lost.
    pub is_in_gap: bool,
    /// Since when it has lost no records; those that are missing at the begin of its ring do not count.
    pub complete_from: u64,
    /// All that it holds is recorded.
    pub knows_holds: bool,
    /// Its first and only record shows that it follows what was changed before: if it begins with the next one, none is missing.
    pub begins_changed: bool,
    pub creation: Option<Creation>,
    /// The thread that it creates at the moment.
    pub creating: Option<Creation>,
    pub fate: ThreadFate,
}

/// The creation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    pub creator: u32,
    pub time: u64,
    pub site: u32,
    /// It was given attributes, which are not recorded.
    pub has_attributes: bool,
    /// The thread was detached before its first record.
    pub is_detached: bool,
}

/// What was done about the end of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadFate {
    #[default]
    Joinable,
    Joined,
    Detached,
}

/// A call without a return record so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OngoingCall {
    pub event: (u8, u8),
    pub entry: u64,
    pub site: u32,
    /// The index of its object.
    pub object: Option<u32>,
    /// The mutex of a wait for a condition, and how often the thread had it.
    pub mutex: Option<(u32, u32)>,
    /// The time limit of a wait for a condition or a futex as the program gave it, or 0.
    pub time_limit: u64,
    /// The clock of that limit, if the call names one.
    pub clock: Option<i32>,
    /// The thread that is joined.
    pub joined: Option<u32>,
    /// Its pthread_t: it may have no record yet.
    pub joined_tid: u64,
    /// The entry record shows that the call waits, or whether it does shows only later.
    pub waits: bool,
    /// A call of pthread_once that runs the routine, or waits for another thread's whose entry record may have been overwritten.
    pub may_wait: bool,
    /// The thread that held the object when the call began, if that was recorded: one of the process, or of an ancestor from
    /// which the process has the lock as it was.
    pub owner: Option<u32>,
    /// The LWP that had the object when the call began, if it is that of no thread of the process; else 0.
    pub other_owner: u32,
    /// What a call of futex(2) does.
    pub futex: FutexCall,
    /// The object in whose queue the thread waits now, if that is another one than its call's.
    pub queue: Option<u32>,
    /// When all who waited for the condition were woken, this call among them: it waits for its mutex then. Or when the round of a
    /// barrier has ended: it waits no longer.
    pub woken: Option<u64>,
    /// A wait for a condition that has not been woken for certain, and that cannot end before it has its mutex back.
    pub needs_mutex: bool,
}

impl OngoingCall {
    /// The object that the call waits for: that of the call, or the mutex that it needs back.
    pub fn wanted(&self) -> Option<u32> {
        self.needed_mutex().or(self.object)
    }

    /// The mutex that a wait for a condition needs back, as the records show.
    pub fn needed_mutex(&self) -> Option<u32> {
        self.mutex.filter(|_| self.woken.is_some() || self.needs_mutex).map(|(mutex, _)| mutex)
    }
}

/// Whether a record may well be that of a signal handler that interrupted a wait. POSIX lets handlers call pthread_self, pthread_kill,
/// pthread_sigmask and sem_post; pthread_sigqueue is to pthread_kill as sigqueue is to kill. Wake-ups of a futex are the same to
/// programs that make their own semaphores.
pub fn may_be_of_handler(event: (u8, u8)) -> bool {
    matches!(event, THR_SELF | THR_KILL | THR_SIGSETMASK | THR_SIGQUEUE | SEMA_POST | FUTEX_WAKE)
}

impl ThreadState {
    /// Whether the thread has made records since its innermost open call began that are hardly those of a signal handler: then it
    /// has left the call by a jump, so that nobody knows how long it waited.
    pub fn has_gone_on(&self, call: &OngoingCall) -> bool {
        self.last_outside > call.entry && self.unwound_at != self.last
    }

    /// The innermost call that it is in, as far as the records show.
    pub fn present_call(&self) -> Option<&OngoingCall> {
        self.call_with_mutex().filter(|call| !self.may_be_cancelled_in(call))
    }

    /// The same, cancelled or not: a wait for a condition does not end before it has its mutex back, however it ends.
    pub fn call_with_mutex(&self) -> Option<&OngoingCall> {
        let is_in = |call: &&OngoingCall| !self.has_gone_on(call);
        self.open.last().filter(|call| !self.is_in_gap && is_in(call))
    }

    /// The innermost call that it has left by a jump, if its records since are none of a signal handler. That need not be so: handlers
    /// call more than POSIX lets them, such as backtrace(3) or fork(2).
    pub fn call_before_records(&self) -> Option<&OngoingCall> {
        let has_left = |call: &&OngoingCall| self.has_gone_on(call);
        self.open.last().filter(|call| !self.is_in_gap && !self.has_exited && has_left(call))
    }

    /// Whether the thread has ended as far as the records show: destructors run after the record of its end, and may wait.
    pub fn has_ended(&self) -> bool {
        self.has_exited && self.call_with_mutex().is_none()
    }

    /// Whether the thread may have left this call, in which it is as far as the records show: it has made records since, by a signal
    /// handler that interrupted the call, or after a jump out of that.
    pub fn may_have_left(&self, call: &OngoingCall) -> bool {
        self.last > call.entry && self.unwound_at != self.last
    }

    /// The innermost call that it is in for certain, unless it has made no record at all since it left that.
    pub fn certain_call(&self) -> Option<&OngoingCall> {
        self.present_call().filter(|call| !self.may_have_left(call))
    }

    /// The index of the innermost open call of an event.
    pub fn find_open(&self, event: (u8, u8)) -> Option<usize> {
        self.open.iter().rposition(|call| call.event == event)
    }
}
