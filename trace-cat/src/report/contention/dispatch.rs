//! What each record means to the analysis.

use spec::event_numbers::*;
use spec::tables;

use super::analysis::Analysis;
use super::holds::{Hold, Release};
use super::numeric_record::NumericRecord;
use super::object_state::ObjectKind::{self, Barrier, Cond, Futex, Mutex, Rmutex, Rwlock, Sema, Spin};
use super::process_sharing::may_be_for_processes;
use super::tables::ImageEnd;

/// The return record of a system call with its error in the first column, as the records of other calls have it.
fn returned_with_error(record: &NumericRecord) -> NumericRecord {
    let [_, error, ..] = record.arguments;
    NumericRecord { arguments: [error, 0, 0, 0, 0], ..*record }
}

impl Analysis {
    /// Takes the next record in the order of time.
    pub fn add(&mut self, record: &NumericRecord) {
        if record.event == TRACE_STACK {
            return self.sites.add_stack_part(record);
        }
        let thread = self.begin_record(record);
        self.check_error(thread, record);
        match record.event.0 {
            tables::TRACE => self.add_trace_record(thread, record),
            tables::THREAD => self.add_thread_record(thread, record),
            tables::MUTEX => self.add_mutex_record(thread, record, Mutex),
            tables::COND => self.add_cond_record(thread, record),
            tables::SEMA => self.add_semaphore_record(thread, record),
            tables::RWLOCK => self.add_rwlock_record(thread, record),
            tables::RMUTEX => self.add_mutex_record(thread, record, Rmutex),
            tables::BARRIER => self.add_barrier_record(thread, record),
            tables::BARRIER_SPIN => {
                // As those of barriers, but for the order of the last two arguments of its initialisation.
                let mut record = *record;
                if record.event == BARRIER_SPIN_INIT {
                    record.arguments.swap(3, 4);
                }
                self.add_barrier_record(thread, &record);
            }
            tables::SPIN => self.add_spin_record(thread, record),
            tables::FUTEX => self.add_futex_record(thread, record),
            tables::PROCESS => self.add_process_record(thread, record),
            tables::USER if record.event == USER_OBJECT => {
                let process = self.threads[thread as usize].process;
                self.name_object(process, record.arguments[1], record.arguments[0]);
            }
            _ => {}
        }
    }

    /// Takes what all records have in common; returns the thread.
    pub fn begin_record(&mut self, record: &NumericRecord) -> u32 {
        let stack_records = self.sites.begin_record(record);
        let time = record.time;
        let span = self.span.get_or_insert((time, time));
        span.1 = span.1.max(time);
        self.is_counting = self.selection.times.contains(&time);
        let thread = self.thread_of(record);
        self.processes[self.threads[thread as usize].process as usize].records += stack_records;
        thread
    }

    fn add_trace_record(&mut self, thread: u32, record: &NumericRecord) {
        match (record.event, record.which) {
            (TRACE_LOST, 0) => self.begin_gap(thread, record.time, record.arguments[0]),
            (TRACE_EVENTS, 0) => self.change_settings(thread, record),
            (TRACE_INFLIGHT, 0) => {
                // A release whose record was not written when the thread or the process ended.
                let [call, address, ..] = record.arguments;
                let kind = match ((call / 100) as u8, (call % 100) as u8) {
                    MUTEX_UNLOCK => Mutex,
                    RW_UNLOCK => Rwlock,
                    RMUTEX_UNLOCK => Rmutex,
                    SPIN_UNLOCK => Spin,
                    _ => return,
                };
                // The record of the release may have been written, too, before this one or after it.
                let (state, release) = (&mut self.threads[thread as usize], Some((address, record.time)));
                state.in_flight = release;
                let (process, has_record) = (state.process, state.last_release == release);
                if self.kind_at(process, address) == Some(kind) && !has_record {
                    let object = self.object(process, address, kind, 0);
                    self.release(object, thread, 0, Release::Once, record.time);
                }
            }
            _ => {}
        }
    }

