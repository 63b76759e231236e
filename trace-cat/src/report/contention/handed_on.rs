//! Locks that other threads release than those that have them.
//!
//! POSIX leaves that undefined for mutexes, and programs use them as semaphores. A read lock has no owner at all. As soon as a record
//! shows that a lock is used so, nobody knows who will release it: who waits for it is in no deadlock for certain.

use super::analysis::Analysis;
use super::holds::Hold;
use super::object_state::{ObjectKind, ObjectState};
use super::tables::HandedOnLock;

impl Analysis {
    /// Notes of a lock that this thread unlocks whether another one owns it: it has it for certain, or waits for it although it has it. The
    /// owner may be of another process, which has an object of its own for the lock. Returns whether the thread has released one of
    /// the read locks that threads of its process have.
    pub fn note_handing_on(&mut self, object: u32, thread: u32, now: u64) -> bool {
        let state = &self.objects[object as usize];
        if state.kind == ObjectKind::Rmutex || state.occupancy.depth(thread) > 0 {
            return false;
        }
        if state.kind == ObjectKind::Rwlock && !state.occupancy.is_exclusive() {
            return self.note_reader_of_another(object, thread, now);
        }
        if state.is_handed_on {
            return false;
        }
        let unlocked = object;
        let is_another_ones = |object: &u32| {
            let occupancy = &self.objects[*object as usize].occupancy;
            let waits_for_itself = |waiter: u32| {
                let call = self.threads[waiter as usize].open.last();
                call.is_some_and(|call| call.object == Some(*object) && call.owner == Some(waiter))
            };
            let is_owned = occupancy.holds.iter().any(|hold| self.has_still(*object, hold, (unlocked, thread)));
            is_owned || occupancy.waiting_threads().into_iter().any(waits_for_itself)
        };
        let others = self.perhaps_the_same(object);
        if is_another_ones(&object)
            || others.iter().any(is_another_ones)
            || self.unlocks_for_another(object, thread, &others)
        {
            self.note_handed_on(object);
        }
        false
    }

    /// Whether a thread has an object for certain that another one unlocks: neither has that one got it since, nor the first released
    /// it, without a record.
    fn has_still(&self, object: u32, hold: &Hold, (unlocked, unlocker): (u32, u32)) -> bool {
        let state = &self.threads[unlocker as usize];
        // In a ring all records of the first since then are there. If losses of it are not counted yet, the acquisition by the other one shows it.
        let mut complete_from = state.complete_from.max(self.processes[state.process as usize].changed_at);
        if object != unlocked {
            // It may be a lock of its own, of which the acquisition is overwritten.
            complete_from = complete_from.max(self.knowledge_of(unlocked).complete_from);
        }
        self.shows_holds(object)
            && hold.is_recorded
            && !hold.is_doubtful()
            && hold.from >= complete_from
            && !self.may_be_from_wait(object, hold, (unlocked, unlocker))
    }

    /// Whether a thread may have got a mutex back in a wait for a condition, while the one that took it since is in such a wait, and
    /// neither has a record.
    fn may_be_from_wait(&self, object: u32, hold: &Hold, (unlocked, unlocker): (u32, u32)) -> bool {
        let misses_conds = |object: u32| self.knowledge_of(object).misses_conds;
        if self.objects[object as usize].kind != ObjectKind::Mutex || !misses_conds(object) && !misses_conds(unlocked) {
            return false;
        }
        let waits_elsewhere = self.threads[hold.holder.thread as usize].certain_call().is_some_and(|call| call.waits);
        // It had it before the other one took it.
        let may_wait = self.objects[unlocked as usize].has_lost_holds || !self.threads[unlocker as usize].knows_holds;
        may_wait && !waits_elsewhere
    }

    /// Whether another thread has unlocked a lock that a thread gets again although it has it, also if that one's record is missing, as
    /// from its ring. The thread's own records are complete since then: it would have forgotten what it has where they are not. Where no
    /// record is missing the program has made another lock there, in memory that it had freed.
    pub fn shows_unlock_by_another(&self, object: u32, hold: &Hold) -> bool {
        use ObjectKind::{Mutex, Rwlock, Spin};
        let state = &self.objects[object as usize];
        let process = &self.processes[state.process as usize];
        hold.is_recorded
            && (process.knowledge.complete_from > 0 || self.may_be_elsewhere(object))
            // What a forked child has from its parent it may have made anew by an assignment.
            && !self.is_inherited(object, hold)
            && matches!(state.kind, Mutex | Rwlock | Spin)
            && !self.knowledge_of(object).leaves_calls_out()
    }

