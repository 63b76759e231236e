//! Locks that a thread of another process holds.
//!
//! Each process has its own object for a lock that several share, perhaps at another address, and records do not have which memory
//! is shared. But a thread that begins to wait reads the owner's LWP in the lock (THR_TRACE_DETAIL). If that is a thread of another
//! process, the memory is shared, unless it is a copy of what an ancestor's thread had locked when it forked. Which of the owner's
//! objects it is, is known if it is older than the processes: then both have it at one address.
//! What is not recorded of the owner is whether it has released the lock since: that is certain only where its own records show it.
//! Where such a wait has shown that two objects are one lock, who holds one of them later holds the other one, too.

use super::analysis::Analysis;
use super::holds::Hold;
use super::object_state::ObjectState;
use super::tables::{ImageEnd, OngoingCall, ProgramState, ThreadState};

/// In how many of the latest processes the owner of a lock is searched for when a wait begins, or another one's unlock is seen.
const SEARCHED_MAX: usize = 256;

impl Analysis {
    /// The thread of another process that has what a thread waits for in a call, as that has seen, and whether this is certain: it is
    /// the only one with the LWP here, but in memory that processes share the LWP may be of a PID namespace that no record is from.
    pub fn owner_elsewhere(&self, waiter: u32, call: &OngoingCall) -> Option<(u32, bool)> {
        let process = self.threads[waiter as usize].process;
        let lwp = call.other_owner;
        if lwp == 0 {
            return None;
        }
        let system = self.processes[process as usize].knowledge.system;
        let may_be_it = |thread: &&ThreadState| {
            let its = &self.processes[thread.process as usize];
            let is_there = !thread.has_ended() && matches!(its.end, ImageEnd::Unknown | ImageEnd::Running);
            thread.lwp == lwp
                && thread.process != process
                && thread.begin < call.entry
                && is_there
                && !thread.is_in_gap
                && its.knowledge.system == system
        };
        let mut threads = (0..).zip(&self.threads).filter(|(_, thread)| may_be_it(thread)).map(|(index, _)| index);
        let owner: u32 = threads.next().filter(|_| threads.next().is_none())?;
        let is_of_ancestor = self.line_of(process).skip(1).any(|ancestor| self.has_lwp(ancestor, lwp));
        let has_it = self.has_same_lock(owner, process, call);
        let may_have_it =
            || !is_of_ancestor && (self.waits_since_before(owner, call) || self.has_released_nothing(owner, call));
        // Nor is it certain of a lock that others unlock than its owner.
        let is_its_own = call.object.is_some_and(|object| !self.objects[object as usize].has_no_certain_owner());
        (has_it || may_have_it()).then_some((owner, has_it && is_its_own))
    }

    /// Whether a thread of a process has an LWP, or had it.
    pub fn has_lwp(&self, process: u32, lwp: u32) -> bool {
        self.thread_of_lwp.contains_key(&(process, lwp))
    }

    /// Takes the beginning of a wait for a lock that a thread of another process has: their objects are one lock, if both have one address.
    pub fn note_shared_lock(&mut self, waiter: u32) {
        let state = &self.threads[waiter as usize];
        let Some(&call) = state.open.last().filter(|call| call.other_owner != 0) else { return };
        // The others note theirs when their threads wait.
        let Some(object) = call.object.filter(|object| !self.shared_locks.contains_key(object)) else {
            return;
        };
        let mut owners =
            self.latest_processes().filter_map(|process| self.thread_of_lwp.get(&(process, call.other_owner)).copied());
        let Some(owner) = owners.find(|owner| self.has_same_lock(*owner, state.process, &call)) else { return };
        let address = self.objects[object as usize].address;
        let Some(other) = self.object_at(self.threads[owner as usize].process, address) else { return };
        let group = self.shared_locks.get(&other).copied().unwrap_or(other);
        for part in [object, other] {
            self.shared_locks.insert(part, group);
            let state = &mut self.objects[part as usize];
            (state.is_named, state.may_be_held_elsewhere) = (true, true);
        }
    }

