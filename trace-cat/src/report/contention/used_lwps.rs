//! LWPs that the kernel has given to several threads, one after the other.
//!
//! A lock shows its owner by the LWP. If a thread leaves it locked and ends, a later thread with the same LWP seems to have it: one of
//! the same process, one of a forked child, which has a copy of the lock, or one of another process that shares the memory. So what
//! only the LWP shows of such a thread is in doubt.

use super::analysis::Analysis;
use super::holds::Hold;
use super::numeric_record::NumericRecord;
use super::tables::{ProgramState, ThreadState};

impl Analysis {
    /// Whether locks of a process may have the LWP of a thread that has ended before the one began whose first record this is: copies of
    /// locks have those of ancestors' threads. A child's first thread has what the LWP of the thread shows that forked it.
    pub fn is_lwp_used(&self, process: u32, record: &NumericRecord) -> bool {
        let state = &self.processes[process as usize];
        let forking = state.parent.and_then(|parent| self.thread_of_tid.get(&(parent, record.tid)));
        let is_first = state.threads.is_empty();
        self.line_of(process).any(|process| self.has_lwp(process, record.lwp))
            || is_first && forking.is_some_and(|forking| self.threads[*forking as usize].has_used_lwp)
    }

    /// Whether an ended thread may have left the lock locked, whose LWP the holder has: nothing but the LWP shows that holder.
    pub fn may_be_predecessors(&self, object: u32, hold: &Hold) -> bool {
        !hold.is_recorded && self.has_predecessor(object, hold.holder.thread)
    }

    /// Whether the LWP of a thread in a lock of its process may be that of a thread that has ended.
    pub fn has_predecessor(&self, object: u32, thread: u32) -> bool {
        let state = &self.threads[thread as usize];
        let is_earlier =
            |other: &ThreadState| other.lwp == state.lwp && other.process != state.process && other.begin < state.begin;
        let may_be_any = || self.may_be_elsewhere(object) || self.may_be_any_processes_child(state.process);
        state.has_used_lwp || may_be_any() && self.threads.iter().any(is_earlier)
    }

    /// Whether a process may be a forked child of any other one: its first record does not show whose.
    fn may_be_any_processes_child(&self, process: u32) -> bool {
        let ProgramState { knowledge, parent, image, .. } = &self.processes[process as usize];
        (knowledge.is_forked || knowledge.lacks_settings) && parent.is_none() && *image == 0
    }
}
