//! Records that are missing because they were lost, or are where nobody can read them.
//!
//! Where a record counts what was lost before, what a thread did in between is a gap, which ends with its next record. Of a process that
//! was killed or runs, losses may be behind the last record of a thread: then nobody knows what it does in the end, and a call that it
//! was in may be over.

use super::analysis::Analysis;
use super::numeric_record::NumericRecord;
use super::tables::{ImageEnd, ThreadState};
use super::timeline_event::TimelineEvent;
use super::wait_shares::Occupant;

/// Whose newest records are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingNewest {
    pub pid: u32,
    /// The LWPs of the threads; `None` for all that have not ended.
    pub threads: Option<Vec<u32>>,
}

impl Analysis {
    /// Adds the records that processes lost before they died, which no loss record counts, by process ID. Nobody knows when they
    /// were lost: what was held is judged by [`Knowledge::complete_from`].
    pub fn add_unreported_losses(&mut self, losses: &[(u32, u64)]) {
        for (pid, lost) in losses {
            if let Some(&process) = self.process_of_pid.get(pid) {
                self.processes[process as usize].lost += lost;
            }
        }
    }

    /// Corrects the number of records that a process has lost to what it has counted itself: on a full disk it may have had no
    /// room for all its loss records.
    pub fn raise_losses(&mut self, pid: u32, lost: u64) {
        if let Some(&process) = self.process_of_pid.get(&pid).filter(|_| lost > 0) {
            let counted: u64 =
                self.processes.iter().filter(|program| program.pid == pid).map(|program| program.lost).sum();
            let uncounted = lost.saturating_sub(counted);
            let state = &mut self.processes[process as usize];
            state.lost += uncounted;
            if uncounted > 0 && state.end == ImageEnd::Exit {
                // Of which threads they were nobody knows.
                self.lose_ends(process, |thread| !thread.open.is_empty());
            }
        }
    }

    /// Takes that the trbufs of these processes are there.
    pub fn note_buffers(&mut self, pids: impl Iterator<Item = u32>) {
        for pid in pids {
            if let Some(&process) = self.process_of_pid.get(&pid) {
                self.processes[process as usize].has_buffers = true;
            }
        }
    }

    /// Takes that the newest records of threads are missing: they were lost, or are in memory that nobody can read.
    pub fn lose_newest(&mut self, missing: &[MissingNewest]) {
        for MissingNewest { pid, threads } in missing {
            let Some(&process) = self.process_of_pid.get(pid) else { continue };
            let state = &mut self.processes[process as usize];
            let is_over = matches!(state.end, ImageEnd::Exit | ImageEnd::Exec) || state.exec.is_some();
            match threads {
                Some(lwps) => self.lose_ends(process, |thread| lwps.contains(&thread.lwp)),
                // All that is recorded is written when a process or a thread ends.
                None if !is_over => {
                    state.lacks_newest = true;
                    self.lose_ends(process, |thread| !thread.has_exited);
                }
                None => {}
            }
        }
    }

    /// Takes that nobody knows what these threads of a process have done since their last records.
    fn lose_ends(&mut self, process: u32, are_lost: impl Fn(&ThreadState) -> bool) {
        for thread in self.processes[process as usize].threads.clone() {
            let state = &self.threads[thread as usize];
            if !are_lost(state) {
                continue;
            }
            let (last, held) = (state.last, state.holds.clone());
            self.begin_gap(thread, last, 0);
            let is_of_thread = |occupant: &Occupant| match occupant {
                Occupant::One(holder) => holder.thread == thread,
                Occupant::Several(holders) => holders.iter().any(|holder| holder.thread == thread),
                Occupant::Unknown | Occupant::Nobody => false,
            };
            for object in held {
                let log = &mut self.objects[object as usize].occupancy.log;
                log.rewrite(last, |occupant| is_of_thread(occupant).then_some(Occupant::Unknown));
            }
        }
    }

    /// Takes a loss record: what the thread has done since, and what it holds, is not known.
    pub fn begin_gap(&mut self, thread: u32, time: u64, lost: u64) {
        let process = self.threads[thread as usize].process as usize;
        self.processes[process].lost += lost;
        let state = &mut self.threads[thread as usize];
        (state.knows_holds, state.disables_cancel) = (false, false);
        state.complete_from = u64::MAX;
        for call in std::mem::take(&mut self.threads[thread as usize].open) {
            self.abandon_call(thread, call);
        }
        for object in std::mem::take(&mut self.threads[thread as usize].holds) {
            let knowledge = self.knowledge_of(object);
            let state = &mut self.objects[object as usize];
            let hold = state.occupancy.forget_thread(thread, time, knowledge);
            state.forget_releases();
            hold.into_iter().for_each(|hold| self.lose_holds(object, &[hold]));
        }
        self.activities.log_until(thread, time);
        self.draw(TimelineEvent::Loss { thread, time, lost });
        if !self.threads[thread as usize].is_in_gap {
            self.threads[thread as usize].is_in_gap = true;
            self.processes[process].gaps += 1;
        }
        self.processes[process].knowledge.complete_from = u64::MAX;
    }

    /// Takes the record of a thread that follows other settings from now on. It may have made calls before that were not recorded,
    /// and may make others that will not be: that is a gap, which ends with the thread's next record. A thread that begins has made none.
    pub fn change_settings(&mut self, thread: u32, record: &NumericRecord) {
        let [generation, only_blocked, ..] = record.arguments;
        let process = self.threads[thread as usize].process as usize;
        let state = &mut self.processes[process];
        state.knowledge.only_blocked |= only_blocked != 0;
        if generation > state.changes {
            (state.changes, state.changed_at) = (generation, record.time);
        }
        let state = &mut self.threads[thread as usize];
        let is_first = state.begin == record.time && !state.has_exited && state.start.is_none();
        if is_first && state.open.is_empty() && state.holds.is_empty() {
            return state.begins_changed = true;
        }
        self.begin_change(thread, record.time);
    }

    /// Takes that calls of a thread may have no record because of a change. What it did before that is not lost: all threads of the process
    /// follow the change from then on.
    pub fn begin_change(&mut self, thread: u32, time: u64) {
        let complete_from = self.threads[thread as usize].complete_from;
        self.begin_gap(thread, time, 0);
        self.threads[thread as usize].complete_from = complete_from;
    }
}
