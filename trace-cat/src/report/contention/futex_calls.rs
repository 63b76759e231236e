//! Operations of futex(2) besides waiting and waking: locks with priority inheritance, and waiters that change their queue.
//!
//! The lock's word has its owner. Whoever finds it free takes it without a call, and gives it back so if nobody waits. So an
//! acquisition has a record only if it waited, or tried, and a release only if others wait, as with `THR_TRACE_LEVEL=blocked`.
//! While somebody waits, each release has a record; who makes it has held the lock. Nobody else is said to.

use spec::futex_locks::PRIORITY_INHERITANCE_LOCK;

use super::analysis::Analysis;
use super::futex_state::{FutexCall, PendingUnlock, Requeue};
use super::holds::Release;
use super::locks::EOWNERDEAD;
use super::numeric_record::NumericRecord;
use super::object_state::ObjectKind::Futex;
use super::tables::OngoingCall;
use super::wait_shares::Holder;
use super::wakeups::{IdleWait, Wakeup};
use crate::record::futex_operations::{FutexOperation, operation};

impl Analysis {
    /// Takes the entry record of a futex operation.
    pub fn enter_futex_operation(&mut self, thread: u32, record: &NumericRecord) {
        let [_, code, value, second, site] = record.arguments;
        let operation = operation(code);
        let call = match operation {
            FutexOperation::Lock => {
                self.enter_lock(thread, record, Futex, 0);
                FutexCall::Lock
            }
            FutexOperation::WaitForLock => {
                self.enter_idle_wait(thread, record, Futex, true);
                FutexCall::WaitForLock(self.second_word(thread, second))
            }
            FutexOperation::TryLock | FutexOperation::Unlock | FutexOperation::Requeue => {
                let (object, site) = self.called_object(thread, record, Futex, site);
                self.open_call(thread, record, site, Some(object), false);
                match operation {
                    FutexOperation::TryLock => FutexCall::TryLock,
                    FutexOperation::Unlock => {
                        let unlock = PendingUnlock { thread, site, time: record.time };
                        self.objects[object as usize].pending_unlock = Some(Box::new(unlock));
                        FutexCall::Unlock
                    }
                    _ => FutexCall::Requeue(self.requeue((thread, site, record.time), object, value as u32, second)),
                }
            }
            FutexOperation::Other => {
                self.open_call(thread, record, 0, None, false);
                FutexCall::Other
            }
        };
        if let Some(open) = self.threads[thread as usize].open.last_mut() {
            open.futex = call;
            let lock = open.object.filter(|_| matches!(call, FutexCall::Lock | FutexCall::TryLock | FutexCall::Unlock));
            lock.into_iter()
                .for_each(|lock| self.objects[lock as usize].note_futex_lock(Some(&PRIORITY_INHERITANCE_LOCK)));
        }
    }

    /// Takes the return record of a futex operation.
    pub fn return_from_futex_operation(&mut self, thread: u32, record: &NumericRecord) {
        let [result, error, ..] = record.arguments;
        let index = self.threads[thread as usize].find_open(record.event);
        let open = index.map_or(OngoingCall::default(), |index| self.threads[thread as usize].open[index]);
        let has_lock = error == 0 || error == EOWNERDEAD;
        match (open.futex, open.object) {
            (FutexCall::Lock, Some(object)) => {
                if has_lock {
                    self.settle_unlock(object);
                }
                self.return_from_lock(thread, record, error, true, true, 1);
            }
            (FutexCall::WaitForLock(lock), _) => {
                let has_timed_out = NumericRecord { arguments: [error, 0, 0, 0, 0], ..*record };
                self.return_from_idle_wait(thread, &has_timed_out, Some(libc::EAGAIN as u64));
                if has_lock {
                    self.settle_unlock(lock);
                    self.acquire(lock, Holder { thread, site: open.site }, 1, true, record.time, false);
                }
            }
            (call, Some(object)) => {
                self.close_call(thread, record);
                match call {
                    FutexCall::TryLock if has_lock => {
                        self.acquire(object, Holder { thread, site: open.site }, 1, true, record.time, false);
                    }
                    FutexCall::TryLock => {
                        self.objects[object as usize].figures.failed_tries += u64::from(self.is_counting);
                    }
                    FutexCall::Unlock if error == 0 => self.settle_unlock(object),
                    FutexCall::Unlock => self.objects[object as usize].pending_unlock = None,
                    FutexCall::Requeue(requeue) => {
                        let count = if error == 0 { result as u32 } else { 0 };
                        self.settle_requeue((thread, open.entry), object, requeue, count);
                    }
                    _ => {}
                }
            }
            (_, None) => drop(self.close_call(thread, record)),
        }
    }

