//! Which threads a lock call waits for, where the records leave no doubt.
//!
//! Where all calls are recorded, the holders are those that the records show. Where only calls that blocked are (LEVEL=blocked), a
//! release makes no record unless glibc's words showed a waiter at that moment: not that of a spin lock, not that of a reader while
//! the writer that was woken has not announced itself, and not one in the instant between a waiter's look at the owner and its
//! announcement. What is certain then is the owner that a thread saw when it began to wait, if that owner is still in the call in
//! which it was: who waits does not release. The first to wait in a circle saw an owner that went on: that one counts if nobody
//! else who uses the lock may have taken it since.

use super::analysis::Analysis;
use super::holds::Hold;
use super::object_state::ObjectKind;
use super::tables::OngoingCall;

/// A thread that has waited so long waits for the owner that it saw: others that use the lock do not keep it so long from one
/// that waits, without a record.
const LONG_WAIT_NS: u64 = 1_000_000_000;

impl Analysis {
    /// The threads that hold the object of a thread's lock call for certain.
    pub fn certain_holders(&self, thread: u32, call: OngoingCall) -> Vec<u32> {
        let Some(object) = call.object else { return Vec::new() };
        let is_only_blocked = self.knowledge_of(object).only_blocked;
        let state = &self.objects[object as usize];
        let waits_for_readers = state.kind == ObjectKind::Rwlock && call.event.1 == 3;
        let holds = state.occupancy.holds.iter();
        if is_only_blocked {
            let is_certain = |hold: &&Hold| state.occupancy.is_exclusive() && self.still_holds(thread, &call, hold);
            return holds.filter(is_certain).map(|hold| hold.holder.thread).collect();
        }
        if !state.occupancy.is_exclusive() && !waits_for_readers {
            return self.preferred_writers(object, call);
        }
        holds.map(|hold| hold.holder.thread).collect()
    }

    /// Whether the holder still has what a thread waits for in this call, where releases may have no record.
    fn still_holds(&self, thread: u32, call: &OngoingCall, hold: &Hold) -> bool {
        let Some(object) = call.object.filter(|object| self.objects[*object as usize].kind != ObjectKind::Spin) else {
            return false;
        };
        let holder = hold.holder.thread;
        if self.objects[object as usize].kind == ObjectKind::Once {
            return hold.is_recorded;
        }
        if holder == thread {
            return call.owner == Some(thread);
        }
        let state = &self.threads[holder as usize];
        let was_there = state.certain_call().is_some_and(|present| present.waits && present.entry < hold.seen);
        let saw_it = call.owner == Some(holder) && hold.from <= call.entry;
        was_there
            || saw_it && (self.has_waited_long(thread, call) || !self.may_be_taken_by_others(object, call, holder))
    }

    fn has_waited_long(&self, thread: u32, call: &OngoingCall) -> bool {
        let process = &self.processes[self.threads[thread as usize].process as usize];
        process.last.saturating_sub(call.entry) >= LONG_WAIT_NS
    }

    /// Whether a thread that uses the lock may have taken it after `holder` since a wait for it began: all but those that have been in
    /// another wait since before it.
    fn may_be_taken_by_others(&self, object: u32, call: &OngoingCall, holder: u32) -> bool {
        let state = &self.objects[object as usize];
        let all = &self.processes[state.process as usize].threads;
        let may_take_it = |user: &u32| {
            let user = &self.threads[*user as usize];
            let has_ended = user.has_exited && user.last < call.entry;
            !has_ended && !user.certain_call().is_some_and(|present| present.waits && present.entry <= call.entry)
        };
        let users = state.users.threads().unwrap_or(all);
        users.iter().any(|user| *user != holder && may_take_it(user))
    }

    /// Whether a thread has what it waits for: another thread saw that, and the record of its return is not there, because the
    /// process went on or was killed before.
    pub fn has_returned_unseen(&self, thread: u32, call: &OngoingCall) -> bool {
        let Some(object) = call.object.filter(|_| call.owner != Some(thread)) else { return false };
        let occupancy = &self.objects[object as usize].occupancy;
        let was_seen = |hold: &Hold| hold.holder.thread == thread && hold.seen > call.entry;
        occupancy.is_exclusive() && occupancy.holds.iter().any(was_seen)
    }

    /// The writers that a reader waits for although other readers hold the rwlock: it is of a kind that prefers writers, because a
    /// lock call is only recorded without its return if a try failed.
    fn preferred_writers(&self, object: u32, call: OngoingCall) -> Vec<u32> {
        let occupancy = &self.objects[object as usize].occupancy;
        let holds_since = |hold: &Hold| hold.is_recorded && hold.from < call.entry;
        if occupancy.holds.is_empty() || !occupancy.holds.iter().all(holds_since) {
            return Vec::new();
        }
        let is_preferred = |writer: &u32| {
            let open = self.threads[*writer as usize].open.last();
            open.is_some_and(|wait| (wait.event, wait.object) == ((5, 3), Some(object)) && wait.entry < call.entry)
        };
        occupancy.waiting_threads().into_iter().filter(is_preferred).collect()
    }
}
