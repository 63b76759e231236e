//! Calls on mutexes, rwlocks and spin locks.

use spec::event_numbers::{MUTEX_TIMEDLOCK, PROC_FORK, RMUTEX_TIMEDLOCK, RW_TIMEDRDLOCK, RW_TIMEDWRLOCK};

use super::analysis::{Analysis, WaitPlace};
use super::holds::{FinishedWait, Knowledge, Release, Released};
use super::numeric_record::NumericRecord;
use super::object_state::ObjectKind;
use super::small_vectors::push;
use super::tables::OngoingCall;
use super::timeline_event::TimelineEvent;
use super::wait_shares::Holder;
use super::waker::Waker;
use crate::report::critical_path::WaitEnd;

/// What a lock function returned that acquired a robust mutex whose owner had died.
pub const EOWNERDEAD: u64 = libc::EOWNERDEAD as u64;

/// Whether a call that locks waits for a limited time.
pub fn has_time_limit(event: (u8, u8)) -> bool {
    matches!(event, MUTEX_TIMEDLOCK | RMUTEX_TIMEDLOCK | RW_TIMEDRDLOCK | RW_TIMEDWRLOCK)
}

impl Analysis {
    /// The object that a record names in a1, with the call counted, and the site.
    pub fn called_object(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind, site: u64) -> (u32, u32) {
        let process = self.threads[thread as usize].process;
        let site = self.sites.intern(process, site);
        let count = u64::from(self.is_counting);
        self.sites.sites[site as usize].calls += count;
        let object = self.object(process, record.arguments[0], kind, site);
        let state = &mut self.objects[object as usize];
        state.figures.calls += count;
        state.is_called = true;
        if state.site == 0 {
            state.site = site;
        }
        self.note_subject(Some(object), site);
        (object, site)
    }

    /// Takes the entry record of a lock call. `owner` is the LWP that held the object, 0 if unknown.
    pub fn enter_lock(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind, owner: u64) {
        let (object, site) = self.called_object(thread, record, kind, record.arguments[4]);
        let knowledge = self.knowledge_of(object);
        let process = self.threads[thread as usize].process;
        self.objects[object as usize].occupancy.begin_wait(u64::from(thread), site, record.time, knowledge);
        let known = self.thread_of_lwp.get(&(process, owner as u32)).copied().filter(|_| owner != 0);
        if let Some(owner) = known {
            self.observe_owner(object, owner, record.time);
        }
        self.open_call(thread, record, site, Some(object), true);
        if let Some(call) = self.threads[thread as usize].open.last_mut() {
            call.owner = known;
            call.other_owner = if known.is_none() { u32::try_from(owner).unwrap_or(0) } else { 0 };
        }
        if known.is_none() && owner != 0 {
            let is_copied = self.see_owner_by_fork(thread, object, owner, record.time);
            self.note_shared_lock(thread);
            // A thread of this process would have had a record before, if they are complete.
            if !is_copied && record.time >= knowledge.complete_from {
                self.note_owner_elsewhere(object);
            }
        }
    }

    /// Takes that a thread was seen to have a lock.
    pub fn observe_owner(&mut self, object: u32, owner: u32, time: u64) {
        let knowledge = self.knowledge_of(object);
        let lost = self.objects[object as usize].occupancy.observe_owner(owner, time, knowledge);
        self.lose_holds(object, &lost);
        if self.objects[object as usize].occupancy.depth(owner) > 0 {
            self.begin_hold(object, owner);
        }
    }

