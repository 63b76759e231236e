//! Locks that a forked child finds locked by a thread of its parent. If that one forked, the child's thread has what it had, and
//! else the child has the lock without the thread that could release it.
//!
//! That is so in private memory, of which the child has a copy. In memory that processes share the parent releases the lock, and
//! records do not have which memory is shared, nor the attributes that a mutex needs for that: another program may have
//! initialised it. So the memory counts as private only if a lock was initialised there without attributes, or if it is
//! that of static variables. The latter is known to who gives the records, which answers for each lock that is in question.

use spec::event_numbers::RW_WRLOCK;

use super::analysis::Analysis;
use super::holds::Hold;
use super::object_state::ObjectKind;
use super::tables::{LockByFork, OngoingCall, OwnerByFork};

impl Analysis {
    /// Takes the owner of a lock, as the thread of a child saw it that begins to wait. Returns whether the lock is certainly the child's
    /// own copy, with an owner of before the fork.
    pub fn see_owner_by_fork(&mut self, waiter: u32, object: u32, lwp: u64, time: u64) -> bool {
        let process = self.threads[waiter as usize].process;
        let Ok(lwp) = u32::try_from(lwp) else { return false };
        // The kernel gives LWPs again: a thread of an older ancestor may have had the one that a thread of the parent has.
        let has_lwp = |ancestor: &u32| self.has_lwp(*ancestor, lwp);
        if self.processes[process as usize].parent.is_none()
            || self.line_of(process).skip(1).filter(has_lwp).count() > 1
        {
            return false;
        }
        let owner = self.first_thread_as_owner(process, object, lwp).map(OwnerByFork::FirstThread);
        let owner = owner.or_else(|| self.owner_before_fork(process, object, lwp).map(OwnerByFork::OfAncestor));
        owner.is_some_and(|owner| self.note_lock_by_fork(LockByFork { object, owner, time, waiter: Some(waiter) }))
    }

    /// Takes a lock that the first thread of a child has if its memory is private, because the thread that forked it had the lock.
    pub fn inherit_lock(&mut self, object: u32, thread: u32, time: u64) {
        self.objects[object as usize].occupancy.set_doubt(thread, true);
        let lock = LockByFork { object, owner: OwnerByFork::FirstThread(thread), time, waiter: None };
        // It was made for processes, as far as is known: then it is one lock, of which the child may be the one that releases it.
        if !self.note_lock_by_fork(lock) && self.objects[object as usize].has_attributes {
            self.set_doubt_before_fork(object, true, time);
        }
    }

    /// Takes that a thread of a forked child releases a lock that it has if its memory is private. If it is not, the thread of an ancestor
    /// does not have it any more, and the lock is one that others release.
    pub fn release_inherited_lock(&mut self, object: u32, thread: u32, time: u64) {
        let state = &self.objects[object as usize];
        let is_inherited = |hold: &Hold| hold.holder.thread == thread && hold.may_be_elsewhere;
        if self.processes[state.process as usize].parent.is_some() && state.occupancy.holds.iter().any(is_inherited) {
            let doubtful = self.set_doubt_before_fork(object, true, time);
            self.note_unlock_by_child(object, &doubtful);
        }
    }

    /// Whether a child's lock, for which a thread waits in this call, may be held by a thread that the child does not have: one of an
    /// ancestor may have had it at the fork, and nothing that threads of the child did with it since shows that nobody has.
    pub fn may_be_left_behind(&self, object: u32, call: &OngoingCall) -> bool {
        let state = &self.objects[object as usize];
        let is_anew = state.number > 1 || state.is_initialised || state.has_no_attributes;
        // A thread that has read has had no writer beside it, but maybe readers, which only keep a writer waiting.
        let waits_for_readers = state.kind == ObjectKind::Rwlock && call.event == RW_WRLOCK;
        let was_free = match waits_for_readers {
            true => state.occupancy.acquired_at() > 0,
            false => state.occupancy.changed_at() > 0,
        };
        if is_anew || was_free || !state.kind.is_copied_by_fork() {
            return false;
        }
        let mut child = state.process;
        self.line_of(state.process).skip(1).any(|ancestor| {
            let forking = self.first_tid(std::mem::replace(&mut child, ancestor));
            let Some(known) = self.object_at(ancestor, state.address).map(|known| &self.objects[known as usize]) else {
                return false;
            };
            let forked_at = self.fork_from(state.process, ancestor);
            let is_released_since = known.last_release.is_some_and(|release| release.time >= forked_at);
            // What the thread that forked had, the child has had itself.
            let is_left =
                |hold: &Hold| hold.from < forked_at && Some(self.threads[hold.holder.thread as usize].tid) != forking;
            known.kind == state.kind && (is_released_since || known.occupancy.holds.iter().any(is_left))
        })
    }

    /// The pthread_t of the first thread of a process, which is that of the thread which forked it.
    fn first_tid(&self, process: u32) -> Option<u64> {
        let first = *self.processes[process as usize].threads.first()?;
        Some(self.threads[first as usize].tid)
    }

