//! What each record means to the analysis. Numbers of events are those of the table of events (`spec/events.tsv`).

use spec::tables::{USER, USER_OBJECT};

use super::analysis::Analysis;
use super::holds::{Hold, Release};
use super::numeric_record::NumericRecord;
use super::object_state::ObjectKind::{self, Barrier, Cond, Futex, Mutex, Rmutex, Rwlock, Sema, Spin};
use super::process_sharing::may_be_for_processes;
use super::tables::ImageEnd;
use crate::record::call_stack::TRACE_STACK;

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
            0 => self.add_trace_record(thread, record),
            1 => self.add_thread_record(thread, record),
            2 => self.add_mutex_record(thread, record, Mutex),
            3 => self.add_cond_record(thread, record),
            4 => self.add_semaphore_record(thread, record),
            5 => self.add_rwlock_record(thread, record),
            6 => self.add_mutex_record(thread, record, Rmutex),
            7 => self.add_barrier_record(thread, record),
            8 => {
                // As those of barriers, but for the order of the last two arguments of its initialisation.
                let mut record = *record;
                if record.event.1 == 1 {
                    record.arguments.swap(3, 4);
                }
                self.add_barrier_record(thread, &record);
            }
            9 => self.add_spin_record(thread, record),
            10 => self.add_futex_record(thread, record),
            11 => self.add_process_record(thread, record),
            USER if record.event.1 == USER_OBJECT => {
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
        match (record.event.1, record.which) {
            (1, 0) => self.begin_gap(thread, record.time, record.arguments[0]),
            (2, 0) => self.change_settings(thread, record),
            (4, 0) => {
                // A release whose record was not written when the thread or the process ended.
                let [call, address, ..] = record.arguments;
                let kind = match call {
                    204 => Mutex,
                    504 => Rwlock,
                    604 => Rmutex,
                    904 => Spin,
                    _ => return,
                };
                let process = self.threads[thread as usize].process;
                // The record of the release may have been written, too.
                let has_record = self.threads[thread as usize].last_release == Some((address, record.time));
                if self.kind_at(process, address) == Some(kind) && !has_record {
                    let object = self.object(process, address, kind, 0);
                    self.release(object, thread, 0, Release::Once, record.time);
                }
            }
            _ => {}
        }
    }

    fn add_thread_record(&mut self, thread: u32, record: &NumericRecord) {
        match (record.event.1, record.which) {
            (1, 1) => self.enter_create(thread, record),
            (1, 2) => self.return_from_create(thread, record),
            (2, 0) => self.threads[thread as usize].has_exited = true,
            (3 | 37, 1) => self.enter_join(thread, record),
            (3 | 37, 2) => self.return_from_join(thread, record),
            (30, 0) => self.begin_thread(thread, record),
            (31, 0) => self.detach(thread, record),
            (32, 0) if record.arguments[1] == 0 => self.cancel(thread, record),
            (33, 0) => self.set_cancel_state(thread, record),
            (36, 0) if record.arguments[2] == 0 => {
                let process = self.threads[thread as usize].process;
                if let Some(&joined) = self.thread_of_tid.get(&(process, record.arguments[0])) {
                    self.note_join(thread, joined, record.time);
                }
            }
            (38, 1) => {
                self.note_unwinding(thread, record);
                self.enter_once(thread, record);
            }
            (38, 2) => {
                let state = &self.threads[thread as usize];
                if state.unwound_at > 0 && state.unwound_at == state.last_before {
                    self.unwind(thread);
                }
                self.return_from_once(thread, record);
            }
            (39, 0) => self.name_thread(thread, record),
            _ => {}
        }
    }

    fn add_mutex_record(&mut self, thread: u32, record: &NumericRecord, kind: ObjectKind) {
        let arguments = record.arguments;
        match (record.event.1, record.which) {
            (1, 0) => self.initialise(thread, record, kind, arguments[3], arguments[4]),
            (2, 1) => self.enter_lock(thread, record, kind, arguments[3]),
            (30, 1) => self.enter_lock(thread, record, kind, 0),
            (2 | 30, 2) => {
                let depth = if kind == Rmutex { arguments[2] } else { 1 };
                self.return_from_lock(thread, record, arguments[0], arguments[1] != 0, true, depth);
            }
            (3, 0) => self.try_lock(thread, record, kind, true),
            (4, 0) => self.unlock(thread, record, kind, arguments[1]),
            (5, 0) => self.destroy(thread, record, kind, arguments[1]),
            _ => {}
        }
    }

    fn add_cond_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event.1, record.which) {
            (1, 0) => {
                self.initialise(thread, record, Cond, arguments[3], arguments[4]);
                self.note_clock(thread, record);
            }
            (2, 0) if arguments[1] == 0 => self.wake(thread, record, Cond, 1),
            (3, 0) if arguments[1] == 0 => self.wake(thread, record, Cond, u64::MAX),
            (4 | 5 | 30, 1) => self.enter_cond_wait(thread, record, arguments[4]),
            (4 | 5 | 30, 2) => self.return_from_cond_wait(thread, record),
            (6, 0) => self.destroy(thread, record, Cond, arguments[1]),
            _ => {}
        }
    }

    fn add_semaphore_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event.1, record.which) {
            (1, 0) => self.initialise_semaphore(thread, record, arguments[1] != 0, arguments[3]),
            (31, 0) => self.initialise_semaphore(thread, record, true, 0),
            (2 | 30, 1) => self.enter_idle_wait(thread, record, Sema, arguments[1] == 0),
            (2 | 30, 2) => self.return_from_idle_wait(thread, record, None),
            (3, 0) => {
                let (object, _) = self.called_object(thread, record, Sema, arguments[4]);
                let failed = arguments[1] == libc::EAGAIN as u64;
                self.objects[object as usize].figures.failed_tries += u64::from(failed && self.is_counting);
                self.take_semaphore(object, arguments[1]);
            }
            (4, 0) if arguments[1] == 0 => self.wake(thread, record, Sema, 1),
            (5, 0) => self.destroy(thread, record, Sema, arguments[1]),
            _ => {}
        }
    }

    fn add_rwlock_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event.1, record.which) {
            (1, 0) => self.initialise(thread, record, Rwlock, arguments[3], arguments[4]),
            (3, 1) => self.enter_lock(thread, record, Rwlock, arguments[3]),
            (2 | 30 | 31, 1) => self.enter_lock(thread, record, Rwlock, 0),
            (2 | 30, 2) => self.return_from_lock(thread, record, arguments[0], arguments[1] != 0, false, 1),
            (3 | 31, 2) => self.return_from_lock(thread, record, arguments[0], arguments[1] != 0, true, 1),
            (4, 0) => self.unlock(thread, record, Rwlock, arguments[1]),
            (5, 0) => self.try_lock(thread, record, Rwlock, false),
            (6, 0) => self.try_lock(thread, record, Rwlock, true),
            (7, 0) => self.destroy(thread, record, Rwlock, arguments[1]),
            _ => {}
        }
    }

    fn add_barrier_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event.1, record.which) {
            (1, 0) => self.initialise_barrier(thread, record),
            (2, 1) => self.enter_barrier(thread, record),
            (2, 2) => self.return_from_barrier(thread, record),
            (3, 0) => self.destroy(thread, record, Barrier, arguments[1]),
            _ => {}
        }
    }

    fn add_spin_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event.1, record.which) {
            (1, 0) => self.initialise(thread, record, Spin, arguments[2], arguments[4]),
            (2, 1) => self.enter_lock(thread, record, Spin, 0),
            (2, 2) => self.return_from_lock(thread, record, 0, arguments[0] != 0, true, 1),
            (3, 0) => self.try_lock(thread, record, Spin, true),
            (4, 0) => self.unlock(thread, record, Spin, 0),
            (5, 0) => self.destroy(thread, record, Spin, arguments[1]),
            _ => {}
        }
    }

    fn add_futex_record(&mut self, thread: u32, record: &NumericRecord) {
        let arguments = record.arguments;
        match (record.event.1, record.which) {
            (1, 1) => self.enter_idle_wait(thread, record, Futex, true),
            (1, 2) => {
                let record = returned_with_error(record);
                self.return_from_idle_wait(thread, &record, Some(libc::EAGAIN as u64));
            }
            (2, 0) if (arguments[3] as i64) > 0 => self.wake(thread, record, Futex, arguments[3]),
            // Nobody waited any more.
            (2, 0) if arguments[3] == 0 => {
                let process = self.threads[thread as usize].process;
                if let Some(object) = self.object_at(process, arguments[0]) {
                    self.note_futex_wake(object, thread, record.time);
                }
            }
            (3, 1) => self.enter_futex_operation(thread, record),
            (3, 2) => self.return_from_futex_operation(thread, record),
            _ => {}
        }
    }

    fn add_process_record(&mut self, thread: u32, record: &NumericRecord) {
        let process = self.threads[thread as usize].process;
        match (record.event.1, record.which) {
            (1, 1) => self.enter_fork(thread, record),
            (1, 2) => self.return_from_fork(thread, record),
            (2, 0) => self.begin_forked_process(thread, record),
            (3, 1) => self.begin_exec(process, record),
            (3, 2) => self.end_exec(process),
            (4, 0) => {
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
