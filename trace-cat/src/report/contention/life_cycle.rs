//! Processes and threads: when they begin, fork, execute other programs, lose records, and end.

use std::cmp::Reverse;

use spec::event_numbers::{PROC_BEGIN, PROC_EXEC, PROC_FORK, THR_BEGIN, THR_JOIN, THR_TIMEDJOIN, TRACE_LOST};

use super::analysis::{Analysis, WaitPlace};
use super::futex_state::FutexCall;
use super::numeric_record::NumericRecord;
use super::object_state::ObjectState;
use super::tables::{
    ImageEnd, InheritedHold, OngoingCall, ProgramState, ShownSettings, ThreadFate, ThreadState, may_be_of_handler,
};
use super::timeline_event::TimelineEvent;
use super::wait_shares::Holder;
use super::waiter_wakes::WaitedWords;
use crate::report::critical_path::WaitEnd;
use crate::symbols::CodeMaps;

/// Kinds of proc_fork whose child goes on with the parent's memory.
const COPYING_FORKS: [u64; 4] = [0, 6, 7, 8];

impl Analysis {
    /// What a thread holds, for a child that it forks.
    pub fn inherited_holds(&self, thread: u32) -> Vec<InheritedHold> {
        let hold = |&object: &u32| {
            let ObjectState { address, kind, ref occupancy, .. } = self.objects[object as usize];
            let hold = occupancy.holds.iter().find(|hold| hold.holder.thread == thread && !hold.may_have_ended)?;
            let (is_exclusive, site, depth) = (occupancy.is_exclusive(), hold.holder.site, hold.depth);
            Some(InheritedHold { address, kind, is_exclusive, site, depth })
        };
        self.threads[thread as usize].holds.iter().filter_map(hold).collect()
    }

    /// The thread of a record, which is noted as its latest one.
    pub fn thread_of(&mut self, record: &NumericRecord) -> u32 {
        let NumericRecord { time, pid, lwp, event, .. } = *record;
        let is_first = matches!(event, THR_BEGIN | PROC_BEGIN);
        let recent = &self.recent_threads[(lwp & 255) as usize];
        let thread = if (recent.0, recent.1) == (pid, lwp) && recent.2 != u32::MAX && !is_first && self.execs == 0 {
            recent.2
        } else {
            let thread = self.find_thread(record, is_first);
            self.recent_threads[(lwp & 255) as usize] = (pid, lwp, thread);
            thread
        };
        let state = &mut self.threads[thread as usize];
        (state.last_before, state.last) = (state.last, time);
        state.last_outside_before = state.last_outside;
        if !may_be_of_handler(event) {
            state.last_outside = time;
        }
        let process = &mut self.processes[state.process as usize];
        process.last = process.last.max(time);
        process.last_thread = thread;
        process.records += 1;
        if state.begins_changed {
            state.begins_changed = false;
            match event {
                THR_BEGIN => state.knows_holds = true,
                _ => self.begin_change(thread, time),
            }
        }
        let state = &mut self.threads[thread as usize];
        let process = &mut self.processes[state.process as usize];
        if state.is_in_gap && event != TRACE_LOST {
            state.is_in_gap = false;
            state.complete_from = if state.complete_from == u64::MAX { time } else { state.complete_from };
            self.activities.end_wait(thread, 0, time, WaitEnd::Unknown);
            process.gaps -= 1;
            if process.gaps == 0 {
                process.knowledge.complete_from = time.max(process.complete_from);
            }
            self.draw(TimelineEvent::LossEnd { thread, time });
        }
        thread
    }

