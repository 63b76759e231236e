//! Time limits of waits for conditions, in the time of the records.

use super::analysis::Analysis;
use super::numeric_record::NumericRecord;
use super::tables::OngoingCall;

impl Analysis {
    /// Whether the time limit of a wait for a condition is over, by the last record of the process. A limit of before the call is one of
    /// a clock that is not known.
    pub fn is_at_limit(&self, thread: u32, call: &OngoingCall) -> bool {
        let process = &self.processes[self.threads[thread as usize].process as usize];
        self.limit_of(thread, call).is_some_and(|limit| limit < process.last)
    }

    /// The time limit of a wait, in the time of records, if its clock is known.
    fn limit_of(&self, thread: u32, call: &OngoingCall) -> Option<u64> {
        let process = &self.processes[self.threads[thread as usize].process as usize];
        let clock = call.clock.or_else(|| self.objects[call.object? as usize].clock).unwrap_or(0);
        let ahead = match clock {
            libc::CLOCK_REALTIME => Some(process.knowledge.realtime_ahead),
            libc::CLOCK_MONOTONIC => process.knowledge.monotonic_ahead,
            _ => None,
        };
        let limit = ahead.and_then(|ahead| call.time_limit.checked_add_signed(ahead));
        limit.filter(|limit| call.time_limit > 0 && call.entry < *limit)
    }

    /// Takes the clock of a condition that is initialised.
    pub fn note_clock(&mut self, thread: u32, record: &NumericRecord) {
        let process = self.threads[thread as usize].process;
        let [address, _, clock, rval, _] = record.arguments;
        if let Some(cond) = self.object_at(process, address).filter(|_| rval == 0) {
            self.objects[cond as usize].clock = Some(clock as i32);
        }
    }
}