    /// Takes the return record of a lock call.
    pub fn return_from_lock(
        &mut self,
        thread: u32,
        record: &NumericRecord,
        rval: u64,
        blocked: bool,
        is_exclusive: bool,
        depth: u64,
    ) {
        let Some(call) = self.close_call(thread, record) else { return };
        let OngoingCall { object: Some(object), site, entry, .. } = call else { return };
        let (key, now, knowledge) = (u64::from(thread), record.time, self.knowledge_of(object));
        if rval != 0 && rval != EOWNERDEAD {
            let has_timed_out = rval == libc::ETIMEDOUT as u64;
            if blocked && has_timed_out {
                self.check_relock(thread, &call);
            }
            let occupancy = &mut self.objects[object as usize].occupancy;
            match blocked {
                true => occupancy.give_up_wait(key, has_timed_out, now, knowledge),
                false => occupancy.cancel_wait(key),
            }
            if occupancy.has_many_given_up() {
                self.account_given_up(object);
            }
            if blocked {
                self.end_wait(WaitPlace { has_timed_out, ..WaitPlace::new(thread, site, entry) }, now, None);
            }
            return;
        }
        if !blocked {
            self.objects[object as usize].occupancy.cancel_wait(key);
            let process = self.threads[thread as usize].process;
            self.processes[process as usize].shown.all_levels = true;
        }
        let depth = u32::try_from(depth).unwrap_or(1).max(1);
        // A lock call with a time limit does not wait for ever.
        if self.objects[object as usize].kind != ObjectKind::Futex && !has_time_limit(record.event) {
            self.note_nesting(object, Holder { thread, site }, !is_exclusive, now);
        }
        let waker = self.acquire(object, Holder { thread, site }, depth, is_exclusive, now, rval == EOWNERDEAD);
        if !is_exclusive {
            let readers = record.arguments[2];
            self.objects[object as usize].occupancy.count_readers(thread, readers, now, knowledge);
        }
        let waker = waker.filter(|waker| waker.is_last_release(entry, knowledge));
        if blocked && is_exclusive && waker.is_some_and(|waker| waker.thread == thread && waker.time < entry) {
            // Its own release has let nobody wait: somebody else has had the lock since.
            self.note_owner_elsewhere(object);
        }
        let waker = waker.filter(|waker| waker.thread != thread);
        if blocked && let Some(wait) = self.objects[object as usize].occupancy.end_wait(key, now, knowledge) {
            let place = WaitPlace::new(thread, site, entry);
            self.account_contention(object, wait, place, waker);
            self.end_lock_wait(object, place, now, waker);
        }
    }

    /// Takes an acquisition; returns whose release preceded it.
    pub fn acquire(
        &mut self,
        object: u32,
        holder: Holder,
        depth: u32,
        is_exclusive: bool,
        now: u64,
        owner_died: bool,
    ) -> Option<Waker> {
        let knowledge = self.knowledge_of(object);
        let mut death = None;
        if owner_died {
            let owner = self.objects[object as usize].occupancy.holds.first().map(|hold| hold.holder.thread);
            if let Some(owner) = owner.filter(|owner| *owner != holder.thread) {
                let end = self.threads[owner as usize].last;
                let hold = self.objects[object as usize].occupancy.end_dead_hold(end, now, knowledge);
                hold.into_iter().for_each(|hold| self.account_hold(object, hold, end));
                self.activities.log_until(owner, end);
                death = Some(Waker { thread: owner, site: 0, time: end });
            }
        }
        let state = &mut self.objects[object as usize];
        let was_held = state.occupancy.depth(holder.thread) > 0;
        let was_exclusive = state.occupancy.is_exclusive();
        let lost = state.occupancy.acquire(holder, depth, is_exclusive, now, knowledge);
        // A thread that reads did not wait for others that do.
        let release = if is_exclusive { state.last_release } else { state.last_exclusive_release };
        let waker = death.or(release).filter(|_| lost.is_empty());
        if !lost.is_empty() {
            state.forget_releases();
        }
        let own = lost.iter().find(|hold| hold.holder.thread == holder.thread).copied();
        let is_new = !was_held || own.is_some();
        let is_held = state.occupancy.depth(holder.thread) > 0;
        if let Some(own) = own
            && (self.may_be_elsewhere(object) || was_exclusive && self.shows_unlock_by_another(object, &own))
        {
            self.note_handed_on(object);
        }
        if was_exclusive && lost.iter().any(|hold| self.shows_unlock_by_child(object, hold)) {
            self.note_shared_and_handed_on(object);
        }
        self.lose_holds(object, &lost);
        if is_new && is_held {
            self.begin_hold(object, holder.thread);
        }
        if is_held && !knowledge.only_blocked {
            self.activities.begin_hold(holder.thread, object, holder.site, now);
        }
        self.account_given_up(object);
        waker
    }