    /// Takes that a thread of a child has unlocked a lock that it has from its parent, while those of ancestors have `held` as far as is
    /// known. If the memory is not private, the lock is one that processes hand on. A recursive mutex checks its owner.
    pub fn note_unlock_by_child(&mut self, object: u32, held: &[u32]) {
        let is_exclusive = |object: &u32| self.objects[*object as usize].occupancy.is_exclusive();
        if self.objects[object as usize].kind != ObjectKind::Rmutex && held.iter().any(is_exclusive) {
            self.set_may_be_handed_on(object, true);
        }
    }

    /// Takes that the memory of a lock is private: what a child does with its own is no sign for others.
    pub fn note_own_copies(&mut self, object: u32) {
        if self.objects[object as usize].may_be_handed_on {
            self.set_may_be_handed_on(object, false);
        }
    }

    /// Takes that a thread has released what it had. If a child has unlocked that before, each has a lock of its own: one lock would be free.
    /// But a thread of another process may have taken it in between, and this one may have released it for that one.
    pub fn note_own_release(&mut self, object: u32, thread: u32, hold: &Hold) {
        let is_own = hold.holder.thread == thread && hold.may_be_elsewhere;
        if !is_own || !self.objects[object as usize].may_be_handed_on {
            return;
        }
        let may_be_taken = |other: &u32| {
            let occupancy = &self.objects[*other as usize].occupancy;
            // What a child has from its parent it has not taken since.
            let is_old =
                !occupancy.holds.is_empty() && occupancy.holds.iter().all(|hold| self.is_inherited(*other, hold));
            !is_old && !occupancy.is_free(self.knowledge_of(*other))
        };
        if !self.objects_of_relatives(object).iter().filter(|other| **other != object).any(may_be_taken) {
            self.set_may_be_handed_on(object, false);
        }
    }

    /// Whether a child has unlocked what a thread had at its fork, since another one gets it, or that thread itself again.
    pub fn shows_unlock_by_child(&self, object: u32, hold: &Hold) -> bool {
        // What a child has from its parent that one may have released itself.
        let is_kept = hold.is_recorded && hold.may_be_elsewhere && !self.is_inherited(object, hold);
        is_kept && !self.knowledge_of(object).leaves_calls_out()
    }

    /// Whether the first thread of a forked child has an object because the one that forked it had it.
    fn is_inherited(&self, object: u32, hold: &Hold) -> bool {
        let process = &self.processes[self.objects[object as usize].process as usize];
        process.parent.is_some() && hold.from == process.begin
    }

    /// Takes that processes share a lock, and hand it on.
    pub fn note_shared_and_handed_on(&mut self, object: u32) {
        for object in self.objects_of_relatives(object) {
            self.objects[object as usize].may_be_held_elsewhere = true;
            self.set_handed_on(object, false);
        }
    }

    fn set_may_be_handed_on(&mut self, object: u32, may_be_handed_on: bool) {
        for object in self.objects_of_relatives(object) {
            self.objects[object as usize].may_be_handed_on = may_be_handed_on;
        }
    }

    /// The objects of a kind at an address in a process, its ancestors, and the latest processes that are of one family with these.
    fn objects_of_relatives(&self, object: u32) -> Vec<u32> {
        let process = self.objects[object as usize].process;
        let (address, kind) = self.objects[object as usize].identity();
        let first = |process: u32| self.line_of(process).last();
        let is_relative = |other: &u32| first(*other) == first(process);
        let others = self.latest_processes().filter(is_relative);
        let mut objects: Vec<u32> =
            self.line_of(process).chain(others).filter_map(|process| self.object_at(process, address)).collect();
        objects.retain(|object| self.objects[*object as usize].kind == kind);
        objects.sort_unstable();
        objects.dedup();
        objects
    }

    /// The objects of other processes that may be one lock with this one.
    fn perhaps_the_same(&self, object: u32) -> Vec<u32> {
        if self.may_be_elsewhere(object) { self.objects_elsewhere(object).collect() } else { Vec::new() }
    }

