//! Calls of pthread_once.
//!
//! Records do not show which thread runs the routine. It is the first to enter, unless another one overtakes it between its record
//! and the call; calls that a thread makes before it returns are the routine's.

use spec::event_numbers::THR_ONCE;

use super::analysis::{Analysis, WaitPlace};
use super::holds::{Release, Released};
use super::numeric_record::NumericRecord;
use super::object_state::ObjectKind;
use super::tables::OngoingCall;
use super::wait_shares::Holder;
use super::waker::Waker;

/// For how long after the first thread's entry record another one that enters pthread_once may be the one that runs the routine: a
/// thread may be interrupted between its record and the call. Of 300 routines with four threads each, four ran in one that entered
/// 4 to 20 microseconds later.
const ONCE_RACE_NS: u64 = 50_000;

impl Analysis {
    /// Takes the entry record of pthread_once. The first thread holds the control while it runs the routine.
    pub fn enter_once(&mut self, thread: u32, record: &NumericRecord) {
        let (object, site) = self.called_object(thread, record, ObjectKind::Once, record.arguments[4]);
        let (now, knowledge) = (record.time, self.knowledge_of(object));
        let is_in_it = |call: &OngoingCall| (call.event, call.object) == (record.event, Some(object));
        let runs_it = self.threads[thread as usize].open.iter().any(is_in_it);
        if runs_it && self.objects[object as usize].occupancy.depth(thread) == 0 {
            // It calls it in the routine.
            self.forget_runner(object);
            self.objects[object as usize].occupancy.acquire(Holder { thread, site }, 1, true, now, knowledge);
        }
        let has_stack = self.sites.sites[site as usize].stack != 0;
        let occupancy = &mut self.objects[object as usize].occupancy;
        // Another thread may run the routine since before the records are complete.
        let is_first = knowledge.complete_from == 0;
        // Where a routine was cancelled, one of those who waited runs it, and nobody knows which.
        let waits = !occupancy.holds.is_empty() || occupancy.has_waiting_threads() || !is_first && has_stack;
        if waits {
            occupancy.begin_wait(u64::from(thread), site, now, knowledge);
        } else if is_first {
            occupancy.acquire(Holder { thread, site }, 1, true, now, knowledge);
            self.activities.begin_hold(thread, object, site, now);
        }
        self.open_call(thread, record, site, Some(object), waits);
        if let Some(call) = self.threads[thread as usize].open.last_mut() {
            call.may_wait = !waits && !is_first;
        }
    }

    /// The thread that runs the routine of a control, as the calls show that it has made within its own.
    pub fn runner(&self, object: u32) -> Option<u32> {
        let process = &self.processes[self.objects[object as usize].process as usize];
        let runs_it = |&thread: &u32| {
            let state = &self.threads[thread as usize];
            let is_it = |call: &OngoingCall| (call.event, call.object) == (THR_ONCE, Some(object));
            state.open.iter().any(|call| is_it(call) && state.has_gone_on(call)) && !state.is_in_gap
        };
        process.threads.iter().copied().find(runs_it)
    }