    fn find_thread(&mut self, record: &NumericRecord, is_first: bool) -> u32 {
        let process = self.find_process(record);
        if let Some(&thread) = self.thread_of_lwp.get(&(process, record.lwp))
            && !(record.event == THR_BEGIN && self.has_begun(thread, record.tid))
        {
            return thread;
        }
        let complete_from = self.processes[process as usize].complete_from;
        self.activities.add_thread(record.time, complete_from);
        self.threads.push(ThreadState {
            process,
            lwp: record.lwp,
            has_used_lwp: self.is_lwp_used(process, record),
            tid: record.tid,
            begin: record.time,
            last: record.time,
            last_outside: record.time,
            last_outside_before: 0,
            last_before: 0,
            unwound_at: 0,
            has_exited: false,
            cancelled: None,
            disables_cancel: false,
            last_release: None,
            in_flight: None,
            name: self.names_of_new.remove(&(process, record.tid)),
            start: None,
            open: Vec::new(),
            holds: Vec::new(),
            lock_wait_end: 0,
            waited_words: WaitedWords::NONE,
            contention: 0,
            idleness: 0,
            waits: 0,
            caused: 0,
            is_in_gap: false,
            complete_from: 0,
            begins_changed: false,
            knows_holds: is_first || self.processes[process as usize].knowledge.complete_from == 0,
            creation: None,
            creating: None,
            fate: ThreadFate::default(),
        });
        let thread = self.threads.len() as u32 - 1;
        self.processes[process as usize].threads.push(thread);
        self.thread_of_lwp.insert((process, record.lwp), thread);
        self.thread_of_tid.insert((process, record.tid), thread);
        self.draw(TimelineEvent::ThreadBegin { thread });
        self.find_creation(thread);
        thread
    }

    /// Whether a thread that begins with this `pthread_t` is another one than the one that its LWP was. It is the same one if a signal
    /// handler has run in it before it began.
    fn has_begun(&self, thread: u32, tid: u64) -> bool {
        let state = &self.threads[thread as usize];
        state.has_exited || state.start.is_some() || state.tid != tid
    }

    fn find_process(&mut self, record: &NumericRecord) -> u32 {
        let is_begin = record.event == PROC_BEGIN;
        let known = self.process_of_pid.get(&record.pid).copied();
        if let Some(process) = known.filter(|_| !is_begin) {
            if !self.has_executed(process, record) {
                return process;
            }
            let (by, time) = self.processes[process as usize].exec.unwrap_or((record.lwp, record.time));
            self.processes[process as usize].exited_by = self.thread_of_lwp.get(&(process, by)).copied();
            self.end_exec(process);
            self.end_process(process, time, ImageEnd::Exec);
            let image = self.processes[process as usize].image + 1;
            return self.add_process(record, image, None);
        }
        let parent = self.process_of_pid.get(&(record.arguments[0] as u32)).copied().filter(|_| is_begin);
        self.add_process(record, 0, parent)
    }

    /// The thread of a record that was taken last.
    pub fn thread_of_record(&self, record: &NumericRecord) -> Option<u32> {
        let process = self.process_of_pid.get(&record.pid)?;
        Some(self.processes[*process as usize].last_thread)
    }

    fn add_process(&mut self, record: &NumericRecord, image: u32, parent: Option<u32>) -> u32 {
        let knowledge = self.knowledge.get(&record.pid).copied().unwrap_or(self.knowledge_of_others);
        let NumericRecord { time, pid, .. } = *record;
        self.processes.push(ProgramState {
            pid,
            image,
            parent,
            begin: time,
            forked_at: time,
            objects_before: self.objects.len(),
            last: time,
            end: ImageEnd::Unknown,
            knowledge,
            complete_from: knowledge.complete_from,
            shown: ShownSettings::default(),
            gaps: 0,
            lacks_newest: false,
            has_buffers: false,
            threads: Vec::new(),
            records: 0,
            lost: 0,
            changes: 0,
            changed_at: 0,
            last_thread: 0,
            exited_by: None,
            exec: None,
            fork_holds: Default::default(),
            is_forking: false,
            held_when_forking: Vec::new(),
            held_at_fork: Vec::new(),
            handed_on: Default::default(),
            fork_returns: Default::default(),
        });
        let process = self.processes.len() as u32 - 1;
        self.process_of_pid.insert(pid, process);
        self.know_code_of(process);
        self.recent_threads.iter_mut().for_each(|recent| recent.2 = u32::MAX);
        process
    }