    /// Whether a thread unlocks what a thread of another process has, as one saw that waits for it: no record shows that anybody has acquired
    /// or released it since. Where acquisitions that do not wait make no record, this one may have got it just before the waiter could
    /// be seen; it is not certain then that others unlock it, nor that they do not.
    fn unlocks_for_another(&self, object: u32, thread: u32, others: &[u32]) -> bool {
        if !self.may_be_elsewhere(object) {
            return false;
        }
        let process = self.threads[thread as usize].process;
        let objects = || others.iter().copied().chain([object]);
        let occupancy = |object: u32| &self.objects[object as usize].occupancy;
        let changed_at = objects().map(|object| occupancy(object).changed_at()).max().unwrap_or(0);
        let sees_another = |(object, waiter): (u32, u32)| {
            let call = self.threads[waiter as usize].open.last();
            let Some(call) = call.filter(|call| call.object == Some(object) && changed_at <= call.entry) else {
                return false;
            };
            let owner = call.owner.map_or(call.other_owner, |owner| self.threads[owner as usize].lwp);
            owner != 0 && self.is_of_other_process(owner, process)
        };
        objects()
            .flat_map(|object| occupancy(object).waiting_threads().into_iter().map(move |waiter| (object, waiter)))
            .any(sees_another)
    }

    /// Takes that others unlock a lock than those that have it, also in other processes.
    pub fn note_handed_on(&mut self, object: u32) {
        let others = self.perhaps_the_same(object);
        others.into_iter().chain([object]).for_each(|object| self.set_handed_on(object, false));
    }

    /// Notes that others release an object, or what readers have of it, which also holds for copies that children get.
    fn set_handed_on(&mut self, object: u32, of_readers: bool) {
        let state = &mut self.objects[object as usize];
        if of_readers && state.hands_on_readers {
            return;
        }
        state.is_handed_on |= !of_readers;
        state.hands_on_readers |= of_readers;
        let &mut ObjectState { process, address, kind, is_handed_on, hands_on_readers, .. } = state;
        let lock = HandedOnLock { kind, is_handed_on, hands_on_readers };
        self.processes[process as usize].handed_on.insert(address, lock);
    }

    /// Takes that a lock is made anew, by an initialisation: nobody is known to have done anything with that.
    pub fn forget_handed_on(&mut self, object: u32) {
        let state = &mut self.objects[object as usize];
        (state.is_handed_on, state.hands_on_readers, state.may_be_handed_on) = (false, false, false);
        state.has_lost_holds = false;
        let (process, address) = (state.process, state.address);
        self.processes[process as usize].handed_on.remove(&address);
    }

    /// Takes that a thread that is no reader has released a read lock. Returns whether it is for certain one that another thread of the
    /// process has.
    fn note_reader_of_another(&mut self, object: u32, thread: u32, now: u64) -> bool {
        let knowledge = self.knowledge_of(object);
        let (state, releaser) = (&self.objects[object as usize], &self.threads[thread as usize]);
        if state.occupancy.holds.is_empty() || releaser.is_in_gap {
            return false;
        }
        // All readers were known at a time since which no record is missing.
        let count = state.occupancy.readers_known.as_deref().copied().unwrap_or_default();
        let is_counted = count.counted_at >= knowledge.complete_from && count.counted_at > 0;
        let knows_readers = state.occupancy.no_readers_at >= knowledge.complete_from || is_counted;
        let is_reader = |hold: &Hold| hold.may_have_ended || hold.is_recorded && !hold.may_be_elsewhere;
        if !self.shows_holds(object) || !state.occupancy.holds.iter().all(is_reader) {
            return false;
        }
        let is_known =
            |hold: &Hold| hold.may_have_ended || knows_readers && is_reader(hold) || self.is_certain(object, hold);
        let is_one_of_these = state.occupancy.holds.iter().all(is_known);
        if !releaser.knows_holds {
            if !knows_readers || is_counted && self.objects[object as usize].occupancy.take_unknown_reader() {
                // Its acquisition is missing, as far as is known.
                return false;
            }
            let has_counted = self.threads[count.counted_by as usize].last_outside > count.counted_at;
            if is_counted && count.counted_by != thread && !has_counted {
                // The release may be in the count, so that it was one of the readers before.
                self.objects[object as usize].occupancy.doubt_readers(now, knowledge);
                return false;
            }
        }
        self.set_handed_on(object, true);
        is_one_of_these && !self.objects[object as usize].may_be_held_elsewhere
    }
}
