//! Threads that are cancelled in a wait.
//!
//! A wait for a condition ends with the condition's mutex also then. Before that, unwinding begins, which calls pthread_once: the record
//! of that is none of a thread that has left its wait. It is known by its site, in a library that libc opens when the first thread is
//! cancelled: who gives the records looks it up.

use spec::event_numbers::{
    COND_CLOCKWAIT, COND_TIMEDWAIT, COND_WAIT, SEMA_TIMEDWAIT, SEMA_WAIT, THR_JOIN, THR_TIMEDJOIN,
};

use super::analysis::Analysis;
use super::numeric_record::NumericRecord;
use super::tables::{OngoingCall, ThreadState};

/// The calls that a cancellation ends: joins, and waits for conditions and semaphores.
const ENDED_BY_CANCELLATION: [(u8, u8); 7] =
    [THR_JOIN, THR_TIMEDJOIN, COND_WAIT, COND_TIMEDWAIT, COND_CLOCKWAIT, SEMA_WAIT, SEMA_TIMEDWAIT];

/// As `pthread.h` has it on Linux.
const PTHREAD_CANCEL_DISABLE: u64 = 1;

impl Analysis {
    /// Takes a call of pthread_cancel.
    pub fn cancel(&mut self, thread: u32, record: &NumericRecord) {
        let process = self.threads[thread as usize].process;
        if let Some(&cancelled) = self.thread_of_tid.get(&(process, record.arguments[0])) {
            self.threads[cancelled as usize].cancelled.get_or_insert(record.time);
        }
    }

    /// Takes that a thread lets itself be cancelled from now on, or does not.
    pub fn set_cancel_state(&mut self, thread: u32, record: &NumericRecord) {
        let [state, _, rval, ..] = record.arguments;
        if rval == 0 {
            self.threads[thread as usize].disables_cancel = state == PTHREAD_CANCEL_DISABLE;
        }
    }

    /// Takes the entry record of pthread_once, which the unwinding of a cancelled thread calls before the wait's end: who gives the records
    /// answers whether its site is in the code of that.
    pub fn note_unwinding(&mut self, thread: u32, record: &NumericRecord) {
        if self.threads[thread as usize].may_unwind() {
            let process = self.threads[thread as usize].process;
            self.unwinding = Some((thread, self.sites.intern(process, record.arguments[4])));
        }
    }

    /// Takes that the record in progress is that of unwinding.
    pub fn unwind(&mut self, thread: u32) {
        let state = &mut self.threads[thread as usize];
        state.unwound_at = state.last;
    }
}

impl ThreadState {
    /// The wait without a time limit that a cancellation ends, unless the thread does not let itself be cancelled.
    pub fn cancelled_wait(&self) -> Option<&OngoingCall> {
        let lasts = |call: &&OngoingCall| call.waits && matches!(call.event, THR_JOIN | COND_WAIT | SEMA_WAIT);
        let call = self.call_with_mutex().filter(|call| self.may_be_cancelled_in(call))?;
        Some(call).filter(|call| lasts(call) && !self.may_have_left(call))
    }

    /// Whether a cancellation may have ended what the call waits for: the thread may run cleanup handlers, or wait for the mutex of a
    /// condition. For that one waits also who has been woken, cancelled or not.
    pub fn may_be_cancelled_in(&self, call: &OngoingCall) -> bool {
        let may_end = self.cancelled.is_some() && !self.disables_cancel && call.woken.is_none();
        may_end && ENDED_BY_CANCELLATION.contains(&call.event)
    }

    /// Whether a record in progress may be that of unwinding, because the thread was cancelled in the wait that it is in.
    pub fn may_unwind(&self) -> bool {
        let is_in = |call: &OngoingCall| {
            let has_left = self.last_before > call.entry && self.last_before != self.unwound_at;
            ENDED_BY_CANCELLATION.contains(&call.event) && !has_left
        };
        self.cancelled.is_some() && self.open.last().is_some_and(is_in)
    }
}
