//! Why there may be more findings than were found.

use spec::event_numbers::THR_JOIN;

use super::missing_records::{NO_INFO, waiting_for_routines, waiting_threads};
use super::view::ReportView;
use crate::report::contention::{BlockedThread, ChainEnd, ImageEnd, Knowledge, OngoingCall, ProgramState};

const UNREAD: &str = "newest records are missing, which were in a process's own memory";
const CHANGED: &str = "what is recorded was changed (trace-cat set)";
const SELECTED: &str = "some calls were not recorded (THR_TRACE_EVENTS)";

/// The first of the reasons that hold.
fn first_that_is<const COUNT: usize>(reasons: [(bool, &str); COUNT]) -> Option<String> {
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then(|| reason.to_owned()))
}

impl ReportView<'_> {
    /// Why there may be more deadlocks, and threads that are stuck because of them, than are known for certain, if there may.
    pub fn undecided_deadlocks(&self) -> Option<String> {
        let waits: usize = self.graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum();
        let missing = (waits > 0).then(|| format!("who holds what {} for is not recorded", waiting_threads(waits)));
        let count = self.graph.undecided.len();
        let circles = if count == 1 { "circle" } else { "circles" };
        let has = |doubt: &dyn Fn(&BlockedThread) -> bool| self.graph.undecided.iter().flatten().any(doubt);
        let doubts = [
            (has(&|blocked| blocked.may_have_left(self.analysis)), "have left its wait by a jump"),
            (has(&|blocked| blocked.doubtful_owner.is_some()), "wait for another thread than the one that it saw"),
        ];
        let doubts: Vec<&str> = doubts.into_iter().filter(|(is_there, _)| *is_there).map(|(_, text)| text).collect();
        let doubtful =
            (count > 0).then(|| format!("in {count} {circles} of waits a thread may {}", doubts.join(", or ")));
        let routines = self.graph.unknown_routines.len();
        let may_wait = || (routines > 0).then(|| format!("whether {}", waiting_for_routines(routines)));
        doubtful.or(missing).or_else(may_wait).or_else(|| self.missing_waits(|known| known.misses_waits))
    }

    /// The selected processes.
    fn selected_processes(&self) -> impl Iterator<Item = &ProgramState> {
        let selection = &self.analysis.selection;
        self.analysis.processes.iter().filter(|process| selection.wants_process(process.pid))
    }

    /// Why there may be more misuse than was found, if the settings leave calls out.
    pub fn calls_left_out(&self) -> Option<String> {
        let has = |is_so: fn(&Knowledge) -> bool| self.selected_processes().any(|process| is_so(&process.knowledge));
        let selects = |known: &Knowledge| known.is_partial || known.is_selective || known.misses_cancels;
        if has(|known| known.lacks_settings) {
            return Some(NO_INFO.to_owned());
        }
        if has(|known| known.only_blocked) {
            return Some("calls that did not block were not recorded (THR_TRACE_LEVEL)".to_owned());
        }
        has(selects).then(|| SELECTED.to_owned())
    }

    /// Why threads may wait for each other in calls that have no record. `misses`: whether the events leave out such calls. A thread that has
    /// ended waits for nobody.
    fn missing_waits(&self, misses: fn(&Knowledge) -> bool) -> Option<String> {
        let has = |is_so: &dyn Fn(&ProgramState) -> bool| self.selected_processes().any(is_so);
        let may_wait =
            |process: &ProgramState| process.knowledge.misses_threads || self.has_thread_without_wait(process);
        let is_unknown = |process: &ProgramState| {
            let knows_threads = || self.analysis.shows_threads(process);
            process.knowledge.lacks_settings && (!knows_threads() || may_wait(process))
        };
        let left_out = [
            (has(&is_unknown), NO_INFO),
            (has(&|process| process.changes > 0 && may_wait(process)), CHANGED),
            (has(&|process| misses(&process.knowledge) && may_wait(process)), SELECTED),
        ];
        self.lost_records().or_else(|| first_that_is(left_out))
    }

    /// Whether a thread of a process may wait for others in a call that has no record. After their ends are recorded threads run destructors,
    /// and who ends the process runs handlers of `atexit`.
    fn has_thread_without_wait(&self, process: &ProgramState) -> bool {
        let has_ended = process.end == ImageEnd::Exit && !process.has_buffers;
        let ended_by = Some(process.ended_by()).filter(|_| has_ended);
        let may_wait = |thread: &u32| {
            let state = self.thread(*thread);
            let is_over = state.has_ended() && !state.is_in_gap && (has_ended || self.analysis.is_gone(*thread));
            !is_over && Some(*thread) != ended_by && !state.certain_call().is_some_and(|call| call.waits)
        };
        process.end != ImageEnd::Exec && process.threads.iter().any(may_wait)
    }

    /// Whether a thread waits for a lock or for the end of a thread.
    fn waits_for_another(&self, thread: u32) -> bool {
        let waits = |call: &OngoingCall| call.event == THR_JOIN || self.analysis.is_contention(call);
        self.thread(thread).certain_call().is_some_and(|call| call.waits && waits(call))
    }

    /// Why more records may be missing than are counted, if they may.
    pub fn unread_records(&self) -> Option<String> {
        let lacks_newest = self.selected_processes().any(|process| process.lacks_newest);
        (lacks_newest || !self.unread_processes().is_empty()).then(|| UNREAD.to_owned())
    }

    /// The selected processes whose last program has no record but in memory of its own.
    pub fn unread_processes(&self) -> Vec<u32> {
        let is_unread = |pid: &u32| {
            let state =
                self.analysis.process_of_pid.get(pid).map(|process| &self.analysis.processes[*process as usize]);
            // An exec begins another program.
            let is_later = |state: &ProgramState| {
                let has_executed = state.end == ImageEnd::Exec || state.exec.is_some();
                has_executed && self.recorded[pid].last_image() > state.image
            };
            let has_none = state.is_none_or(is_later);
            has_none && self.analysis.selection.wants_process(*pid) && self.recorded[pid].has_own_memory
        };
        let mut pids: Vec<u32> = self.recorded.keys().copied().filter(is_unread).collect();
        pids.sort_unstable();
        pids
    }

    /// Why there may be more findings than were found, if calls are missing that were to be recorded.
    pub fn missing_calls(&self) -> Option<String> {
        let has = |is_so: fn(&ProgramState) -> bool| self.selected_processes().any(is_so);
        let left_out = [
            (has(|process| process.knowledge.lacks_settings), NO_INFO),
            (has(|process| process.complete_from > 0), "rings overwrote records"),
            (has(|process| process.changes > 0), CHANGED),
        ];
        self.lost_records().or_else(|| first_that_is(left_out))
    }

    /// Why records are missing that were made, but for those that rings have overwritten.
    fn lost_records(&self) -> Option<String> {
        let has_lost = || self.selected_processes().any(|process| process.lost > 0);
        self.unread_records().or_else(|| has_lost().then(|| "records were lost".to_owned()))
    }

    /// Why there may be more stuck threads than are known for certain, if there may.
    pub fn undecided_stuck(&self) -> Option<String> {
        let doubtful = || self.graph.perhaps_stuck.iter().chain(&self.graph.stuck_unless_woken);
        let count = doubtful().count();
        let threads = waiting_threads(count);
        let has = |is_it: fn(&ChainEnd) -> bool| doubtful().any(|stuck| is_it(&stuck.end));
        let what = if has(|end| matches!(end, ChainEnd::Cancelled(..))) {
            "for one that was cancelled, and may leave its wait"
        } else if has(|end| matches!(end, ChainEnd::Left(..))) {
            "for one that may have left its wait by a jump"
        } else if has(|end| matches!(end, ChainEnd::MayBeWoken { .. })) {
            "for one that waits, and that a thread which was running could wake"
        } else if has(|end| matches!(end, ChainEnd::Killed(_))) {
            "for one of another process, which may have been killed"
        } else if has(|end| matches!(end, ChainEnd::HandedOn(_))) {
            "for a lock that other threads than its owner have unlocked before"
        } else if has(|end| matches!(end, ChainEnd::Robust(_))) {
            "for a mutex of one that has ended, and it may be robust"
        } else {
            "for one that is ending, and may still run destructors"
        };
        let perhaps = self.undecided_deadlocks().or((count > 0).then(|| format!("{threads} {what}")));
        perhaps.or_else(|| {
            let waits = self
                .selected_processes()
                .any(|process| process.threads.iter().any(|thread| self.waits_for_another(*thread)));
            if waits { self.missing_waits(|known| known.misses_ends) } else { None }
        })
    }

    /// Why there may be more possible deadlocks than were found, if there may.
    pub fn unsearched_cycles(&self) -> Option<String> {
        let acquisitions = self.analysis.order.as_ref().map_or(0, |order| order.left_out);
        let groups = self.analysis.cycles_left_out;
        let doubt =
            || format!("{acquisitions} acquisitions inside other locks and {groups} groups of locks were left out");
        (acquisitions + groups > 0).then(doubt)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample_view::{INFO, SampleView, WAITS};
    use super::*;
    use crate::options::FailCondition;
    use crate::report::recorded_process::RecordedProcess;

    /// A number is at least that of the findings, where the records may lack others.
    #[test]
    fn findings_are_counted_only_where_nothing_hides_others() {
        let result = |sample: &SampleView, text: &str| sample.view().exceeded(&FailCondition::parse(text).unwrap());
        let assert_unknown = |sample: &SampleView, figure: &str, reason: &str| {
            for condition in ["> 0", "< 1", "<= 0", ">= 1"] {
                let error = result(sample, &format!("{figure} {condition}")).unwrap_err();
                assert!(error.ends_with(&format!("it is at least 0; {reason}")), "{error}");
            }
            assert!(result(sample, &format!("{figure} >= 0")).unwrap().is_some());
            assert_eq!(result(sample, &format!("{figure} < 0")), Ok(None));
        };
        // A wait at the end.
        let waits = "10:1:02:02:1:0x10:0:0:0:0\n";
        let [only_blocked, partial, selective, no_cancels] = [0, 1, 2, 3].map(|which| Knowledge {
            only_blocked: which == 0,
            is_partial: which == 1,
            is_selective: which == 2,
            misses_cancels: which == 3,
            ..Knowledge::default()
        });
        for knowledge in [only_blocked, partial] {
            let sample = SampleView::with_knowledge(waits, INFO, knowledge);
            for figure in ["deadlocks", "stuck"] {
                assert_unknown(&sample, figure, "who holds what 1 thread waits for is not recorded");
            }
        }
        let sample =
            SampleView::with_knowledge(&(waits.to_owned() + "10:2:02:02:1:0x10:0:0:0:0\n"), INFO, only_blocked);
        assert_unknown(&sample, "stuck", "who holds what 2 threads wait for is not recorded");
        assert_unknown(&sample, "misuse", "calls that did not block were not recorded (THR_TRACE_LEVEL)");
        for knowledge in [partial, selective, no_cancels] {
            let sample = SampleView::with_knowledge(WAITS, INFO, knowledge);
            assert_unknown(&sample, "misuse", "some calls were not recorded (THR_TRACE_EVENTS)");
            assert_eq!(result(&sample, "deadlocks > 0"), Ok(None));
        }
        for (change, reason) in [
            ((|process| process.complete_from = 5) as fn(&mut ProgramState), "rings overwrote records"),
            (|process| process.lost = 5, "records were lost"),
            (|process| process.changes = 1, "what is recorded was changed (trace-cat set)"),
        ] {
            let mut sample = SampleView::new(WAITS, INFO);
            change(&mut sample.analysis.processes[0]);
            assert_unknown(&sample, "cycles", reason);
            assert_unknown(&sample, "misuse", reason);
        }
        // What was found is enough.
        let unlocks = "10:1:02:04:0:0x10:1:0:0:0x1500\n";
        let sample = SampleView::with_knowledge(unlocks, INFO, only_blocked);
        assert!(result(&sample, "misuse > 0").unwrap().is_some_and(|message| message.ends_with("it is 1")));
        assert!(result(&sample, "misuse < 1").unwrap().is_none());
        assert!(result(&sample, "misuse < 2").is_err());
    }

    /// Records whose trinfo is not beside them show no deadlock where all threads have ended.
    #[test]
    fn what_was_recorded_is_not_known_without_the_trinfo() {
        let unknown = Knowledge { lacks_settings: true, ..Knowledge::default() };
        let result = |lines: &str, figure: &str| {
            let condition = FailCondition::parse(&format!("{figure} > 0")).unwrap();
            SampleView::with_knowledge(lines, INFO, unknown).view().exceeded(&condition)
        };
        for figure in ["deadlocks", "stuck", "misuse", "cycles"] {
            let error = result(WAITS, figure).unwrap_err();
            assert!(error.ends_with(&format!("it is at least 0; {NO_INFO}")), "{figure}: {error}");
        }
        let sample = SampleView::with_knowledge(WAITS, INFO, unknown);
        let lines = super::super::missing_records::missing_records(&sample.view());
        assert_eq!(lines[0], format!("process 1: {NO_INFO}"));
        let begun = "5:2:01:30:0:2:0:0:0:0\n";
        let ended = "91:2:01:02:0:0:0:0:0:0\n91:1:01:03:1:2:0:0:0:0\n92:1:01:03:2:0:0:0:0:0\n93:1:11:04:0:0:0:0:0:0\n";
        assert!(result(begun, "deadlocks").is_err());
        assert_eq!(result(&format!("{begun}{ended}"), "deadlocks"), Ok(None));
        assert!(result(ended, "deadlocks").is_err(), "threads may have no record");
    }

    /// A number of deadlocks is certain only where no thread may be in a wait that has no record.
    #[test]
    fn waits_without_a_record_may_be_part_of_a_deadlock() {
        let result = |sample: &SampleView, figure: &str| {
            let condition = FailCondition::parse(&format!("{figure} > 0")).unwrap();
            sample.view().exceeded(&condition).map_err(|error| error.split("0; ").nth(1).unwrap().to_owned())
        };
        let known = |misses_waits, misses_ends| Knowledge { misses_waits, misses_ends, ..Knowledge::default() };
        let of = |lines: &str, knowledge: Knowledge| SampleView::with_knowledge(lines, INFO, knowledge);
        let ends = "95:1:01:02:0:0:0:0:0:0\n95:2:01:02:0:0:0:0:0:0\n96:3:11:04:0:0:0:0:0:0\n";
        let ended = WAITS.to_owned() + ends;
        for figure in ["deadlocks", "stuck"] {
            assert_eq!(result(&of(WAITS, Knowledge::default()), figure), Ok(None));
            assert_eq!(result(&of(WAITS, known(true, false)), figure), Err(SELECTED.to_owned()), "{figure}");
            assert_eq!(result(&of(&ended, known(true, false)), figure), Ok(None), "{figure}: all threads have ended");
            let mut ending = of(&ended, known(true, false));
            ending.analysis.processes[0].has_buffers = true;
            assert_eq!(
                result(&ending, figure),
                Err(SELECTED.to_owned()),
                "{figure}: one may be in a handler of atexit"
            );
            let killed =
                WAITS.to_owned() + ends.lines().next().unwrap() + "\n95:2:01:02:0:0:0:0:0:0\n97:3:01:02:0:0:0:0:0:0\n";
            assert_eq!(
                result(&of(&killed, known(true, false)), figure),
                Err(SELECTED.to_owned()),
                "{figure}: they may run destructors"
            );
            let unknown_threads = Knowledge { misses_threads: true, ..known(true, false) };
            assert_eq!(result(&of(&ended, unknown_threads), figure), Err(SELECTED.to_owned()), "{figure}");
            assert_eq!(result(&of(WAITS, known(false, true)), figure), Ok(None), "{figure}: nobody waits for a lock");
            for (change, reason) in [
                ((|process| process.lost = 5) as fn(&mut ProgramState), "records were lost"),
                (|process| process.changes = 1, CHANGED),
                (|process| process.lacks_newest = true, UNREAD),
            ] {
                let mut sample = of(WAITS, Knowledge::default());
                change(&mut sample.analysis.processes[0]);
                assert_eq!(result(&sample, figure), Err(reason.to_owned()), "{figure}");
            }
        }
        // Thread 4 waits for a lock of thread 1, which may be in a wait for a semaphore.
        let waits = WAITS.to_owned() + "97:1:02:02:1:0x30:0:0:0:0\n97:1:02:02:2:0:0:0:0:0\n98:4:02:02:1:0x30:0:0:0:0\n";
        assert_eq!(result(&of(&waits, known(false, true)), "stuck"), Err(SELECTED.to_owned()));
        assert_eq!(result(&of(&waits, known(false, true)), "deadlocks"), Ok(None));
        assert_eq!(result(&of(&waits, Knowledge::default()), "stuck"), Ok(None));
        let mut sample = of(WAITS, Knowledge::default());
        sample.recorded.insert(2, RecordedProcess::default());
        sample.recorded.get_mut(&2).unwrap().has_own_memory = true;
        assert_eq!(result(&sample, "deadlocks"), Err(UNREAD.to_owned()), "nothing is there of process 2");
        assert_eq!(sample.document()["incomplete"][0]["pid"], 2);
        sample.recorded.remove(&2);
        // The process goes on as another program, of which nothing is there.
        let mut sample = of(&(WAITS.to_owned() + "97:3:11:03:1:0:0:0:0:0\n"), Knowledge::default());
        sample.recorded.get_mut(&1).unwrap().has_own_memory = true;
        assert_eq!(result(&sample, "deadlocks"), Ok(None));
        sample.recorded.get_mut(&1).unwrap().add_text(b"format 1\nexe /bin/later\nevents all\n");
        assert_eq!(result(&sample, "deadlocks"), Err(UNREAD.to_owned()), "nothing is there of its last program");
        let mut sample = of(WAITS, Knowledge::default());
        sample.analysis.processes[0].lacks_newest = true;
        assert_eq!(result(&sample, "lost"), Err(UNREAD.to_owned()));
        let entry = &sample.document()["incomplete"][0];
        assert_eq!((entry["kind"].as_str(), entry["count"].as_u64()), (Some("lost"), None));
    }

    /// Who has the mutex that a recorded wait for a condition needs back is not known where the events leave its calls out.
    #[test]
    fn a_wait_may_need_a_mutex_whose_calls_are_left_out() {
        let result = |lines: &[&str], events: &str| {
            let mut recorded = RecordedProcess::default();
            recorded.add_text(format!("format 1\nevents {events}\n").as_bytes());
            let sample = SampleView::with_knowledge(&lines.concat(), INFO, recorded.knowledge);
            ["deadlocks", "stuck"].map(|figure| {
                let condition = FailCondition::parse(&format!("{figure} > 1")).unwrap();
                sample.view().exceeded(&condition).map_err(|error| error.split("; ").nth(1).unwrap().to_owned())
            })
        };
        let waits = "10:1:03:04:1:0x40:0x10:0:0:0\n";
        let timed = "10:1:03:05:1:0x40:0x10:9:0:0\n";
        let signal = "20:2:03:02:0:0x40:0:1:0:0\n";
        let joins = "30:2:01:03:1:0x1:0:0:0:0\n";
        let idle = "30:2:03:04:1:0x60:0x50:0:0:0\n";
        let takes = "5:1:02:02:1:0x10:0:0:0:0\n5:1:02:02:2:0:0:0:0:0\n";
        let initialises = "5:1:02:01:0:0x10:0:0:0:0\n";
        let unknown = || Err("who holds what 1 thread waits for is not recorded".to_owned());
        let no_locks = "-mutex_lock:mutex_trylock:mutex_timedlock:mutex_unlock";
        for wait in [&[waits, signal][..], &[waits], &[timed]] {
            let lines = |before: &'static str| [&[before], wait, &[joins]].concat();
            for events in ["-mutex", "-mutex:rmutex", "all"] {
                assert_eq!(result(&lines(""), events), [unknown(), unknown()], "{events} {wait:?}");
            }
            assert_eq!(result(&lines(initialises), no_locks), [unknown(), unknown()], "{wait:?}");
            for events in ["all", "-rmutex"] {
                assert_eq!(result(&lines(takes), events)[0], Ok(None), "{events} {wait:?}");
            }
            // Threads without work are none that others wait for.
            assert_eq!(result(&[wait, &[idle]].concat(), "-mutex")[0].is_err(), wait.len() > 1, "{wait:?}");
        }
    }
}