    fn add_thread_record(&mut self, thread: u32, record: &NumericRecord) {
        match (record.event, record.which) {
            (THR_CREATE, 1) => self.enter_create(thread, record),
            (THR_CREATE, 2) => self.return_from_create(thread, record),
            (THR_EXIT, 0) => self.threads[thread as usize].has_exited = true,
            (THR_JOIN | THR_TIMEDJOIN, 1) => self.enter_join(thread, record),
            (THR_JOIN | THR_TIMEDJOIN, 2) => self.return_from_join(thread, record),
            (THR_BEGIN, 0) => self.begin_thread(thread, record),
            (THR_DETACH, 0) => self.detach(thread, record),
            (THR_CANCEL, 0) if record.arguments[1] == 0 => self.cancel(thread, record),
            (THR_SETCANCELSTATE, 0) => self.set_cancel_state(thread, record),
            (THR_TRYJOIN, 0) if record.arguments[2] == 0 => {
                let process = self.threads[thread as usize].process;
                if let Some(&joined) = self.thread_of_tid.get(&(process, record.arguments[0])) {
                    self.note_join(thread, joined, record.time);
                }
            }
            (THR_ONCE, 1) => {
                self.note_unwinding(thread, record);
                self.enter_once(thread, record);
            }
            (THR_ONCE, 2) => {
                let state = &self.threads[thread as usize];
                if state.unwound_at > 0 && state.unwound_at == state.last_before {
                    self.unwind(thread);
                }
                self.return_from_once(thread, record);
            }
            (THR_SETNAME, 0) => self.name_thread(thread, record),
            _ => {}
        }
    }

    fn add_mutex_record(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind) {
        let arguments = record.arguments;
        match (record.event, record.which) {
            (MUTEX_INIT | RMUTEX_INIT, 0) => self.initialise(thread, record, kind, arguments[3], arguments[4]),
            (MUTEX_LOCK | RMUTEX_LOCK, 1) => self.enter_lock(thread, record, kind, arguments[3]),
            (MUTEX_TIMEDLOCK | RMUTEX_TIMEDLOCK, 1) => self.enter_lock(thread, record, kind, 0),
            (MUTEX_LOCK | RMUTEX_LOCK | MUTEX_TIMEDLOCK | RMUTEX_TIMEDLOCK, 2) => {
                let depth = if kind == Rmutex { arguments[2] } else { 1 };
                self.return_from_lock(thread, record, arguments[0], arguments[1] != 0, true, depth);
            }
            (MUTEX_TRYLOCK | RMUTEX_TRYLOCK, 0) => self.try_lock(thread, record, kind, true),
            (MUTEX_UNLOCK | RMUTEX_UNLOCK, 0) => self.unlock(thread, record, kind, arguments[1]),
            (MUTEX_DESTROY | RMUTEX_DESTROY, 0) => self.destroy(thread, record, kind, arguments[1]),
            _ => {}
        }
    }

