//! Locks that a thread of another process holds.
//!
//! Each process has its own object for a lock that several share, perhaps at another address, and records do not have which memory
//! is shared. But a thread that begins to wait reads the owner's LWP in the lock (THR_TRACE_DETAIL). If that is a thread of another
//! process, the memory is shared, unless it is a copy of what an ancestor's thread had locked when it forked.
//! What is not recorded of the owner is whether it has released the lock since: that is certain only where its own records show it.

use super::analysis::Analysis;
use super::holds::Hold;
use super::tables::{ImageEnd, OngoingCall, ThreadState};

impl Analysis {
    /// The thread of another process that has what a thread waits for in a call, if that is certain.
    pub fn owner_elsewhere(&self, waiter: u32, call: &OngoingCall) -> Option<u32> {
        let process = self.threads[waiter as usize].process;
        let lwp = call.other_owner;
        if lwp == 0 {
            return None;
        }
        let system = self.processes[process as usize].knowledge.system;
        let may_be_it = |thread: &&ThreadState| {
            let its = &self.processes[thread.process as usize];
            let is_there = !thread.has_exited && matches!(its.end, ImageEnd::Unknown | ImageEnd::Running);
            thread.lwp == lwp
                && thread.process != process
                && thread.begin < call.entry
                && is_there
                && !thread.is_in_gap
                && its.knowledge.system == system
        };
        let mut threads = (0..).zip(&self.threads).filter(|(_, thread)| may_be_it(thread)).map(|(index, _)| index);
        let owner: u32 = threads.next().filter(|_| threads.next().is_none())?;
        let owners_process = self.threads[owner as usize].process;
        // The LWP may have been that of an ancestor's thread, of which the process has a copy.
        let mut ancestors = self.line_of(process).skip(1);
        let ancestor = ancestors.find(|ancestor| self.thread_of_lwp.contains_key(&(*ancestor, lwp)));
        if ancestor.is_some_and(|ancestor| ancestor != owners_process) {
            return None;
        }
        let has_it = match ancestor {
            Some(_) => self.has_same_lock(owner, process, call, self.fork_from(process, owners_process)),
            None => {
                self.has_same_lock(owner, process, call, 0)
                    || self.waits_since_before(owner, call)
                    || self.has_released_nothing(owner, call)
            }
        };
        has_it.then_some(owner)
    }

    /// When the line of a process had left an ancestor, so that it has no copies of what is locked there from then on.
    fn fork_from(&self, process: u32, ancestor: u32) -> u64 {
        let line = self.line_of(process).take_while(|it| *it != ancestor);
        line.last().map_or(u64::MAX, |child| self.processes[child as usize].forked_at)
    }

    /// Whether a thread took the lock at the same address after a time and before the call, and has it still. Processes that were forked
    /// have what they share at one address.
    fn has_same_lock(&self, owner: u32, process: u32, call: &OngoingCall, after: u64) -> bool {
        let root = |process: u32| self.line_of(process).last();
        let owners_process = self.threads[owner as usize].process;
        let Some(object) = call.object.filter(|_| root(process) == root(owners_process)) else { return false };
        let (address, kind) = self.objects[object as usize].identity();
        let Some(own) = self.object_at(owners_process, address).map(|own| &self.objects[own as usize]) else {
            return false;
        };
        let is_it = |hold: &Hold| {
            let was_there = after < hold.from && hold.from <= call.entry;
            hold.holder.thread == owner && hold.is_recorded && !hold.is_doubtful && was_there
        };
        let shows_releases = !self.processes[owners_process as usize].knowledge.leaves_calls_out();
        shows_releases && own.kind == kind && own.occupancy.is_exclusive() && own.occupancy.holds.iter().any(is_it)
    }

    /// Whether a thread was in its present wait when it was seen as the owner: who waits does not release, but for the mutex of a
    /// condition.
    fn waits_since_before(&self, owner: u32, call: &OngoingCall) -> bool {
        let present = self.threads[owner as usize].certain_call();
        present.is_some_and(|present| present.waits && present.mutex.is_none() && present.entry < call.entry)
    }

    /// Whether a thread has released no lock since it was seen as an owner, and had released none at that time: it has acquired one in
    /// between, so that its last release had taken effect.
    fn has_released_nothing(&self, owner: u32, call: &OngoingCall) -> bool {
        let state = &self.threads[owner as usize];
        let released = state.last_release.map_or(0, |(_, time)| time);
        let is_later = |object: &u32| {
            let mut holds = self.objects[*object as usize].occupancy.holds.iter();
            holds.any(|hold| {
                hold.holder.thread == owner && hold.is_recorded && released < hold.from && hold.from <= call.entry
            })
        };
        let knowledge = self.processes[state.process as usize].knowledge;
        let waits_for_cond = state.open.iter().any(|open| open.mutex.is_some());
        !knowledge.leaves_calls_out() && !waits_for_cond && state.holds.iter().any(is_later)
    }
}
