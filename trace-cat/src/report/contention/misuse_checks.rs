//! Calls that misuse an object or a thread, as far as the records leave no doubt.

use std::collections::HashSet;

use spec::event_numbers::{
    COND_CLOCKWAIT, COND_TIMEDWAIT, COND_WAIT, MUTEX_LOCK, RW_RDLOCK, RW_TIMEDRDLOCK, RW_WRLOCK, SEMA_WAIT, SPIN_LOCK,
    THR_JOIN, THR_TIMEDJOIN,
};

use super::analysis::Analysis;
use super::holds::Hold;
use super::numeric_record::NumericRecord;
use super::object_state::ObjectKind;
use super::tables::{ImageEnd, OngoingCall, ThreadFate};
use crate::record::record_kinds::caller_column;
use crate::report::misuse::{Misuse, MisuseKind, SuspectedMisuse};

impl Analysis {
    fn add_misuse(&mut self, kind: MisuseKind, object: Option<u32>, thread: u32, site: u32, time: u64) {
        self.note_misuse(Misuse { kind, object, thread, time, site, count: 1 });
    }

    fn note_misuse(&mut self, misuse: Misuse) {
        let is_first = self.misuse.add(misuse);
        if let Some(object) = misuse.object.filter(|_| is_first) {
            self.objects[object as usize].is_named = true;
        }
    }

    /// Whether all calls of a process are recorded that matter here.
    fn has_all_calls(&self, process: u32) -> bool {
        let knowledge = self.processes[process as usize].knowledge;
        !(knowledge.only_blocked || knowledge.is_partial || knowledge.is_selective)
    }

    /// Whether a thread has an object for certain.
    pub fn is_certain(&self, object: u32, hold: &Hold) -> bool {
        let process = self.objects[object as usize].process;
        let holder = &self.threads[hold.holder.thread as usize];
        self.has_all_calls(process)
            && self.shows_holds(object)
            && hold.is_recorded
            && !hold.is_doubtful()
            && hold.from >= self.processes[process as usize].knowledge.complete_from
            && !holder.is_in_gap
    }

    /// Takes a record's error.
    pub fn check_error(&mut self, thread: u32, record: &NumericRecord) {
        let NumericRecord { event, which, arguments, time, .. } = *record;
        let Some(error) = self.error_columns.error(event, which, &arguments) else { return };
        let state = &self.threads[thread as usize];
        let (mut object, mut site) = (None, 0);
        if which == 2 {
            if let Some(index) = state.find_open(event) {
                (object, site) = (state.open[index].object, state.open[index].site);
            }
        } else {
            let process = state.process;
            object = self.object_at(process, arguments[0]).filter(|_| event.0 > 1);
            let address = caller_column(event, which).map_or(0, |column| arguments[column]);
            site = self.sites.intern(process, address);
        }
        self.add_misuse(MisuseKind::Error(event, error), object, thread, site, time);
    }

    /// Takes an unlock that succeeded.
    pub fn check_unlock(&mut self, object: u32, thread: u32, site: u32, time: u64) {
        let occupancy = &self.objects[object as usize].occupancy;
        let &[hold] = &occupancy.holds[..] else { return };
        let owner = &self.threads[hold.holder.thread as usize];
        if hold.holder.thread == thread
            || !occupancy.is_exclusive()
            || !self.is_certain(object, &hold)
            || !self.threads[thread as usize].knows_holds
        {
            return;
        }
        if !owner.has_ended() {
            self.add_misuse(MisuseKind::UnlockNotOwner, Some(object), thread, site, time);
        } else if self.is_gone(hold.holder.thread) && !self.objects[object as usize].may_be_robust {
            let (owner, site, time) = (hold.holder.thread, hold.holder.site, owner.last);
            self.add_misuse(MisuseKind::ExitHolding, Some(object), owner, site, time);
        }
    }

    /// Whether a thread that has exited does nothing any more: destructors run after the exit, for as long as they like.
    pub fn is_gone(&self, thread: u32) -> bool {
        let state = &self.threads[thread as usize];
        let has_successor = self.thread_of_tid.get(&(state.process, state.tid)) != Some(&thread);
        state.fate == ThreadFate::Joined || has_successor
    }

