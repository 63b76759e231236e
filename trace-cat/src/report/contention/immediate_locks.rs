//! Lock calls that did not wait, which most are. Both records have one time and mostly stand one behind the other: then they are
//! taken together, so that nothing is noted of a wait that neither lasts nor is accounted.

use spec::event_numbers::{
    MUTEX_LOCK, MUTEX_TIMEDLOCK, RMUTEX_LOCK, RMUTEX_TIMEDLOCK, RW_RDLOCK, RW_TIMEDRDLOCK, RW_TIMEDWRLOCK, RW_WRLOCK,
    SPIN_LOCK,
};

use super::analysis::Analysis;
use super::locks::has_time_limit;
use super::numeric_record::NumericRecord;
use super::object_state::ObjectKind::{self, Mutex, Rmutex, Rwlock, Spin};
use super::wait_shares::Holder;

/// What a lock call is.
#[derive(Clone, Copy)]
struct LockCall {
    kind: ObjectKind,
    is_exclusive: bool,
    /// It has a time limit.
    is_limited: bool,
    /// Its entry record shows the LWP that had the object.
    shows_owner: bool,
}

/// What the call of an event is, if it locks.
fn lock_call(event: (u8, u8)) -> Option<LockCall> {
    let (kind, is_exclusive) = match event {
        MUTEX_LOCK | MUTEX_TIMEDLOCK => (Mutex, true),
        RMUTEX_LOCK | RMUTEX_TIMEDLOCK => (Rmutex, true),
        RW_RDLOCK | RW_TIMEDRDLOCK => (Rwlock, false),
        RW_WRLOCK | RW_TIMEDWRLOCK => (Rwlock, true),
        SPIN_LOCK => (Spin, true),
        _ => return None,
    };
    let shows_owner = matches!(event, MUTEX_LOCK | RMUTEX_LOCK | RW_WRLOCK);
    Some(LockCall { kind, is_exclusive, is_limited: has_time_limit(event), shows_owner })
}

impl Analysis {
    /// Takes two records, if they are the first and the second one of a lock call that got its object at once; returns whether they
    /// are. It has the effect of taking one after the other.
    pub fn add_immediate_lock(&mut self, entry: &NumericRecord, returned: &NumericRecord) -> bool {
        if (entry.which, returned.which) != (1, 2) || entry.event != returned.event || entry.owner() != returned.owner()
        {
            return false;
        }
        // What the call returned, and whether it waited; of a spin lock only the latter. Then the depth or the number of readers.
        let [rval, blocked, count, ..] = returned.arguments;
        let Some(call) = lock_call(entry.event).filter(|_| (rval, blocked) == (0, 0)) else { return false };
        let [_, _, _, owner, site] = entry.arguments;
        if call.shows_owner && owner != 0 || self.timeline.is_some() || !self.records_all_locks(entry) {
            return false;
        }
        let now = entry.time;
        let thread = self.begin_record(entry);
        // The second record is of the same thread, and has no stack.
        let state = &mut self.threads[thread as usize];
        (state.last_outside_before, state.last_before) = (state.last_outside, state.last);
        let process = &mut self.processes[state.process as usize];
        process.records += 1;
        process.shown.all_levels = true;
        let (object, site) = self.called_object(thread, entry, call.kind, site);
        let knowledge = self.knowledge_of(object);
        self.objects[object as usize].occupancy.pass(now, knowledge);
        let holder = Holder { thread, site };
        if !call.is_limited {
            self.note_nesting(object, holder, !call.is_exclusive, now);
        }
        let depth = if call.kind == Rmutex { u32::try_from(count).unwrap_or(1).max(1) } else { 1 };
        self.acquire(object, holder, depth, call.is_exclusive, now, false);
        if !call.is_exclusive {
            self.objects[object as usize].occupancy.count_readers(thread, count, now, knowledge);
        }
        self.sites.begin_record(returned);
        true
    }

    /// Whether the thread of a record is known, and its process records lock calls whether they wait or not.
    fn records_all_locks(&self, record: &NumericRecord) -> bool {
        let (pid, lwp, thread) = self.recent_threads[(record.lwp & 255) as usize];
        let state = self.threads.get(thread as usize).filter(|_| (pid, lwp) == (record.pid, record.lwp));
        let process = state.map(|state| &self.processes[state.process as usize]);
        self.execs == 0 && process.is_some_and(|process| !process.knowledge.only_blocked)
    }
}