    /// Accounts the waits for an object that ended without an acquisition.
    pub fn account_given_up(&mut self, object: u32) {
        for wait in self.objects[object as usize].occupancy.take_finished() {
            let FinishedWait { key, site, entry, has_timed_out, .. } = wait;
            let place = WaitPlace { has_timed_out, ..WaitPlace::new(key as u32, site, entry) };
            self.account_contention(object, wait, place, None);
        }
    }

    /// Takes a try to lock.
    pub fn try_lock(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind, is_exclusive: bool) {
        let (object, site) = self.called_object(thread, record, kind, record.arguments[4]);
        let rval = record.arguments[1];
        if rval == 0 || rval == EOWNERDEAD {
            let knowledge = self.knowledge_of(object);
            let occupancy = &mut self.objects[object as usize].occupancy;
            if kind == ObjectKind::Rmutex && occupancy.depth(thread) == 0 && !occupancy.is_free(knowledge) {
                // The thread may have had it before.
                let lost = occupancy.lose_track(record.time, knowledge);
                self.lose_holds(object, &lost);
                return;
            }
            let depth = match kind {
                ObjectKind::Rmutex => self.objects[object as usize].occupancy.depth(thread) + 1,
                _ => 1,
            };
            self.acquire(object, Holder { thread, site }, depth, is_exclusive, record.time, rval == EOWNERDEAD);
        } else if rval == libc::EBUSY as u64 {
            self.objects[object as usize].figures.failed_tries += u64::from(self.is_counting);
        }
    }

    /// Takes an unlock, which returned `rval`.
    pub fn unlock(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind, rval: u64) {
        let (object, site) = self.called_object(thread, record, kind, record.arguments[4]);
        let release = Some((record.arguments[0], record.time));
        let is_taken = self.threads[thread as usize].in_flight.take() == release;
        if rval == 0 && !is_taken {
            let process = self.threads[thread as usize].process;
            self.processes[process as usize].shown.note_unlock(kind);
            self.check_unlock(object, thread, site, record.time);
            let is_of_reader = self.note_handing_on(object, thread, record.time);
            self.release_inherited_lock(object, thread, record.time);
            // With DETAIL, a4 is 1 if a write lock ended.
            let may_be_shared = record.arguments[3] != 1;
            let how = match kind {
                ObjectKind::Rwlock if is_of_reader => Release::OfReader,
                ObjectKind::Rwlock if may_be_shared => Release::PerhapsShared,
                ObjectKind::Rmutex => Release::PerhapsInner,
                _ => Release::Once,
            };
            self.release(object, thread, site, how, record.time);
            self.threads[thread as usize].last_release = release;
        }
    }

    /// Ends holds of readers that have ended for certain, as soon as no later release can be in the count of the readers: the thread that
    /// has counted them has made another record, which is none of a handler that interrupted it before.
    fn end_count_of_readers(&mut self, object: u32) {
        let Some((thread, time)) = self.objects[object as usize].occupancy.counting() else { return };
        if self.threads[thread as usize].last_outside > time {
            let ended = self.objects[object as usize].occupancy.end_count();
            self.lose_holds(object, &ended);
        }
    }