    /// The word that is an operation's second.
    fn second_word(&mut self, thread: u32, address: u64) -> u32 {
        let process = self.threads[thread as usize].process;
        self.object(process, address, Futex, 0)
    }

    /// Takes a release that has succeeded: its call returned so, or somebody has the lock after a wait.
    fn settle_unlock(&mut self, object: u32) {
        if let Some(unlock) = self.objects[object as usize].pending_unlock.take() {
            let PendingUnlock { thread, site, time } = *unlock;
            self.release(object, thread, site, Release::Once, time);
            // Those that wait for a condition and then for the lock get it in their turn.
            self.push_wakeup((thread, site, time), object, 1);
            self.activities.log_until(thread, time);
        }
    }

    /// Notes that up to `most` threads of those that wait for an object do not any longer; returns how many.
    fn push_wakeup(&mut self, (thread, site, time): (u32, u32, u64), object: u32, most: u32) -> u32 {
        let queue = &mut self.objects[object as usize].wakeups;
        let Some((_, room)) = queue.next_wait() else { return 0 };
        let capacity = most.min(room);
        if capacity > 0 {
            queue.push(Wakeup { time, thread, site, remaining: capacity, capacity, watch: None });
            self.activities.log_until(thread, time);
        }
        capacity
    }

    /// Takes a call that wakes up to `wakes` waiters and lets the others wait for the word at `second`. How many it was shows its
    /// result; until then it is taken for all.
    fn requeue(&mut self, caller: (u32, u32, u64), object: u32, wakes: u32, second: u64) -> Requeue {
        let target = self.second_word(caller.0, second);
        if target == object {
            return Requeue { target, wakes, woken: 0, moved: 0 };
        }
        let woken = self.push_wakeup(caller, object, wakes);
        let stay = self.objects[object as usize].wakeups.count_of_woken();
        let moved = self.move_waits(object, target, stay, u32::MAX, caller.2);
        Requeue { target, wakes, woken, moved }
    }

    /// Lets up to `most` threads that wait for an object, but for the first `stay`, wait for another one from now on. Returns how
    /// many.
    fn move_waits(&mut self, object: u32, target: u32, stay: u32, most: u32, now: u64) -> u32 {
        let waits = &mut self.objects[object as usize].wakeups.waits;
        let from = waits.len().min(stay as usize);
        let until = waits.len().min(from.saturating_add(most as usize));
        let moved: Vec<IdleWait> = waits.drain(from..until).collect();
        for wait in &moved {
            self.set_queue(wait.thread, target);
            let wait = IdleWait { entry: now, before_move: wait.entry, ..*wait };
            self.objects[target as usize].wakeups.begin_wait(wait);
        }
        moved.len() as u32
    }

    /// Notes in whose queue a thread waits.
    fn set_queue(&mut self, thread: u32, object: u32) {
        if let Some(call) = self.threads[thread as usize].open.iter_mut().rfind(|call| call.waits) {
            call.queue = Some(object).filter(|_| call.object != Some(object));
        }
    }

    /// Takes the result of such a call: how many threads it woke and moved.
    fn settle_requeue(&mut self, (thread, entry): (u32, u64), object: u32, requeue: Requeue, count: u32) {
        let Requeue { target, wakes, woken, moved } = requeue;
        if target == object {
            return;
        }
        let woken_now = count.min(wakes);
        self.objects[object as usize].wakeups.reduce(thread, entry, woken.saturating_sub(woken_now));
        let moved_now = count - woken_now;
        let is_of_call = |wait: &IdleWait| wait.entry == entry;
        let queue = &mut self.objects[target as usize].wakeups.waits;
        // Some have gone on meanwhile.
        let gone = moved.saturating_sub(queue.iter().filter(|wait| is_of_call(wait)).count() as u32);
        let mut kept = gone;
        let back: Vec<IdleWait> = queue
            .extract_if(.., |wait| {
                let is_kept = !is_of_call(wait) || kept < moved_now;
                kept += u32::from(is_of_call(wait) && is_kept);
                !is_kept
            })
            .collect();
        for wait in back {
            self.set_queue(wait.thread, object);
            let wait = IdleWait { entry: wait.before_move, ..wait };
            let waits = &mut self.objects[object as usize].wakeups.waits;
            let place = waits.partition_point(|other| other.entry <= wait.entry);
            waits.insert(place, wait);
        }
    }

    /// Who ended a wait that a call had moved to another queue, if it was not who woke the threads there: the order in which threads
    /// wait may be another one than that of their records, so that one was woken that was taken for moved.
    pub fn waker_before_move(&mut self, object: u32, target: u32, wait: IdleWait) -> Option<Wakeup> {
        let wakeup = self.objects[object as usize].wakeups.take(wait)?;
        // Then another one was moved.
        self.move_waits(object, target, 0, 1, wakeup.time);
        Some(wakeup)
    }
}
