//! The end of the analysis: open calls and holds last until their process's end.

use super::analysis::Analysis;
use super::tables::ImageEnd;
use super::wait_graph::WaitGraph;

impl Analysis {
    /// Ends the analysis after the last record. `running` are the numbers of the processes that run, each with the present in the
    /// time of its records.
    pub fn finish(&mut self, running: &[(u32, u64)]) -> WaitGraph {
        for process in 0..self.processes.len() as u32 {
            let state = &self.processes[process as usize];
            // It executes a program that is not recorded.
            if state.exec.is_some() && state.end == ImageEnd::Unknown {
                self.end_process(process, state.last, ImageEnd::Exec);
            }
        }
        for (pid, now) in running {
            let Some(&process) = self.process_of_pid.get(pid) else { continue };
            let process = &mut self.processes[process as usize];
            if process.end == ImageEnd::Exec {
                continue;
            }
            (process.end, process.last) = (ImageEnd::Running, process.last.max(*now));
        }
        self.find_counterparts();
        let graph = WaitGraph::of(self);
        let is_known = |thread: &u32| {
            let process = self.threads[*thread as usize].process;
            self.processes[process as usize].end != ImageEnd::Exec
        };
        let threads: Vec<u32> = (0..self.threads.len() as u32).filter(is_known).collect();
        self.check_ends(&threads);
        self.remove_doubtful_misuse();
        self.note_open_nesting();
        self.find_cycles();
        for process in 0..self.processes.len() as u32 {
            if self.processes[process as usize].end != ImageEnd::Exec {
                self.end_activities(process);
            }
        }
        let mut waiting: Vec<(u64, u32)> = Vec::new();
        for (index, thread) in (0..).zip(&self.threads) {
            let process = &self.processes[thread.process as usize];
            if process.end != ImageEnd::Exec {
                waiting.push((process.last, index));
            }
        }
        // Logs of objects that processes share need the order of time.
        waiting.sort_unstable();
        for &(end, thread) in &waiting {
            self.account_open_wait(thread, end);
        }
        for object in self.objects.numbers().collect::<Vec<u32>>() {
            self.account_given_up(object);
            self.count_rounds(object);
        }
        self.forget_handoffs();
        for (end, thread) in waiting {
            self.account_last_holds(thread, end);
        }
        for object in self.objects.numbers().collect::<Vec<u32>>() {
            self.objects[object as usize].figures.complete();
        }
        for process in 0..self.processes.len() as u32 {
            if self.processes[process as usize].end != ImageEnd::Exec {
                self.draw_process_end(process);
            }
        }
        graph
    }
}
