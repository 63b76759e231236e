//! Which threads a lock call waits for, where the records leave no doubt.
//!
//! Where all calls are recorded, the holders are those that the records show. Where only calls that blocked are (LEVEL=blocked), a
//! release makes no record unless glibc's words showed a waiter at that moment: not that of a spin lock, not that of a reader while
//! the writer that was woken has not announced itself, and not one in the time between a waiter's look at the owner and its
//! announcement. What is certain then is the owner that a thread saw when it began to wait, if that owner is still in the call in
//! which it was: who waits does not release. The first to wait in a circle saw an owner that went on, and may have released the
//! lock before the waiter had announced itself. Nobody records who takes it then, so that this owner counts only if no thread of
//! the process could. How long the wait lasts proves nothing: others may keep the lock as long as they like.

use spec::event_numbers::{RW_RDLOCK, RW_WRLOCK};

use super::analysis::Analysis;
use super::holds::Hold;
use super::object_state::ObjectKind;
use super::tables::OngoingCall;

impl Analysis {
    /// The threads that hold the object of a thread's lock call for certain.
    pub fn certain_holders(&self, thread: u32, call: OngoingCall) -> Vec<u32> {
        let Some(object) = call.object else { return Vec::new() };
        let is_only_blocked = !self.shows_holds(object);
        let state = &self.objects[object as usize];
        if state.is_released_by_others() {
            return Vec::new();
        }
        let waits_for_readers = state.kind == ObjectKind::Rwlock && call.event.1 == 3;
        let is_its_own = |hold: &&Hold| !hold.is_doubtful() && !self.may_be_predecessors(object, hold);
        let holds = state.occupancy.holds.iter().filter(is_its_own);
        if is_only_blocked {
            let is_certain = |hold: &&Hold| state.occupancy.is_exclusive() && self.still_holds(thread, &call, hold);
            return holds.filter(is_certain).map(|hold| hold.holder.thread).collect();
        }
        if !state.occupancy.is_exclusive() && !waits_for_readers {
            return self.preferred_writers(object, call);
        }
        holds.map(|hold| hold.holder.thread).collect()
    }

    /// The threads that had the object of a thread's lock call when that began, if they may still have it, and nobody knows; or that have
    /// taken a lock which any thread unlocks.
    pub fn possible_holders(&self, thread: u32, call: &OngoingCall) -> Vec<u32> {
        let Some(object) = call.object else { return Vec::new() };
        let state = &self.objects[object as usize];
        let (only_blocked, is_handed_on) = (self.knowledge_of(object).only_blocked, state.is_released_by_others());
        let lacks_releases = self.may_lack_releases(object);
        let is_exclusive = state.occupancy.is_exclusive();
        // Readers do not wait for readers, but for a writer that is preferred and waits for such.
        if !is_exclusive && (only_blocked || call.event == RW_RDLOCK) {
            let waits_behind = is_handed_on && !only_blocked;
            return if waits_behind { self.preferred_writers(object, *call) } else { Vec::new() };
        }
        let may_be_old = |hold: &Hold| self.is_seen_owner(call, hold) && !self.still_holds(thread, call, hold);
        let is_possible = |hold: &&Hold| {
            let may_have_released = lacks_releases && !self.still_holds(thread, call, hold);
            let may_be_it =
                is_handed_on || hold.may_have_ended || may_have_released || self.may_be_predecessors(object, hold);
            let may_have_it = may_be_it || only_blocked && may_be_old(hold);
            may_have_it && !state.occupancy.has_ended(hold)
        };
        state.occupancy.holds.iter().filter(is_possible).map(|hold| hold.holder.thread).collect()
    }

    /// Whether the holder is the owner that a thread saw when it began to wait in this call.
    fn is_seen_owner(&self, call: &OngoingCall, hold: &Hold) -> bool {
        call.owner == Some(hold.holder.thread) && hold.from <= call.entry
    }

    /// Whether processes are of several systems, or of several PID namespaces.
    fn has_several_systems(&self) -> bool {
        self.processes.windows(2).any(|pair| pair[0].knowledge.system != pair[1].knowledge.system)
    }