    fn add_cond_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event, record.which) {
            (COND_INIT, 0) => {
                self.initialise(thread, record, Cond, arguments[3], arguments[4]);
                self.note_clock(thread, record);
            }
            (COND_SIGNAL, 0) if arguments[1] == 0 => self.wake(thread, record, Cond, 1),
            (COND_BROADCAST, 0) if arguments[1] == 0 => self.wake(thread, record, Cond, u64::MAX),
            (COND_WAIT | COND_TIMEDWAIT | COND_CLOCKWAIT, 1) => self.enter_cond_wait(thread, record, arguments[4]),
            (COND_WAIT | COND_TIMEDWAIT | COND_CLOCKWAIT, 2) => self.return_from_cond_wait(thread, record),
            (COND_DESTROY, 0) => self.destroy(thread, record, Cond, arguments[1]),
            _ => {}
        }
    }

    fn add_semaphore_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event, record.which) {
            (SEMA_INIT, 0) => self.initialise_semaphore(thread, record, arguments[1] != 0, arguments[3]),
            (SEMA_OPEN, 0) => self.initialise_semaphore(thread, record, true, 0),
            (SEMA_WAIT | SEMA_TIMEDWAIT, 1) => self.enter_idle_wait(thread, record, Sema, arguments[1] == 0),
            (SEMA_WAIT | SEMA_TIMEDWAIT, 2) => self.return_from_idle_wait(thread, record, None),
            (SEMA_TRYWAIT, 0) => {
                let (object, _) = self.called_object(thread, record, Sema, arguments[4]);
                let failed = arguments[1] == libc::EAGAIN as u64;
                self.objects[object as usize].figures.failed_tries += u64::from(failed && self.is_counting);
                self.take_semaphore(object, arguments[1]);
            }
            (SEMA_POST, 0) if arguments[1] == 0 => self.wake(thread, record, Sema, 1),
            (SEMA_DESTROY, 0) => self.destroy(thread, record, Sema, arguments[1]),
            _ => {}
        }
    }

    fn add_rwlock_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event, record.which) {
            (RWLOCK_INIT, 0) => self.initialise(thread, record, Rwlock, arguments[3], arguments[4]),
            (RW_WRLOCK, 1) => self.enter_lock(thread, record, Rwlock, arguments[3]),
            (RW_RDLOCK | RW_TIMEDRDLOCK | RW_TIMEDWRLOCK, 1) => self.enter_lock(thread, record, Rwlock, 0),
            (RW_RDLOCK | RW_TIMEDRDLOCK, 2) => {
                self.return_from_lock(thread, record, arguments[0], arguments[1] != 0, false, 1)
            }
            (RW_WRLOCK | RW_TIMEDWRLOCK, 2) => {
                self.return_from_lock(thread, record, arguments[0], arguments[1] != 0, true, 1)
            }
            (RW_UNLOCK, 0) => self.unlock(thread, record, Rwlock, arguments[1]),
            (RW_TRYRDLOCK, 0) => self.try_lock(thread, record, Rwlock, false),
            (RW_TRYWRLOCK, 0) => self.try_lock(thread, record, Rwlock, true),
            (RWLOCK_DESTROY, 0) => self.destroy(thread, record, Rwlock, arguments[1]),
            _ => {}
        }
    }

    fn add_barrier_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event, record.which) {
            (BARRIER_INIT | BARRIER_SPIN_INIT, 0) => self.initialise_barrier(thread, record),
            (BARRIER_WAIT | BARRIER_SPIN_WAIT, 1) => self.enter_barrier(thread, record),
            (BARRIER_WAIT | BARRIER_SPIN_WAIT, 2) => self.return_from_barrier(thread, record),
            (BARRIER_DESTROY | BARRIER_SPIN_DESTROY, 0) => self.destroy(thread, record, Barrier, arguments[1]),
            _ => {}
        }
    }

    fn add_spin_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event, record.which) {
            (SPIN_INIT, 0) => self.initialise(thread, record, Spin, arguments[2], arguments[4]),
            (SPIN_LOCK, 1) => self.enter_lock(thread, record, Spin, 0),
            (SPIN_LOCK, 2) => self.return_from_lock(thread, record, 0, arguments[0] != 0, true, 1),
            (SPIN_TRYLOCK, 0) => self.try_lock(thread, record, Spin, true),
            (SPIN_UNLOCK, 0) => self.unlock(thread, record, Spin, 0),
            (SPIN_DESTROY, 0) => self.destroy(thread, record, Spin, arguments[1]),
            _ => {}
        }
    }

    fn add_futex_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event, record.which) {
            (FUTEX_WAIT, 1) => self.enter_idle_wait(thread, record, Futex, true),
            (FUTEX_WAIT, 2) => {
                let record = returned_with_error(record);
                self.return_from_idle_wait(thread, &record, Some(libc::EAGAIN as u64));
            }
            (FUTEX_WAKE, 0) if (arguments[3] as i64) > 0 => self.wake(thread, record, Futex, arguments[3]),
            // Nobody waited any more.
            (FUTEX_WAKE, 0) if arguments[3] == 0 => {
                let process = self.threads[thread as usize].process;
                if let Some(object) = self.object_at(process, arguments[0]) {
                    self.note_futex_wake(object, thread, record.time);
                }
            }
            (FUTEX_OP, 1) => self.enter_futex_operation(thread, record),
            (FUTEX_OP, 2) => self.return_from_futex_operation(thread, record),
            _ => {}
        }
    }

    fn add_process_record(&mut self, thread: u32, record: &NumericRecord) {
        let process = self.threads[thread as usize].process;
        match (record.event, record.which) {
            (PROC_FORK, 1) => self.enter_fork(thread, record),
            (PROC_FORK, 2) => self.return_from_fork(thread, record),
            (PROC_BEGIN, 0) => self.begin_forked_process(thread, record),
            (PROC_EXEC, 1) => self.begin_exec(process, record),
            (PROC_EXEC, 2) => self.end_exec(process),
            (PROC_EXIT, 0) => {
                let process = &mut self.processes[process as usize];
                (process.end, process.exited_by) = (ImageEnd::Exit, Some(thread));
            }
            _ => {}
        }
    }

    /// Takes an initialisation: nobody holds the object.
    fn initialise(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind, rval: u64, site: u64) {
        let (object, site) = self.called_object(thread, record, kind, site);
        if rval == 0 {
            let state = &mut self.objects[object as usize];
            (state.site, state.is_initialised) = (site, site != 0);
            state.is_made_here = true;
            state.has_no_attributes = record.arguments[1] == 0;
            state.has_attributes = !state.has_no_attributes;
            state.may_be_robust = kind.can_be_robust() && record.arguments[1] != 0;
            state.may_be_held_elsewhere = may_be_for_processes(kind, &record.arguments);
            self.forget_handed_on(object);
            if self.objects[object as usize].figures.calls > 1
                && let Some(order) = &mut self.order
            {
                order.renew(object);
            }
            let holds = self.objects[object as usize].occupancy.lose_holds();
            // A function that pthread_atfork(3) lets a child call may initialise what the forking thread had locked.
            let process = &self.processes[self.threads[thread as usize].process as usize];
            let forked_at = process.parent.map(|_| process.begin);
            let is_inherited = |hold: &Hold| hold.holder.thread == thread && Some(hold.from) == forked_at;
            let (inherited, lost): (Vec<Hold>, Vec<Hold>) = holds.into_iter().partition(is_inherited);
            inherited.into_iter().for_each(|hold| self.account_hold(object, hold, record.time));
            self.lose_holds(object, &lost);
        }
    }

    /// Takes the initialisation of a barrier.
    fn initialise_barrier(&mut self, thread: u32, record: &NumericRecord) {
        let [address, attributes, count, site, rval] = record.arguments;
        self.initialise(thread, record, Barrier, rval, site);
        if rval == 0 {
            let process = self.threads[thread as usize].process;
            let object = self.object(process, address, Barrier, 0);
            // Threads of other processes may be among those of a round, if its attributes say so, which are not recorded.
            self.objects[object as usize].wakeups.rounds.size = (attributes == 0).then_some(count);
        }
    }

    fn initialise_semaphore(&mut self, thread: u32, record: &NumericRecord, is_shared: bool, site: u64) {
        let rval = record.arguments[4];
        if rval == 0 {
            self.initialise(thread, record, Sema, rval, site);
            let process = self.threads[thread as usize].process;
            let object = self.object(process, record.arguments[0], Sema, 0);
            self.objects[object as usize].is_shared |= is_shared;
        }
    }

    fn destroy(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind, rval: u64) {
        let (object, site) = self.called_object(thread, record, kind, record.arguments[4]);
        self.check_destroy(object, thread, site, record.time);
        if rval == 0 {
            let process = self.threads[thread as usize].process;
            self.end_object(process, record.arguments[0]);
        }
    }
}
