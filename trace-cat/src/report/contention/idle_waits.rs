//! Waits for conditions, semaphores, futexes and the ends of threads.

use spec::event_numbers::FUTEX_WAIT;

use super::analysis::{Analysis, WaitPlace};
use super::holds::{FinishedWait, Knowledge, Release, WATCH};
use super::locks::EOWNERDEAD;
use super::numeric_record::NumericRecord;
use super::object_state::ObjectKind;
use super::tables::OngoingCall;
use super::wait_shares::{Holder, WaitShares};
use super::waker::Waker;
use super::wakeups::{IdleWait, Wakeup};

impl Analysis {
    /// Takes the entry record of a wait for a condition, which releases the mutex in a2.
    pub fn enter_cond_wait(&mut self, thread: u32, record: &NumericRecord, site: u64) {
        let (cond, site) = self.called_object(thread, record, ObjectKind::Cond, site);
        let process = self.threads[thread as usize].process;
        let address = record.arguments[1];
        let kind = match self.kind_at(process, address) {
            Some(ObjectKind::Rmutex) => ObjectKind::Rmutex,
            _ => ObjectKind::Mutex,
        };
        let mutex = self.object(process, address, kind, site);
        self.check_mutexes(cond, mutex, thread, site, record.time);
        // Where no other call shows the mutex, its releases are not recorded either.
        let is_seen = self.objects[mutex as usize].is_called;
        let depth = if is_seen { self.release(mutex, thread, site, Release::ForWait, record.time) } else { 0 };
        let wait = IdleWait { thread, entry: record.time, before_move: 0, mutex: Some(mutex) };
        self.objects[cond as usize].wakeups.begin_wait(wait);
        self.open_call(thread, record, site, Some(cond), true);
        if let Some(call) = self.threads[thread as usize].open.last_mut() {
            call.mutex = Some((mutex, depth));
            let [.., first, second, _] = record.arguments;
            call.time_limit = match record.event.1 {
                5 => first.saturating_mul(1_000_000_000).saturating_add(second),
                30 => second,
                _ => 0,
            };
            call.clock = (record.event.1 == 30).then_some(first as i32);
            self.objects[mutex as usize].cond_waits += 1;
        }
    }