    /// Takes a destruction, whether it succeeded or not.
    pub fn check_destroy(&mut self, object: u32, thread: u32, site: u32, time: u64) {
        let state = &self.objects[object as usize];
        // A destruction ends holds, whose releases are then missing.
        let has_lost_none = state.figures.lost_holds == 0;
        if has_lost_none && state.occupancy.holds.iter().any(|hold| self.is_certain(object, hold)) {
            self.add_misuse(MisuseKind::DestroyHeld, Some(object), thread, site, time);
        }
        let state = &self.objects[object as usize];
        let (is_lock, is_semaphore) = (state.kind.is_lock(), state.kind == ObjectKind::Sema);
        if !(is_lock || is_semaphore) || !self.has_all_calls(state.process) {
            return;
        }
        let mut waiters = state.occupancy.waiting_threads();
        waiters.extend(state.wakeups.waits.iter().map(|wait| wait.thread));
        let Some(waiter) = waiters.into_iter().find(|waiter| self.is_in_call(*waiter, object)) else { return };
        let misuse = Misuse { kind: MisuseKind::DestroyWaited, object: Some(object), thread, time, site, count: 1 };
        match is_lock {
            true => self.note_misuse(misuse),
            // A post that was recorded before the wait may take effect after it.
            false if !state.wakeups.has_pending() => self.suspect(waiter, misuse),
            false => {}
        }
    }

    /// Whether a thread is in a call on an object, and in no other one for certain.
    fn is_in_call(&self, thread: u32, object: u32) -> bool {
        let state = &self.threads[thread as usize];
        let is_in = |call: &OngoingCall| call.object == Some(object) && call.entry == state.last;
        state.open.last().is_some_and(is_in) && !state.is_in_gap
    }

    /// When a wait for a semaphore ended that had no post, if all are recorded: after its destruction, by a post at the same address.
    pub fn post_after_destruction(&self, object: u32) -> Option<u64> {
        let has_posts = |object: u32| self.objects[object as usize].wakeups.has_posts;
        let state = &self.objects[object as usize];
        let is_known = !state.is_shared && !has_posts(object) && self.has_all_records(state.process);
        let next = self.object_at(state.process, state.address)?;
        let is_posted = next != object && self.objects[next as usize].kind == ObjectKind::Sema && has_posts(next);
        (is_known && is_posted).then_some(u64::MAX)
    }

    fn suspect(&mut self, waiter: u32, misuse: Misuse) {
        let Some(call) = self.threads[waiter as usize].open.last() else { return };
        let entry = call.entry;
        self.suspected.push(SuspectedMisuse { waiter, entry, misuse });
    }

    /// Takes a wait for a condition with a mutex, when others may wait with another one.
    pub fn check_mutexes(&mut self, cond: u32, mutex: u32, thread: u32, site: u32, time: u64) {
        let queue = &self.objects[cond as usize].wakeups;
        let process = self.objects[cond as usize].process;
        let is_complete = self.has_all_calls(process) && !self.processes[process as usize].knowledge.misses_cancels;
        if queue.waits.is_empty() || queue.has_pending() || !is_complete {
            return;
        }
        let differs = |other: &u32| self.is_in_call(*other, cond);
        let others = queue.waits.iter().filter(|wait| wait.mutex != Some(mutex)).map(|wait| wait.thread);
        if let Some(waiter) = others.into_iter().find(differs) {
            let kind = MisuseKind::CondTwoMutexes;
            self.suspect(waiter, Misuse { kind, object: Some(cond), thread, time, site, count: 1 });
        }
    }

    /// Takes the end of a thread's wait, which a wake-up at `woken` ended: what was suspected is misuse if it was before that.
    pub fn settle_suspicions(&mut self, thread: u32, entry: u64, woken: Option<u64>) {
        if self.suspected.is_empty() {
            return;
        }
        let (settled, others): (Vec<_>, Vec<_>) =
            self.suspected.iter().copied().partition(|suspected| suspected.waiter == thread);
        self.suspected = others;
        for suspected in settled.into_iter().filter(|suspected| suspected.entry == entry) {
            if woken.is_some_and(|woken| woken > suspected.misuse.time) {
                self.note_misuse(suspected.misuse);
            }
        }
    }

    /// Takes a lock call that did not acquire the object, and waited until its time limit or until now: the thread has it already.
    pub fn check_relock(&mut self, thread: u32, call: &OngoingCall) {
        let Some(object) = call.object else { return };
        let state = &self.objects[object as usize];
        let is_shared = matches!(call.event, RW_RDLOCK | RW_TIMEDRDLOCK);
        let Some(&hold) = state.occupancy.holds.iter().find(|hold| hold.holder.thread == thread) else { return };
        if matches!(state.kind, ObjectKind::Mutex | ObjectKind::Spin | ObjectKind::Rwlock)
            && (!is_shared || state.occupancy.is_exclusive())
            && !state.is_released_by_others()
            && self.is_certain(object, &hold)
        {
            self.add_misuse(MisuseKind::RelockSelf, Some(object), thread, call.site, call.entry);
        }
    }

