//! What the critical path needs of waits, threads and processes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use spec::event_numbers::PROC_FORK;

use super::analysis::{Analysis, WaitPlace};
use super::tables::{ImageEnd, ProgramState, ThreadState};
use super::waker::Waker;
use crate::report::critical_path::{CriticalPath, PathOrigin, PathThread, WaitEnd};

impl Analysis {
    /// Takes the end of a wait: its time limit, or else this waker, if it is known.
    pub fn end_wait(&mut self, place: WaitPlace, now: u64, waker: Option<Waker>) {
        self.end_wait_as(place, now, waker.map(|Waker { thread, time, .. }| WaitEnd::Woken(thread, time)));
    }

    /// As [`Analysis::end_wait`], where the thread has got a lock, which another process may have had since this waker released it or let
    /// the thread want it.
    pub fn end_lock_wait(&mut self, lock: u32, place: WaitPlace, now: u64, waker: Option<Waker>) {
        self.end_wait_as(place, now, waker.map(|Waker { thread, time, .. }| WaitEnd::Released(thread, time, lock)));
    }

    fn end_wait_as(&mut self, place: WaitPlace, now: u64, how: Option<WaitEnd>) {
        let how = if place.has_timed_out { WaitEnd::TimedOut } else { how.unwrap_or(WaitEnd::Unknown) };
        self.activities.end_wait(place.thread, place.entry, now, how);
    }

    /// Who ended a wait of a thread for something else than a lock, unless the record of an earlier one may be missing.
    pub fn known_waker(&self, thread: u32, entry: u64, waker: Option<Waker>) -> Option<Waker> {
        waker.filter(|_| self.knows_wakers(thread, entry))
    }

    /// Whether no record is missing since a wait of a thread began.
    pub fn knows_wakers(&self, thread: u32, entry: u64) -> bool {
        let process = self.threads[thread as usize].process;
        entry >= self.processes[process as usize].knowledge.complete_from
    }

    /// Ends the last stretch of the thread that ended a process.
    pub fn end_activities(&mut self, process: u32) {
        let state = &self.processes[process as usize];
        let (thread, end) = (state.ended_by(), state.last);
        let state = &self.threads[thread as usize];
        let open_wait = state.open.last().filter(|call| call.waits && call.event != PROC_FORK);
        match open_wait {
            _ if state.is_in_gap => self.activities.end_wait(thread, state.last, end, WaitEnd::Unknown),
            Some(call) if self.processes[process as usize].end != ImageEnd::Exit => {
                self.activities.end_wait(thread, call.entry, end, WaitEnd::Unknown);
            }
            _ => self.activities.log_until(thread, end),
        }
    }

    /// Finds the critical path of each process, once the analysis is finished.
    ///
    /// # Errors
    /// Any failure of a temporary file.
    pub fn find_critical_paths(&mut self) -> io::Result<()> {
        let thread = |thread: &ThreadState| PathThread {
            process: thread.process,
            begin: thread.begin,
            is_main: self.processes[thread.process as usize].is_main(thread.lwp),
            creator: thread
                .creation
                .filter(|_| thread.start.is_some())
                .map(|creation| (creation.creator, creation.time)),
        };
        let threads: Vec<PathThread> = self.threads.iter().map(thread).collect();
        let origin = |process: &ProgramState| PathOrigin {
            begin: process.begin,
            end: process.last,
            thread: process.ended_by(),
            complete_from: process.complete_from,
        };
        let origins: Vec<PathOrigin> = self.processes.iter().map(origin).collect();
        let activities = std::mem::take(&mut self.activities);
        let shown = |object| self.objects.first(object);
        // A path comes to one lock many times.
        let known: RefCell<HashMap<u32, bool>> = RefCell::default();
        let hides_holders = |object| *known.borrow_mut().entry(object).or_insert_with(|| self.may_hide_holders(object));
        self.critical_paths = CriticalPath::of_all(activities, &threads, &origins, &shown, &hides_holders)?;
        Ok(())
    }
}