    /// Takes the return record of a wait for a condition: the thread has its mutex again. From the wake-up on, the time that
    /// others held the mutex is contention of the mutex.
    pub fn return_from_cond_wait(&mut self, thread: u32, record: &NumericRecord) {
        let Some(OngoingCall { object: Some(cond), mutex: Some((mutex, depth)), site, entry, time_limit, .. }) =
            self.close_call(thread, record)
        else {
            return;
        };
        let (now, rval) = (record.time, record.arguments[0]);
        self.objects[mutex as usize].cond_waits -= 1;
        let has_mutex = [0, libc::ETIMEDOUT as u64, libc::ECANCELED as u64, EOWNERDEAD].contains(&rval);
        let mut mutex_waker = None;
        let Knowledge { only_blocked, is_selective, .. } = self.knowledge_of(mutex);
        // Where only calls that blocked are recorded, there may be no other call on the mutex.
        let is_seen = self.objects[mutex as usize].is_called || only_blocked && !is_selective;
        if (has_mutex || depth > 0) && is_seen {
            self.note_nesting(mutex, Holder { thread, site }, false, now);
            let waker = self.acquire(mutex, Holder { thread, site }, depth.max(1), true, now, rval == EOWNERDEAD);
            let knowledge = self.knowledge_of(mutex);
            mutex_waker = waker.filter(|waker| waker.is_last_release(entry, knowledge));
        }
        let queue = &mut self.objects[cond as usize].wakeups;
        let wait = queue.end_wait(thread);
        let wakeup = wait.filter(|_| rval == 0 || rval == EOWNERDEAD).and_then(|wait| queue.take(wait));
        let has_timed_out = rval == libc::ETIMEDOUT as u64;
        let place = WaitPlace { has_timed_out, ..WaitPlace::new(thread, site, entry) };
        let (mut contended, mut rest) = (0, None);
        if let Some(Wakeup { watch: Some((watched, key)), time, capacity, .. }) = wakeup
            && watched == mutex
        {
            let knowledge = self.knowledge_of(mutex);
            let (mut shares, waiting) = self.objects[mutex as usize].occupancy.watched(key, now, knowledge);
            // A recursive mutex that it had several times has been its own all the time.
            shares.blamed.retain(|(holder, _)| holder.thread != thread);
            contended = shares.sum_of_blame();
            if contended > 0 {
                let shares = WaitShares { handoff: 0, unknown: 0, ..shares };
                let rank = (waiting + capacity).saturating_sub(1).max(1);
                let wait = FinishedWait { key, entry: time, end: now, shares, has_timed_out: false, site, rank };
                rest = Some((wait, WaitPlace { entry: time, has_timed_out: false, is_rest: true, ..place }));
            }
        }
        // A limit of another clock, or of a clock that was set, does not end the wait when it seems to.
        let limit = Some(time_limit).filter(|limit| has_timed_out && *limit <= now);
        let cancelled = self.threads[thread as usize].cancelled.filter(|_| rval == libc::ECANCELED as u64);
        self.settle_suspicions(thread, entry, limit.or(wakeup.map(|wakeup| wakeup.time)).or(cancelled));
        let waker = self.known_waker(thread, entry, wakeup.map(Waker::from));
        // Another result means that it did not wait.
        if has_mutex || rval == libc::ENOTRECOVERABLE as u64 {
            self.account_idleness(Some(cond), now, contended, place, waker);
        }
        if let Some((wait, place)) = rest {
            self.account_contention(mutex, wait, place, mutex_waker);
        }
        if has_mutex {
            // The later of the two let the thread go on.
            let last = waker.zip(mutex_waker).map(|(waker, mutex)| if mutex.time > waker.time { mutex } else { waker });
            self.end_lock_wait(mutex, place, now, last);
        }
        self.expire_wakeups(cond);
    }

    /// Removes the wake-ups that no wait can take any more, and counts the signals among them.
    fn expire_wakeups(&mut self, object: u32) {
        let state = &mut self.objects[object as usize];
        let expired = state.wakeups.take_expired();
        if state.kind == ObjectKind::Cond {
            let wasted = expired.iter().filter(|wakeup| wakeup.remaining == wakeup.capacity).count();
            state.figures.wasted_signals += if self.is_counting { wasted as u64 } else { 0 };
        }
        self.end_watches(&expired);
    }

    /// Stops watching the holders of a mutex for wake-ups that are over.
    pub fn end_watches(&mut self, wakeups: &[Wakeup]) {
        for (mutex, key) in wakeups.iter().filter_map(|wakeup| wakeup.watch) {
            self.objects[mutex as usize].occupancy.cancel_wait(key);
        }
    }

    /// Takes a signal or broadcast, post or wake-up, for which up to `most` threads wait no longer.
    pub fn wake(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind, most: u64) {
        let (object, site) = self.called_object(thread, record, kind, record.arguments[4]);
        if kind == ObjectKind::Futex {
            self.note_futex_wake(object, thread, record.time);
            if self.is_counting {
                let is_waiter = self.threads[thread as usize].waited_words.contains(object);
                self.objects[object as usize].wakeups.waiter_wakes.wake(is_waiter);
            }
        }
        let queue = &mut self.objects[object as usize].wakeups;
        queue.has_posts |= kind == ObjectKind::Sema;
        let Some((IdleWait { mutex, .. }, room)) = queue.next_wait() else {
            let is_signal = kind == ObjectKind::Cond;
            let state = &mut self.objects[object as usize];
            state.figures.wasted_signals += u64::from(is_signal && self.is_counting);
            if kind == ObjectKind::Sema {
                state.wakeups.push_surplus();
            }
            return;
        };
        let capacity = u64::min(most, room.into()) as u32;
        let watch = mutex.map(|mutex| {
            self.watches += 1;
            let (key, knowledge) = (WATCH + self.watches, self.knowledge_of(mutex));
            self.objects[mutex as usize].occupancy.begin_watch(key, capacity, record.time, knowledge);
            (mutex, key)
        });
        let wakeup = Wakeup { time: record.time, thread, site, remaining: capacity, capacity, watch };
        self.objects[object as usize].wakeups.push(wakeup);
        if kind == ObjectKind::Cond {
            self.note_woken(object, record.time, record.arguments[2] != 0);
        }
        self.activities.log_until(thread, record.time);
    }