    /// Takes what is known by now of the code of the programs that the process with this ID executed, one after the other.
    pub fn know_code(&mut self, pid: u32, programs: Vec<&CodeMaps>) {
        if !programs.iter().any(|maps| maps.has_changes()) {
            return;
        }
        self.changed_code.insert(pid, programs.into_iter().cloned().collect());
        let processes = self.processes.iter().zip(0..).filter(|(process, _)| process.pid == pid);
        let processes: Vec<u32> = processes.map(|(_, index)| index).collect();
        processes.into_iter().for_each(|process| self.know_code_of(process));
    }

    /// Lets sites of a process be those of its code.
    pub fn know_code_of(&mut self, process: u32) {
        let ProgramState { pid, image, .. } = self.processes[process as usize];
        let programs = self.changed_code.get(&pid);
        if let Some(maps) = programs.and_then(|programs| programs.get(image as usize).or(programs.last())) {
            self.sites.know_code(process, maps);
        }
    }

    /// Whether a record shows that a process has executed another program: the thread that began to has made it, and it is not the
    /// return record of a failure; or the main thread is another one.
    fn has_executed(&self, process: u32, record: &NumericRecord) -> bool {
        let state = &self.processes[process as usize];
        let Some((by, _)) = state.exec else { return false };
        let is_main = state.is_main(record.lwp);
        if record.lwp == by {
            return is_main && (record.event, record.which) != (PROC_EXEC, 2);
        }
        let main = self.thread_of_lwp.get(&(process, record.lwp));
        let is_other = main.is_none_or(|main| self.threads[*main as usize].tid != record.tid);
        is_main && is_other
    }

    /// Takes the record of a thread that begins to execute another program.
    pub fn begin_exec(&mut self, process: u32, record: &NumericRecord) {
        let state = &mut self.processes[process as usize];
        self.execs += u32::from(state.exec.is_none());
        state.exec = Some((record.lwp, record.time));
    }

    /// Notes that a process does not execute another program, or has done so.
    pub fn end_exec(&mut self, process: u32) {
        self.execs -= u32::from(self.processes[process as usize].exec.take().is_some());
    }

    /// Takes the return record of a fork in the parent: what the thread holds then is what the child began with.
    pub fn return_from_fork(&mut self, thread: u32, record: &NumericRecord) {
        self.close_call(thread, record);
        let process = self.threads[thread as usize].process;
        self.processes[process as usize].is_forking = false;
        let [child, _, kind, ..] = record.arguments;
        if child != 0 && COPYING_FORKS.contains(&kind) {
            let holds = self.inherited_holds(thread);
            let known = self.process_of_pid.get(&(child as u32)).copied();
            if known.is_none_or(|known| self.processes[known as usize].parent != Some(process)) {
                self.processes[process as usize].fork_returns.insert(child as u32, record.time);
            }
            if !holds.is_empty() {
                self.processes[process as usize].fork_holds.insert(child as u32, holds);
            }
        }
    }

    /// Takes the first record of a forked child: its thread has what the forking thread had.
    pub fn begin_forked_process(&mut self, thread: u32, record: &NumericRecord) {
        let process = self.threads[thread as usize].process;
        let Some(parent) = self.processes[process as usize].parent else { return };
        self.draw_fork(parent, thread, record);
        if let Some(time) = self.processes[parent as usize].fork_returns.remove(&record.pid) {
            self.processes[process as usize].forked_at = time;
        }
        self.note_held_at_fork(process, parent);
        self.processes[process as usize].handed_on = self.processes[parent as usize].handed_on.clone();
        let returned = self.processes[parent as usize].fork_holds.remove(&record.pid);
        let holds = returned.unwrap_or_else(|| self.holds_of_forking_thread(parent, record.tid));
        for InheritedHold { address, kind, is_exclusive, site, depth } in holds {
            let own = self.object(process, address, kind, site);
            self.acquire(own, Holder { thread, site }, depth, is_exclusive, record.time, false);
            if kind.is_copied_by_fork() {
                self.inherit_lock(own, thread, record.time);
            }
        }
    }