    /// Takes the return record of pthread_once.
    pub fn return_from_once(&mut self, thread: u32, record: &NumericRecord) {
        let Some(OngoingCall { object: Some(object), site, entry, waits, may_wait, .. }) =
            self.close_call(thread, record)
        else {
            return;
        };
        if may_wait {
            self.objects[object as usize].last_release = None;
            return;
        }
        let (now, knowledge) = (record.time, self.knowledge_of(object));
        let has_result = now > entry && record.arguments[0] == 0;
        if has_result && !self.knows_runner(object, thread, (entry, site)) {
            self.forget_runner(object);
        }
        if has_result && waits {
            if self.threads[thread as usize].last_outside_before > entry {
                // It made calls, so that it ran the routine.
                self.objects[object as usize].occupancy.cancel_wait(u64::from(thread));
                self.activities.log_until(thread, now);
                self.objects[object as usize].last_release = Some(Waker { thread, site, time: now });
                return;
            }
            self.end_routine(object, now);
        }
        if !waits {
            self.activities.end_hold(thread, object, now);
        }
        let state = &mut self.objects[object as usize];
        let has_it = state.occupancy.depth(thread) > 0;
        if waits {
            let waker = state.last_release;
            if now > entry
                && let Some(wait) = state.occupancy.end_wait(u64::from(thread), now, knowledge)
            {
                let place = WaitPlace::new(thread, site, entry);
                self.account_contention(object, wait, place, waker);
                self.end_wait(place, now, waker);
            } else {
                state.occupancy.cancel_wait(u64::from(thread));
            }
        } else if record.arguments[0] != 0 {
            state.last_release = None;
            let hold = state.occupancy.forget_thread(thread, now, knowledge);
            hold.into_iter().for_each(|hold| self.account_hold(object, hold, now));
        } else if has_it
            && let (Released::Hold(hold), _) = state.occupancy.release(thread, Release::Complete, now, knowledge)
            // A call that found the routine ended has one time for both records.
            && now > entry
        {
            state.last_release = Some(Waker { thread, site, time: now });
            self.account_hold(object, hold, now);
            self.activities.log_until(thread, now);
        }
    }

    /// Whether it is certain which thread has run a routine, when a thread returns that has entered pthread_once at a time and a site:
    /// the first to enter has made calls since, or no other one entered at nearly the same time or has made calls. A call has a
    /// stack if the routine was being run when it began, so that it waited for another thread.
    fn knows_runner(&self, object: u32, returning: u32, (entry, site): (u64, u32)) -> bool {
        let occupancy = &self.objects[object as usize].occupancy;
        let Some(hold) = occupancy.holds.first() else { return true };
        let has_stack = |site: u32| self.sites.sites[site as usize].stack != 0;
        let has_made_calls = |thread: u32, entry: u64| {
            let state = &self.threads[thread as usize];
            let last = if thread == returning { state.last_outside_before } else { state.last_outside };
            last > entry
        };
        if has_made_calls(hold.holder.thread, hold.from) {
            return true;
        }
        let may_run_it = |thread: u32, (entry, site): (u64, u32)| {
            entry <= hold.from + ONCE_RACE_NS && !has_stack(site) || has_made_calls(thread, entry)
        };
        let call_of = |thread: u32| {
            let calls = &self.threads[thread as usize].open;
            calls.iter().find(|call| call.object == Some(object)).map(|call| (call.entry, call.site))
        };
        let is_other = returning != hold.holder.thread;
        let mut waiting = occupancy.waiting_threads().into_iter().filter_map(|thread| Some((thread, call_of(thread)?)));
        let may_be_another = is_other && may_run_it(returning, (entry, site))
            || waiting.any(|(thread, call)| may_run_it(thread, call))
            || has_stack(hold.holder.site);
        !may_be_another
    }

    /// Forgets who was taken for the one that runs a routine.
    fn forget_runner(&mut self, object: u32) {
        for hold in self.objects[object as usize].occupancy.lose_holds() {
            self.drop_hold(object, hold.holder.thread);
            self.activities.lose_hold(hold.holder.thread, object, hold.from);
            self.draw_lost_hold(object, hold);
        }
        self.objects[object as usize].last_release = None;
    }

    /// Takes that a thread that waited for the routine of pthread_once returns. It may do so before the one that ran the routine,
    /// which still wakes others: the routine has ended by now.
    fn end_routine(&mut self, object: u32, now: u64) {
        let knowledge = self.knowledge_of(object);
        let state = &mut self.objects[object as usize];
        let Some(Holder { thread, site }) = state.occupancy.holds.first().map(|hold| hold.holder) else { return };
        if let (Released::Hold(hold), _) = state.occupancy.release(thread, Release::Complete, now, knowledge) {
            state.last_release = Some(Waker { thread, site, time: now });
            self.account_hold(object, hold, now);
            self.activities.log_until(thread, now);
        }
    }
}