    /// Notes which calls wait for their mutexes from now on for certain: all that wait for a condition, if as many were woken. A call
    /// does wait if somebody has had its mutex since it began, or if `has_waiters` is the condition's own word and it is the only one.
    fn note_woken(&mut self, cond: u32, now: u64, has_waiters: bool) {
        let queue = &self.objects[cond as usize].wakeups;
        if (queue.count_of_woken() as usize) < queue.waits.len() {
            return;
        }
        let is_queued = |wait: &IdleWait| {
            let mutex = wait.mutex.map(|mutex| &self.objects[mutex as usize].occupancy);
            has_waiters && queue.waits.len() == 1 || mutex.is_some_and(|mutex| mutex.acquired_at() > wait.entry)
        };
        let woken: Vec<u32> = queue.waits.iter().filter(|wait| is_queued(wait)).map(|wait| wait.thread).collect();
        if woken.len() < queue.waits.len() {
            return;
        }
        woken.into_iter().for_each(|thread| self.note_woken_call(thread, cond, now));
    }

    /// Notes that a thread's call does not wait for its condition or barrier any more.
    pub fn note_woken_call(&mut self, thread: u32, object: u32, now: u64) {
        let mut calls = self.threads[thread as usize].open.iter_mut().rev();
        if let Some(call) = calls.find(|call| call.object == Some(object)) {
            call.woken.get_or_insert(now);
        }
    }

    /// Takes the entry record of a wait for a semaphore or futex; `waits` if it blocks for certain.
    pub fn enter_idle_wait(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind, waits: bool) {
        let (object, site) = self.called_object(thread, record, kind, record.arguments[4]);
        if waits {
            let wait = IdleWait { thread, entry: record.time, before_move: 0, mutex: None };
            self.objects[object as usize].wakeups.begin_wait(wait);
        }
        if kind == ObjectKind::Futex {
            self.note_futex_site(object, site);
        }
        self.open_call(thread, record, site, Some(object), waits);
        let limit = if record.event == FUTEX_WAIT { record.arguments[3] } else { 0 };
        if let Some(call) = self.threads[thread as usize].open.last_mut() {
            call.time_limit = limit;
        }
    }

    /// Takes the return record of such a wait, which was none if it returned `unless`.
    pub fn return_from_idle_wait(&mut self, thread: u32, record: &NumericRecord, unless: Option<u64>) {
        let Some(OngoingCall { object: Some(object), site, entry, waits, queue: moved_to, .. }) =
            self.close_call(thread, record)
        else {
            return;
        };
        if !waits {
            return self.take_semaphore(object, record.arguments[0]);
        }
        let woken = if record.arguments[0] == 0 { self.post_after_destruction(object) } else { None };
        self.settle_suspicions(thread, entry, woken);
        self.note_return_from_futex(object, thread, site, record.time);
        let rval = record.arguments[0];
        let queue = &mut self.objects[moved_to.unwrap_or(object) as usize].wakeups;
        let wait = queue.end_wait(thread);
        if unless != Some(rval) {
            let wait = wait.filter(|_| rval == 0);
            let mut wakeup = wait.and_then(|wait| queue.take(wait));
            if let (None, Some(wait), Some(target)) = (wakeup, wait, moved_to) {
                wakeup = self.waker_before_move(object, target, IdleWait { entry, ..wait });
            }
            let waker = self.known_waker(thread, entry, wakeup.map(Waker::from));
            let has_timed_out = rval == libc::ETIMEDOUT as u64;
            let place = WaitPlace { has_timed_out, ..WaitPlace::new(thread, site, entry) };
            self.note_idle_futex_wait(object, thread, site);
            self.account_idleness(Some(object), record.time, 0, place, waker);
            self.end_wait(place, record.time, waker);
        }
        self.expire_wakeups(object);
        moved_to.into_iter().for_each(|target| self.expire_wakeups(target));
    }