    /// What the thread of a process holds that has this pthread_t and is forking now.
    fn holds_of_forking_thread(&self, process: u32, tid: u64) -> Vec<InheritedHold> {
        let Some(&thread) = self.thread_of_tid.get(&(process, tid)) else { return Vec::new() };
        let open = &self.threads[thread as usize].open;
        let is_copying = |call: &OngoingCall| call.event == PROC_FORK && call.waits;
        if open.iter().any(is_copying) { self.inherited_holds(thread) } else { Vec::new() }
    }

    /// Takes the entry record of a fork.
    pub fn enter_fork(&mut self, thread: u32, record: &NumericRecord) {
        self.open_call(thread, record, 0, None, COPYING_FORKS.contains(&record.arguments[0]));
        self.note_held_when_forking(thread);
    }

    /// Takes the first record of a thread.
    pub fn begin_thread(&mut self, thread: u32, record: &NumericRecord) {
        self.threads[thread as usize].start = Some(record.arguments[0]);
    }

    /// Takes a thread's name: 16 bytes, the first most significant.
    pub fn name_thread(&mut self, thread: u32, record: &NumericRecord) {
        let [tid, first, second, rval, ..] = record.arguments;
        let process = self.threads[thread as usize].process;
        if rval == 0 {
            let name = (u128::from(first) << 64 | u128::from(second)).to_be_bytes();
            match self.thread_of_tid.get(&(process, tid)) {
                Some(named) => self.threads[*named as usize].name = Some(name),
                None => _ = self.names_of_new.insert((process, tid), name),
            }
        }
    }

    /// Accounts a thread's open wait, which lasted at least until `end`.
    pub fn account_open_wait(&mut self, thread: u32, end: u64) {
        // Outer calls were interrupted by a signal handler.
        let Some(&call) = self.threads[thread as usize].open.last().filter(|call| call.waits) else { return };
        let state = &mut self.threads[thread as usize];
        if state.has_gone_on(&call) {
            if state.has_exited {
                // It is in no outer call either.
                let left = std::mem::take(&mut state.open);
                left.into_iter().rev().for_each(|call| self.abandon_call(thread, call));
            } else {
                // The graph of waits still asks whether it may be in it.
                self.abandon_call(thread, call);
            }
            return;
        }
        let OngoingCall { event, entry, site, object, .. } = call;
        let place = WaitPlace { is_open: true, ..WaitPlace::new(thread, site, entry) };
        match object {
            Some(object) if self.objects[object as usize].kind.is_lock() || call.futex == FutexCall::Lock => {
                let knowledge = self.knowledge_of(object);
                let occupancy = &mut self.objects[object as usize].occupancy;
                if let Some(wait) = occupancy.end_wait(u64::from(thread), end.max(entry), knowledge) {
                    self.account_contention(object, wait, place, None);
                }
            }
            Some(_) => self.account_idleness(object, end, 0, place, None),
            None if matches!(event, THR_JOIN | THR_TIMEDJOIN) => self.account_idleness(None, end, 0, place, None),
            None => {}
        }
    }

    /// Accounts a thread's holds, which lasted until `end`.
    pub fn account_last_holds(&mut self, thread: u32, end: u64) {
        let held = std::mem::take(&mut self.threads[thread as usize].holds);
        let hold = |object: u32| {
            let holds = &self.objects[object as usize].occupancy.holds;
            holds.iter().find(|hold| hold.holder.thread == thread).map(|hold| (object, *hold))
        };
        let mut holds: Vec<_> = held.into_iter().filter_map(hold).collect();
        // The innermost first.
        holds.sort_by_key(|(_, hold)| Reverse(hold.from));
        for (object, hold) in holds {
            match hold.may_have_ended {
                true => self.lose_holds(object, &[hold]),
                false => self.account_hold(object, hold, end),
            }
        }
    }

    /// Ends a process that executes another program: its waits and holds end with it.
    pub fn end_process(&mut self, process: u32, end: u64, how: ImageEnd) {
        self.processes[process as usize].end = how;
        self.end_activities(process);
        let threads = self.processes[process as usize].threads.clone();
        self.check_ends(&threads);
        for thread in threads {
            self.account_open_wait(thread, end);
            self.account_last_holds(thread, end);
            self.threads[thread as usize].open.clear();
        }
        self.draw_process_end(process);
    }
}