    /// Whether the holder still has what a thread waits for in this call, where releases may have no record.
    fn still_holds(&self, thread: u32, call: &OngoingCall, hold: &Hold) -> bool {
        let Some(object) = call.object.filter(|object| self.objects[*object as usize].kind != ObjectKind::Spin) else {
            return false;
        };
        let holder = hold.holder.thread;
        if self.may_be_predecessors(object, hold) {
            return false;
        }
        if self.objects[object as usize].kind == ObjectKind::Once {
            return hold.is_recorded;
        }
        // Then the owner's LWP may be that of a thread in another namespace.
        if self.objects[object as usize].may_be_held_elsewhere && self.has_several_systems() {
            return false;
        }
        if holder == thread {
            // A thread of another process may be used to unlock it, of which there is a record only where somebody waits.
            let state = &self.objects[object as usize];
            let is_shared = self.may_be_elsewhere(object) && self.has_other_processes(state.process);
            return call.owner == Some(thread) && !is_shared;
        }
        let present = self.threads[holder as usize].certain_call().filter(|present| present.waits);
        // A wait for a condition gives its mutex back after its record.
        let gives_back = |present: &OngoingCall| present.mutex.is_some_and(|(mutex, _)| mutex == object);
        let was_there = present.is_some_and(|present| present.entry < hold.seen && !gives_back(present));
        was_there || self.is_seen_owner(call, hold) && !self.may_be_taken_by_others(object, call, holder)
    }

    /// Whether another thread than `holder` may have taken the lock since a wait for it began: any of the process but those that have
    /// been in another wait since before it. A thread that has taken it only when it was free has made no call on it that is recorded.
    fn may_be_taken_by_others(&self, object: u32, call: &OngoingCall, holder: u32) -> bool {
        let process = &self.processes[self.objects[object as usize].process as usize];
        let knows_threads = match process.knowledge.lacks_settings {
            true => self.shows_threads(process),
            false => process.knowledge.complete_from == 0 && !process.knowledge.is_selective,
        };
        let may_take_it = |&user: &u32| {
            let state = &self.threads[user as usize];
            let has_ended = state.has_exited && state.last < call.entry && self.is_gone(user);
            !has_ended && !state.certain_call().is_some_and(|present| present.waits && present.entry <= call.entry)
        };
        !knows_threads || process.threads.iter().any(|user| *user != holder && may_take_it(user))
    }

    /// Whether a holder of a mutex has acquired it since a time.
    pub fn has_acquired_since(&self, mutex: u32, holder: u32, time: u64) -> bool {
        let mut holds = self.objects[mutex as usize].occupancy.holds.iter();
        holds.any(|hold| hold.holder.thread == holder && hold.from > time)
    }

    /// The last thread that has acquired a mutex since a time, where its release may have no record.
    pub fn last_holder_since(&self, mutex: u32, time: u64) -> Option<u32> {
        let is_it = |hold: &&Hold| hold.is_recorded && !hold.is_doubtful() && hold.from > time;
        let hold = self.objects[mutex as usize].occupancy.holds.iter().find(is_it);
        hold.filter(|_| self.knowledge_of(mutex).only_blocked).map(|hold| hold.holder.thread)
    }

    /// Whether a thread has what it waits for: another thread saw that, and the record of its return is not there, because the
    /// process went on or was killed before.
    pub fn has_returned_unseen(&self, thread: u32, call: &OngoingCall) -> bool {
        let Some(object) = call.object.filter(|_| call.owner != Some(thread)) else { return false };
        let occupancy = &self.objects[object as usize].occupancy;
        let was_seen = |hold: &Hold| hold.holder.thread == thread && hold.seen > call.entry;
        occupancy.is_exclusive() && occupancy.holds.iter().any(was_seen)
    }

    /// Whether a thread has had what it waits for since this call began: it has left the call by a jump, and acquired that anew.
    pub fn has_acquired_in(&self, thread: u32, call: &OngoingCall) -> bool {
        call.mutex.is_none() && call.object.is_some_and(|object| self.has_acquired_since(object, thread, call.entry))
    }

    /// The writers that a reader waits for although other readers hold the rwlock: it is of a kind that prefers writers, because a
    /// lock call is only recorded without its return if a try failed.
    fn preferred_writers(&self, object: u32, call: OngoingCall) -> Vec<u32> {
        let occupancy = &self.objects[object as usize].occupancy;
        let holds_since = |hold: &Hold| hold.is_recorded && !hold.may_have_ended && hold.from < call.entry;
        if occupancy.holds.is_empty() || !occupancy.holds.iter().all(holds_since) {
            return Vec::new();
        }
        let is_preferred = |writer: &u32| {
            let open = self.threads[*writer as usize].open.last();
            open.is_some_and(|wait| (wait.event, wait.object) == (RW_WRLOCK, Some(object)) && wait.entry < call.entry)
        };
        occupancy.waiting_threads().into_iter().filter(is_preferred).collect()
    }
}
