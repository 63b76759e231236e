//! Waits at barriers.

use super::analysis::{Analysis, WaitPlace};
use super::barrier_rounds::EndedRound;
use super::numeric_record::NumericRecord;
use super::object_state::ObjectKind;
use super::tables::OngoingCall;
use super::waker::Waker;
use super::wakeups::IdleWait;

/// What the last to arrive returns.
pub const LAST: u64 = libc::PTHREAD_BARRIER_SERIAL_THREAD as u64;

impl Analysis {
    /// Takes the entry record of a wait at a barrier. The last to arrive ends all waits. a2 is how many threads were missing; those
    /// that arrive at the same time do not count each other there, so what counts is how many threads make a round, if that is known.
    pub fn enter_barrier(&mut self, thread: u32, record: &NumericRecord) {
        let (object, site) = self.called_object(thread, record, ObjectKind::Barrier, record.arguments[4]);
        // It may have left another wait by a jump.
        self.leave_round(object, thread);
        let queue = &self.objects[object as usize].wakeups;
        let waits = match self.round_size(object, thread) {
            Some(size) => queue.waits.len() as u64 + 1 < size,
            None => record.arguments[1] != 1,
        };
        if let Some(order) = &mut self.order {
            order.phases.arrive(object, thread);
        }
        self.open_call(thread, record, site, Some(object), waits);
        let arrival = Waker { thread, site, time: record.time };
        let queue = &mut self.objects[object as usize].wakeups;
        let (is_first, missing) = (queue.waits.is_empty(), record.arguments[1]);
        queue.begin_wait(IdleWait { thread, entry: record.time, before_move: 0, mutex: None });
        queue.rounds.last_arrival = Some(arrival);
        if waits {
            queue.rounds.missing = if is_first { missing } else { queue.rounds.missing.max(missing) };
        } else {
            self.end_round(object, Some(arrival), record.time);
        }
    }

    /// How many threads make a round of a barrier, if it is of one process of which no record is missing.
    fn round_size(&self, object: u32, thread: u32) -> Option<u64> {
        let process = self.threads[thread as usize].process;
        let knowledge = self.processes[process as usize].knowledge;
        let is_complete = knowledge.complete_from == 0 && !knowledge.only_blocked && !knowledge.is_partial;
        self.objects[object as usize].wakeups.rounds.size.filter(|_| is_complete)
    }

    /// Ends all waits at a barrier by the arrival of the last thread, if it is one of this process, which is known at `now`: these
    /// threads run, or will.
    fn end_round(&mut self, object: u32, last: Option<Waker>, now: u64) {
        let queue = &mut self.objects[object as usize].wakeups;
        let threads: Vec<u32> = queue.end_all_waits().into_iter().map(|wait| wait.thread).collect();
        threads.iter().for_each(|thread| self.note_woken_call(*thread, object, now));
        let given_up = self.objects[object as usize].wakeups.rounds.end(threads, last);
        given_up.iter().for_each(|round| self.count_round(object, round));
        if let Some(Waker { thread, time, .. }) = last {
            self.activities.log_until(thread, time);
        }
    }

    /// Takes the return record of a wait at a barrier.
    pub fn return_from_barrier(&mut self, thread: u32, record: &NumericRecord) {
        let Some(call) = self.close_call(thread, record) else { return };
        let OngoingCall { object: Some(object), site, entry, .. } = call else { return };
        if let Some(order) = &mut self.order {
            order.phases.depart(object, thread, record.time);
        }
        let has_size = self.round_size(object, thread).is_some();
        let queue = &mut self.objects[object as usize].wakeups;
        if !queue.waits.iter().any(|wait| wait.thread == thread) {
            // Its round has ended by the arrival of another one.
        } else if has_size {
            // More threads than a round has wait there, and who arrived is another one than whose record says so.
            queue.end_wait(thread);
            queue.rounds.doubt();
        } else {
            // Threads that arrived at the same time counted the missing ones before the others were there. Who has not arrived in this
            // process has in another one.
            let has_all = queue.waits.len() as u64 >= queue.rounds.missing;
            let last = queue.rounds.last_arrival.filter(|last| has_all && last.time >= entry);
            self.end_round(object, last, record.time);
        }
        let arrival = (record.arguments[0] == LAST).then_some(Waker { thread, site, time: entry });
        let last = self.objects[object as usize].wakeups.rounds.ended_by(thread, arrival);
        match arrival {
            Some(_) => self.activities.log_until(thread, entry),
            None => {
                let waker_shows_later = self.knows_wakers(thread, entry);
                let place = WaitPlace { waker_shows_later, ..WaitPlace::new(thread, site, entry) };
                let waker = last.filter(|_| waker_shows_later);
                self.account_idleness(Some(object), record.time, 0, place, waker);
                self.end_wait(place, record.time, waker);
            }
        }
        self.leave_round(object, thread);
    }

    /// Takes that a thread is in no ended round of a barrier any more.
    pub fn leave_round(&mut self, object: u32, thread: u32) {
        let wakeups = &mut self.objects[object as usize].wakeups;
        if wakeups.rounds.is_quiet() {
            return;
        }
        if let Some(round) = wakeups.rounds.leave(thread) {
            self.count_round(object, &round);
        }
    }

    /// Counts the waits of a round that is over for the last to arrive.
    fn count_round(&mut self, object: u32, round: &EndedRound) {
        if let Some(Waker { thread, site, .. }) = round.last.filter(|_| self.parts.callers && round.waits > 0) {
            self.count_waker(object, thread, site, round.waits);
        }
    }

    /// Counts the waits of all rounds from which threads have not returned, after the last record.
    pub fn count_rounds(&mut self, object: u32) {
        if self.objects[object as usize].kind == ObjectKind::Barrier {
            for round in self.objects[object as usize].wakeups.rounds.take_all() {
                self.count_round(object, &round);
            }
        }
    }
}