    /// Takes a release. Returns how often the thread had the object.
    pub fn release(&mut self, object: u32, thread: u32, site: u32, how: Release, now: u64) -> u32 {
        let knowledge = self.knowledge_of(object);
        self.end_count_of_readers(object);
        let state = &mut self.objects[object as usize];
        let (depth, was_exclusive) = (state.occupancy.depth(thread), state.occupancy.is_exclusive());
        let (released, lost) = state.occupancy.release(thread, how, now, knowledge);
        if released == Released::HeldByAnother {
            return 0;
        }
        if released != Released::Inner {
            let release = Some(Waker { thread, site, time: now });
            state.last_release = release;
            if released == Released::NotHeld {
                state.last_holder = Some(thread);
            }
            if was_exclusive || released == Released::NotHeld {
                state.last_exclusive_release = release.filter(|_| was_exclusive || how != Release::PerhapsShared);
            }
        }
        let has_waiters = state.occupancy.has_waiters();
        self.lose_holds(object, &lost);
        match released {
            Released::Hold(hold) => {
                self.note_released_when_forking(object, thread);
                self.note_own_release(object, thread, &hold);
                self.account_hold(object, hold, now);
            }
            Released::NotHeld => {
                self.missing.acquisitions += u64::from(!knowledge.leaves_calls_out());
            }
            Released::Inner | Released::HeldByAnother | Released::OfReader => {}
        }
        if has_waiters {
            self.activities.log_until(thread, now);
        }
        self.account_given_up(object);
        depth
    }

    /// Takes the entry record of a call.
    pub fn open_call(&mut self, thread: u32, record: &NumericRecord, site: u32, object: Option<u32>, waits: bool) {
        let (event, entry) = (record.event, record.time);
        self.note_subject(object, site);
        let call = OngoingCall { event, entry, site, object, waits, ..OngoingCall::default() };
        push(&mut self.threads[thread as usize].open, call);
    }

    /// Takes the return record of a call; returns what its entry record showed. Calls that began later have been left by a jump.
    pub fn close_call(&mut self, thread: u32, record: &NumericRecord) -> Option<OngoingCall> {
        let Some(index) = self.threads[thread as usize].find_open(record.event) else {
            self.missing.entries += 1;
            self.draw(TimelineEvent::MissingEntry { thread, time: record.time, event: record.event });
            self.threads[thread as usize].knows_holds = false;
            self.threads[thread as usize].complete_from = record.time;
            self.activities.end_wait(thread, 0, record.time, WaitEnd::Unknown);
            // If the call acquired an object, nobody knows which.
            let process = self.threads[thread as usize].process as usize;
            let knowledge = &mut self.processes[process].knowledge;
            knowledge.complete_from = knowledge.complete_from.max(record.time);
            return None;
        };
        while self.threads[thread as usize].open.len() > index + 1 {
            if let Some(call) = self.threads[thread as usize].open.pop() {
                self.abandon_call(thread, call);
            }
        }
        let call = self.threads[thread as usize].open.pop();
        call.iter().for_each(|call| self.note_subject(call.object, call.site));
        call
    }

    /// Forgets a call whose return record is missing: nobody knows how long it lasted.
    pub fn abandon_call(&mut self, thread: u32, call: OngoingCall) {
        self.missing.returns += 1;
        self.draw(TimelineEvent::MissingReturn { thread, time: call.entry, event: call.event });
        if call.waits && call.event != PROC_FORK {
            let now = self.span.map_or(0, |span| span.1);
            self.activities.end_wait(thread, call.entry, now, WaitEnd::Unknown);
        }
        let Some(object) = call.object else { return };
        let state = &mut self.objects[object as usize];
        state.occupancy.cancel_wait(u64::from(thread));
        state.wakeups.end_wait(thread);
        if state.kind == ObjectKind::Once && !call.waits && !call.may_wait {
            let knowledge = Knowledge { complete_from: u64::MAX, ..Knowledge::default() };
            state.occupancy.forget_thread(thread, call.entry, knowledge);
            self.activities.lose_hold(thread, object, call.entry);
        }
        let expired = state.wakeups.take_expired();
        self.end_watches(&expired);
        self.leave_round(object, thread);
    }
}