    /// Whether an LWP is that of a thread of one of the latest processes, but of none of this one.
    pub fn is_of_other_process(&self, lwp: u32, process: u32) -> bool {
        !self.has_lwp(process, lwp) && self.latest_processes().any(|other| self.has_lwp(other, lwp))
    }

    pub fn latest_processes(&self) -> impl Iterator<Item = u32> + use<> {
        (0..self.processes.len() as u32).rev().take(SEARCHED_MAX)
    }

    /// The objects of the latest processes that may be one lock with this one, which has the same address and is of the same kind.
    pub fn objects_elsewhere(&self, object: u32) -> impl Iterator<Item = u32> {
        let (address, kind) = self.objects[object as usize].identity();
        let is_alike = move |other: &u32| {
            let state = &self.objects[*other as usize];
            *other != object && state.kind == kind && (state.may_be_held_elsewhere || state.has_attributes)
        };
        self.latest_processes().filter_map(move |process| self.object_at(process, address)).filter(is_alike)
    }

    /// The thread of another process that has the object which is one lock with that of a call.
    pub fn holder_elsewhere(&self, waiter: u32, call: &OngoingCall) -> Option<u32> {
        let process = self.threads[waiter as usize].process;
        let is_taken_elsewhere = |own: &u32| {
            let state = &self.objects[*own as usize];
            state.occupancy.holds.is_empty() && !state.has_no_certain_owner()
        };
        let own = call.object.filter(is_taken_elsewhere)?;
        let group = *self.shared_locks.get(&own)?;
        let has_it = |(index, thread): &(u32, &ThreadState)| {
            let its = &self.processes[thread.process as usize];
            let is_there = !thread.has_ended() && matches!(its.end, ImageEnd::Unknown | ImageEnd::Running);
            let holds_it = |object: &u32| {
                let state = &self.objects[*object as usize];
                let is_it = |hold: &Hold| {
                    // It had it when the wait began, as the waiter saw, or has taken it since, and is the last one.
                    let is_seen = hold.from > call.entry || thread.lwp == call.other_owner;
                    let is_last = !self.is_released_after(group, hold.from);
                    hold.holder.thread == *index && hold.is_recorded && !hold.is_doubtful() && is_seen && is_last
                };
                self.shared_locks.get(object) == Some(&group)
                    && state.occupancy.is_exclusive()
                    && state.occupancy.holds.iter().any(is_it)
            };
            let shows_releases = !its.knowledge.leaves_calls_out() && !thread.is_in_gap;
            thread.process != process && is_there && shows_releases && thread.holds.iter().any(holds_it)
        };
        (0..).zip(&self.threads).find(has_it).map(|(index, _)| index)
    }

    /// Whether a thread has released one of the objects that are one lock after a moment.
    fn is_released_after(&self, group: u32, moment: u64) -> bool {
        let mut of_group = self.shared_locks.iter().filter(|(_, of)| **of == group);
        of_group
            .any(|(object, _)| self.objects[*object as usize].last_release.is_some_and(|release| release.time > moment))
    }

    /// When the line of a process had left an ancestor, so that it has no copies of what is locked there from then on.
    pub fn fork_from(&self, process: u32, ancestor: u32) -> u64 {
        let line = self.line_of(process).take_while(|it| *it != ancestor);
        line.last().map_or(u64::MAX, |child| self.processes[child as usize].forked_at)
    }

    /// The addresses of the locks that threads of a process have since before a moment, with the threads.
    fn locks_held(&self, process: u32, moment: u64) -> Vec<(u64, u32)> {
        let threads = self.processes[process as usize].threads.iter();
        let of_thread = |thread: &u32| {
            let is_held = |object: &&u32| {
                let mut holds = self.objects[**object as usize].occupancy.holds.iter();
                holds.any(|hold| hold.holder.thread == *thread && hold.from < moment)
            };
            let objects = self.threads[*thread as usize].holds.iter().filter(is_held);
            objects.map(|object| (self.objects[*object as usize].address, *thread)).collect::<Vec<_>>()
        };
        threads.flat_map(of_thread).collect()
    }