    /// Takes the end of a wait at a site, if it was for a futex and is idleness.
    fn note_idle_futex_wait(&mut self, object: u32, thread: u32, site: u32) {
        let is_futex = self.objects[object as usize].kind == ObjectKind::Futex;
        if is_futex && self.futex_lock_at(object, site).is_none() {
            self.threads[thread as usize].waited_words.add(object);
            if self.is_counting && self.is_selected(thread, Some(object)) {
                self.objects[object as usize].wakeups.waiter_wakes.end_wait(thread);
            }
        }
    }

    /// Takes that a thread got a semaphore without waiting, if it did not fail.
    pub fn take_semaphore(&mut self, object: u32, rval: u64) {
        let state = &mut self.objects[object as usize];
        if state.kind == ObjectKind::Sema && rval == 0 {
            state.wakeups.take_without_wait();
        }
    }

    /// Takes the entry record of a join.
    pub fn enter_join(&mut self, thread: u32, record: &NumericRecord) {
        let process = self.threads[thread as usize].process;
        let site = self.sites.intern(process, record.arguments[4]);
        self.sites.sites[site as usize].calls += u64::from(self.is_counting);
        let known = self.thread_of_tid.get(&(process, record.arguments[0])).copied();
        self.check_join(thread, known, site, record.time);
        let joined = self.joinable_thread(process, record.arguments[0]);
        // A thread that had ended is not waited for.
        let had_ended = joined.is_some_and(|joined| {
            let joined = &self.threads[joined as usize];
            joined.has_ended() && joined.last < record.time
        });
        self.open_call(thread, record, site, None, !had_ended);
        if let Some(call) = self.threads[thread as usize].open.last_mut() {
            (call.joined, call.joined_tid) = (joined, record.arguments[0]);
        }
    }

    /// The end of the thread that a call joined: its last record, which is its exit's or one of a destructor.
    fn end_of_joined(&mut self, joined: u32) -> Option<Waker> {
        let state = &self.threads[joined as usize];
        let waker = Waker { thread: joined, site: 0, time: state.last };
        let has_ended = state.has_exited && !state.is_in_gap;
        has_ended.then(|| self.activities.log_until(joined, waker.time))?;
        Some(waker)
    }

    /// Takes the return record of a join.
    pub fn return_from_join(&mut self, thread: u32, record: &NumericRecord) {
        let Some(call) = self.close_call(thread, record) else { return };
        let OngoingCall { site, entry, waits, .. } = call;
        let has_joined = record.arguments[2] == 0;
        // It may have had no record when the call began.
        let joined = self.joined_thread(self.threads[thread as usize].process, &call);
        if let Some(joined) = joined.filter(|_| has_joined) {
            self.note_join(thread, joined, record.time);
        }
        // A thread whose exit was recorded while it was waited for may have had no record before.
        if waits && record.time > entry {
            let has_timed_out = record.arguments[2] == libc::ETIMEDOUT as u64;
            let place = WaitPlace { has_timed_out, ..WaitPlace::new(thread, site, entry) };
            self.account_idleness(None, record.time, 0, place, None);
            let waker = joined.filter(|_| has_joined).and_then(|joined| self.end_of_joined(joined));
            self.end_wait(place, record.time, waker);
        }
    }
}