    /// Takes whether threads of a child's ancestors may not have a lock any more that they had when they forked it. Returns the ancestors'
    /// objects that they still have as far as is known.
    fn set_doubt_before_fork(&mut self, object: u32, may_be_elsewhere: bool, now: u64) -> Vec<u32> {
        let mut held = Vec::new();
        let process = self.objects[object as usize].process;
        let (address, kind) = self.objects[object as usize].identity();
        for ancestor in self.line_of(process).skip(1).collect::<Vec<u32>>() {
            let Some(known) = self.object_at(ancestor, address) else { continue };
            let (forked_at, knowledge) = (self.fork_from(process, ancestor), self.knowledge_of(known));
            let state = &mut self.objects[known as usize];
            if state.kind == kind {
                state.occupancy.advance(now, knowledge);
                for hold in state.occupancy.holds.iter_mut().filter(|hold| hold.from < forked_at) {
                    hold.may_be_elsewhere = may_be_elsewhere;
                    held.push(known);
                }
            }
        }
        held
    }

    /// Returns whether the memory of the lock is private.
    fn note_lock_by_fork(&mut self, lock: LockByFork) -> bool {
        let is_private = self.was_initialised_without_attributes(lock.object);
        match is_private {
            true => self.settle_lock_by_fork(lock),
            false => self.locks_by_fork.push(lock),
        }
        is_private
    }

    /// Takes that the memory of a lock is private.
    pub fn settle_lock_by_fork(&mut self, lock: LockByFork) {
        let state = &mut self.objects[lock.object as usize];
        (state.may_be_held_elsewhere, state.has_attributes) = (false, false);
        let owner = match lock.owner {
            OwnerByFork::FirstThread(owner) => {
                self.objects[lock.object as usize].occupancy.set_doubt(owner, false);
                self.set_doubt_before_fork(lock.object, false, lock.time);
                self.note_own_copies(lock.object);
                if lock.waiter.is_some() {
                    self.observe_owner(lock.object, owner, lock.time);
                }
                owner
            }
            OwnerByFork::OfAncestor(owner) => owner,
        };
        let Some(waiter) = lock.waiter else { return };
        if let Some(call) = self.threads[waiter as usize].open.last_mut().filter(|call| call.entry == lock.time) {
            call.owner = Some(owner);
        }
    }

    /// The first thread of a forked child, if an LWP is that of the thread which forked it.
    fn first_thread_as_owner(&self, process: u32, object: u32, lwp: u32) -> Option<u32> {
        let parent = self.processes[process as usize].parent?;
        let first = *self.processes[process as usize].threads.first()?;
        let forking = *self.thread_of_lwp.get(&(parent, lwp))?;
        let has_forked = Some(self.threads[forking as usize].tid) == self.first_tid(process);
        let may_be_it = |ancestor: u32| match self.is_of_kind(ancestor, object) {
            Some(is_of_kind) => is_of_kind,
            None => {
                // Initialisations are recorded at each level.
                let knowledge = self.processes[ancestor as usize].knowledge;
                knowledge.complete_from == 0 && !knowledge.is_partial
            }
        };
        (has_forked && self.line_of(process).all(may_be_it)).then_some(first)
    }

    /// The thread of an ancestor that had a lock when that forked, by its LWP.
    fn owner_before_fork(&self, process: u32, object: u32, lwp: u32) -> Option<u32> {
        let ancestors = || self.line_of(process).skip(1);
        let may_be_it = |ancestor: u32| {
            !self.processes[ancestor as usize].knowledge.is_partial && self.is_of_kind(ancestor, object) != Some(false)
        };
        let owner = ancestors().find_map(|ancestor| self.thread_of_lwp.get(&(ancestor, lwp)).copied())?;
        let is_known = self.is_of_kind(self.threads[owner as usize].process, object).is_some();
        (is_known && ancestors().all(may_be_it)).then_some(owner)
    }

    /// Whether the object at the address of another one is of the same kind in a process; `None` if none is known there.
    fn is_of_kind(&self, process: u32, object: u32) -> Option<bool> {
        let (address, kind) = self.objects[object as usize].identity();
        Some(self.kind_at(process, address)? == kind)
    }

    /// Whether a lock was initialised in its process or in an ancestor, so that it is none for several processes.
    pub fn was_initialised_without_attributes(&self, object: u32) -> bool {
        let (address, kind) = self.objects[object as usize].identity();
        let is_so = |process: u32| {
            let known = self.object_at(process, address).map(|known| &self.objects[known as usize]);
            known.is_some_and(|known| known.kind == kind && known.has_no_attributes)
        };
        self.line_of(self.objects[object as usize].process).any(is_so)
    }

    /// A process and its ancestors, the nearest first.
    pub fn line_of(&self, process: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(process), |process| self.processes[*process as usize].parent)
    }
}

impl ObjectKind {
    /// Whether a forked child has a copy of it that stays locked.
    pub fn is_copied_by_fork(self) -> bool {
        use ObjectKind::{Mutex, Rmutex, Rwlock, Spin};
        matches!(self, Mutex | Rmutex | Rwlock | Spin)
    }

    /// Whether there are such objects that go to the next one who waits when their owner ends.
    pub fn can_be_robust(self) -> bool {
        matches!(self, ObjectKind::Mutex | ObjectKind::Rmutex)
    }
}