    /// Takes the entry of a join of a thread that may have been joined before.
    pub fn check_join(&mut self, thread: u32, joined: Option<u32>, site: u32, time: u64) {
        let process = self.threads[thread as usize].process;
        // A new thread may have its pthread_t.
        let is_joined = |joined: &u32| self.threads[*joined as usize].fate == ThreadFate::Joined;
        if joined.is_some_and(|joined| is_joined(&joined)) && self.creating == 0 && self.has_all_records(process) {
            self.add_misuse(MisuseKind::JoinTwice, None, thread, site, time);
        }
    }

    fn has_all_records(&self, process: u32) -> bool {
        let state = &self.processes[process as usize];
        state.knowledge.complete_from == 0 && state.lost == 0 && self.has_all_calls(process)
    }

    /// Takes the end of the records of all threads of some processes.
    pub fn check_ends(&mut self, threads: &[u32]) {
        let joined_thread = |thread: &u32| {
            let state = &self.threads[*thread as usize];
            let call = state.open.last().filter(|call| matches!(call.event, THR_JOIN | THR_TIMEDJOIN))?;
            self.joined_thread(state.process, call)
        };
        let joined_now: HashSet<u32> = threads.iter().filter_map(joined_thread).collect();
        threads.iter().for_each(|thread| self.check_end(*thread, joined_now.contains(thread)));
    }

    fn check_end(&mut self, thread: u32, is_being_joined: bool) {
        let state = &self.threads[thread as usize];
        let call = state.open.last().copied().filter(|call| call.waits && !state.is_in_gap);
        let cancelled = state.cancelled.unwrap_or(u64::MAX);
        if let Some(call) = call.filter(|call| matches!(call.event, MUTEX_LOCK | RW_RDLOCK | RW_WRLOCK | SPIN_LOCK)) {
            self.check_relock(thread, &call);
        }
        if let Some(call) =
            call.filter(|call| matches!(call.event, COND_WAIT | COND_TIMEDWAIT | COND_CLOCKWAIT | SEMA_WAIT))
        {
            let is_limited = matches!(call.event, COND_TIMEDWAIT | COND_CLOCKWAIT);
            let until = if is_limited { call.time_limit } else { u64::MAX };
            // Who is cancelled waits for the condition no more, though perhaps for its mutex.
            self.settle_suspicions(thread, call.entry, Some(until.min(cancelled)));
        }
        let state = &self.threads[thread as usize];
        if !state.has_ended() || state.is_in_gap {
            return;
        }
        let (last, creation, is_gone) = (state.last, state.creation, self.is_gone(thread));
        for object in state.holds.clone().into_iter().filter(|_| is_gone) {
            let held = &self.objects[object as usize];
            let hold = held.occupancy.holds.iter().find(|hold| hold.holder.thread == thread).copied();
            if let Some(hold) = hold.filter(|hold| !held.may_be_robust && self.is_certain(object, hold)) {
                self.add_misuse(MisuseKind::ExitHolding, Some(object), thread, hold.holder.site, last);
            }
        }
        let state = &self.threads[thread as usize];
        if let Some(creation) = creation.filter(|creation| !creation.has_attributes)
            && state.fate == ThreadFate::Joinable
            && !is_being_joined
            && self.processes[state.process as usize].end == ImageEnd::Exit
            && self.has_all_records(state.process)
        {
            self.add_misuse(MisuseKind::NeverJoined, None, thread, creation.site, last);
        }
    }

    /// Removes what missing records could explain: objects whose releases are missing.
    pub fn remove_doubtful_misuse(&mut self) {
        let objects = &self.objects;
        let is_doubtful = |misuse: &Misuse| match misuse.kind {
            MisuseKind::UnlockNotOwner | MisuseKind::RelockSelf | MisuseKind::ExitHolding => {
                misuse.object.is_some_and(|object| objects[object as usize].figures.lost_holds > 0)
            }
            _ => false,
        };
        self.misuse.rows.retain(|misuse| !is_doubtful(misuse));
    }
}