    /// Takes that a thread has begun to fork, if the child gets a copy of the memory.
    pub fn note_held_when_forking(&mut self, thread: u32) {
        let state = &self.threads[thread as usize];
        if state.open.last().is_some_and(|call| call.waits) {
            let process = state.process;
            self.processes[process as usize].held_when_forking = self.locks_held(process, u64::MAX);
            self.processes[process as usize].is_forking = true;
        }
    }

    /// Takes that a thread has released a lock: while another one forks, the memory may have been copied before.
    pub fn note_released_when_forking(&mut self, object: u32, thread: u32) {
        /// How many are kept of a fork.
        const RELEASED_MAX: usize = 256;
        let ObjectState { process, address, .. } = self.objects[object as usize];
        let ProgramState { is_forking, held_when_forking, .. } = &mut self.processes[process as usize];
        let released = (address, thread);
        if *is_forking && held_when_forking.len() < RELEASED_MAX && !held_when_forking.contains(&released) {
            held_when_forking.push(released);
        }
    }

    /// Takes the first record of a forked child, until which threads of its parent may have released what they had at the fork.
    pub fn note_held_at_fork(&mut self, child: u32, parent: u32) {
        let before = self.processes[parent as usize].held_when_forking.clone();
        let now = self.locks_held(parent, self.processes[child as usize].forked_at);
        self.processes[child as usize].held_at_fork = [before, now].concat();
    }

    /// Whether a thread of an ancestor may have had the lock at an address when the line of a process left that: a copy of the lock has
    /// its LWP.
    fn had_at_fork(&self, process: u32, ancestor: u32, address: u64, thread: u32) -> bool {
        let line = self.line_of(process).take_while(|it| *it != ancestor);
        line.last().is_some_and(|child| self.processes[child as usize].held_at_fork.contains(&(address, thread)))
    }

    /// Whether two processes have one object at an address: their common ancestor had it there before it forked them, and none of them
    /// has initialised another one there. What they map later may be anything.
    fn have_one_object(&self, processes: [u32; 2], address: u64) -> bool {
        let [line, other] = processes.map(|process| self.line_of(process).collect::<Vec<u32>>());
        let Some(common) = line.iter().find(|process| other.contains(process)).copied() else { return false };
        let Some(object) = self.object_at(common, address) else { return false };
        let has_it = |process: u32| {
            let is_first = self.processes[process as usize].objects_before > object;
            let own = self.object_at(process, address).map(|own| &self.objects[own as usize]);
            is_first && own.is_none_or(|own| own.number == 1 && !own.is_initialised)
        };
        let mut forked = [line, other].into_iter().flat_map(|line| line.into_iter().take_while(|it| *it != common));
        forked.all(has_it)
    }

    /// Whether a thread took the lock at the same address before the call, and has it still, and it is one lock. It is no copy that the
    /// process has from a fork: the LWP is of none of its ancestors, or the thread took the lock after the fork and did not have it then.
    fn has_same_lock(&self, owner: u32, process: u32, call: &OngoingCall) -> bool {
        let owners_process = self.threads[owner as usize].process;
        let mut ancestors = self.line_of(process).skip(1);
        let after = match ancestors.find(|ancestor| self.has_lwp(*ancestor, call.other_owner)) {
            Some(ancestor) if ancestor != owners_process => return false,
            Some(ancestor) => self.fork_from(process, ancestor),
            None => 0,
        };
        let Some(object) = call.object else { return false };
        let (address, kind) = self.objects[object as usize].identity();
        if !self.have_one_object([process, owners_process], address) {
            return false;
        }
        let Some(own) = self.object_at(owners_process, address).map(|own| &self.objects[own as usize]) else {
            return false;
        };
        if after > 0 && self.had_at_fork(process, owners_process, address, owner) {
            return false;
        }
        let is_it = |hold: &Hold| {
            let was_there = after < hold.from && hold.from <= call.entry;
            hold.holder.thread == owner && hold.is_recorded && !hold.is_doubtful() && was_there
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
