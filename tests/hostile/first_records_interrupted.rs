//! A signal handler that forks, or leaves by a jump, interrupts the first record of a process at each of its system calls.
//!
//! Whatever the handler does, no process works on with what is its parent's: nobody's files are renamed, nothing false is
//! reported, and each process's records are as many as its calls, or are counted as lost.

use std::collections::HashSet;
use std::fs;

use super::super::harness::{CommandOutput, Program, SeededRandom, TestDirectory};
use super::DONE;

/// The calls of one process, as it has counted them itself.
struct Calls {
    pid: u32,
    begun: u64,
    ended: u64,
    /// How many of those that have ended its parent had begun: whose record they are is open.
    inherited: u64,
}

impl Calls {
    fn parse(line: &str) -> Calls {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let [pid, begun, ended, inherited] = numbers[..] else { panic!("{line}") };
        Calls { pid: pid as u32, begun, ended, inherited }
    }
}

/// What the program's processes have called, and whether the signal has come during the calls that it is for; `None`, with a message,
/// where no process may be stopped.
fn outcome(output: &CommandOutput) -> Option<(Vec<Calls>, bool)> {
    if !output.is_permitted("to stop a process") {
        return None;
    }
    let mut lines: Vec<&str> = output.exited(DONE).stdout_text().lines().collect();
    let was_interrupted = lines.pop() == Some("1");
    Some((lines.into_iter().map(Calls::parse).collect(), was_interrupted))
}

/// Lets a handler do what `way` names, `when`: after so many system calls, or `at` a time. Returns whether it came in time.
#[track_caller]
fn interrupt(way: &str, when: &[String]) -> Option<bool> {
    interrupt_recorded(false, way, when)
}

/// The same, where records are written `at_once`, or not.
#[track_caller]
fn interrupt_recorded(at_once: bool, way: &str, when: &[String]) -> Option<bool> {
    let test = TestDirectory::new("interrupted");
    let run = test.traced(Program::c("hostile/interrupted_first_record.c")).arg(way).args(when);
    let run = run.env("THR_TRACE_EVENTS", "sema_post");
    let output = if at_once { run.env("THR_TRACE_BUF", "1") } else { run }.run();
    let (processes, was_interrupted) = outcome(&output)?;
    let trace = test.merged();
    let mut lines = HashSet::new();
    for record in &trace.records {
        assert!(lines.insert(&record.line), "{way} {when:?}: {} is there twice", record.line);
    }
    for calls in processes {
        let of_process = |record: &&&super::super::harness::Record| record.fields.pid == calls.pid;
        let (losses, posts) = (trace.of("trace_lost"), trace.of("sema_post"));
        let lost: u64 = losses.iter().filter(of_process).map(|record| record.get("lost")).sum();
        let found = posts.iter().filter(of_process).count() as u64 + lost;
        assert!(
            !["many", "vfork", "leave", "doze", "compute", "asleep"].contains(&way) || lost == 0,
            "{way} {when:?}: {lost} records are lost"
        );
        let expected = calls.ended - calls.inherited..=calls.begun + calls.inherited;
        assert!(expected.contains(&found), "{way} {when:?}: {found} and not {expected:?} records of {}", calls.pid);
    }
    for entry in fs::read_dir(test.trace_directory()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_usual = ["tr.", "trinfo.", "trclock"].iter().any(|start| name.starts_with(start));
        assert!(is_usual, "{way} {when:?} leaves {name}");
    }
    Some(was_interrupted)
}

/// Interrupts a first record after each system call of it, or after each of so many.
#[track_caller]
fn interrupt_at_each_step(way: &str, stride: usize) {
    interrupt_recorded_at_each_step(false, way, stride);
}

/// The same, where records are written `at_once`, or not.
#[track_caller]
fn interrupt_recorded_at_each_step(at_once: bool, way: &str, stride: usize) {
    let mut steps = (0..10_000).step_by(stride);
    let Some(after) = steps.find(|step| interrupt_recorded(at_once, way, &[step.to_string()]) != Some(true)) else {
        panic!("a first record never ends");
    };
    assert!(after > 50 || interrupt(way, &["0".into()]).is_none(), "only {after} system calls");
}

#[test]
fn a_handler_that_forks_leaves_the_parents_work_to_the_parent() {
    interrupt_at_each_step("fork", 1);
}

/// Between two system calls, too, the parent has something that its child must not keep.
#[test]
fn a_handler_that_forks_between_system_calls_leaves_nothing_open() {
    for step in 0..10_000 {
        // Three of nine places at each step, in turn: the program is stopped at each instruction, which takes long.
        for instructions in (step % 3 * 18..162).step_by(54) {
            if interrupt("fork", &[step.to_string(), instructions.to_string()]) != Some(true) {
                assert!(step > 50 || interrupt("fork", &["0".into()]).is_none(), "only {step} system calls");
                return;
            }
        }
    }
    panic!("a first record never ends");
}

/// The child is quicker than its parent, in whose name it makes a file that it takes for its own until then.
#[test]
fn a_child_that_makes_its_parents_file_leaves_it_to_the_parent() {
    let mut made = 0;
    for step in 1..60 {
        let test = TestDirectory::new("forked-before");
        let run = test.traced(Program::c("hostile/fork_before_creation.c")).arg(step.to_string());
        let output = run.env("THR_TRACE_EVENTS", "sema_post").run();
        if !output.is_permitted("to stop a process") {
            return;
        }
        let numbers: Vec<u32> =
            output.exited(DONE).stdout_text().split_whitespace().map(|number| number.parse().unwrap()).collect();
        let trace = test.merged();
        let posts = trace.of("sema_post").into_iter().filter(|post| post.fields.pid == numbers[0]).count();
        let has_moved = fs::read_dir(test.trace_directory()).unwrap().any(|entry| entry.unwrap().path().is_dir());
        assert_eq!((posts, has_moved), (10, false), "forked at step {step}");
        made += numbers[1];
    }
    assert!(made != 0, "no child has made a file in its parent's name");
}

/// A child has a file of its own when it returns into the making of its parent's.
#[test]
fn a_child_that_a_handler_forks_keeps_the_file_that_it_has_written() {
    interrupt_recorded_at_each_step(true, "fork", 1);
}

#[test]
fn a_handler_that_forks_unnoticed_leaves_the_parents_work_to_the_parent() {
    interrupt_at_each_step("raw", 3);
}

/// The first call of a hook in the children comes when they have returned.
#[test]
fn children_that_nobody_notices_leave_the_parents_work_to_the_parent() {
    interrupt_at_each_step("unseen", 2);
}

#[test]
fn a_handler_may_make_guests_while_files_are_made() {
    interrupt_at_each_step("vfork", 7);
}

#[test]
fn a_first_record_that_was_left_begins_anew_at_the_next_call() {
    interrupt_at_each_step("jump", 1);
}

/// The next calls come from deeper in the stack than the one that was left.
#[test]
fn a_first_record_that_was_left_begins_anew_from_deeper_in_the_stack() {
    interrupt_at_each_step("deep", 1);
}

/// Nothing but the end of the process comes after the jump.
#[test]
fn a_first_record_that_was_left_begins_anew_at_the_end_of_the_process() {
    interrupt_at_each_step("end", 1);
}

/// Another thread neither waits until the one comes back that has left the work, nor goes without a record.
#[test]
fn a_first_record_that_was_left_begins_anew_in_another_thread() {
    interrupt_at_each_step("leave", 7);
}

/// Nor where the one that has left it wakes up now and then, as a program does that waits for events.
#[test]
fn a_first_record_that_was_left_by_a_thread_that_wakes_up_often_begins_anew() {
    interrupt_at_each_step("doze", 14);
}

/// Nor where the handler waits for that thread, and then returns into the work.
#[test]
fn a_first_record_begins_anew_in_the_thread_for_which_a_handler_waits() {
    interrupt_at_each_step("compute", 7);
}

/// Nor where the handler sleeps until that thread has ended the process.
#[test]
fn a_first_record_begins_anew_at_the_end_of_the_process_while_a_handler_sleeps() {
    interrupt_at_each_step("asleep", 7);
}

#[test]
fn a_handler_that_ends_the_process_leaves_no_record_of_it_behind() {
    interrupt_at_each_step("exit", 1);
}

#[test]
fn a_handler_that_executes_leaves_no_record_of_the_process_behind() {
    interrupt_at_each_step("exec", 1);
}

#[test]
fn a_handler_that_cannot_execute_lets_the_process_go_on() {
    interrupt_at_each_step("failing", 1);
}

/// A file may be open by two numbers then, of which the handler closes the lower one.
#[test]
fn a_handler_that_closes_descriptors_leaves_none_open() {
    interrupt_at_each_step("close", 2);
}

/// What a handler has recorded while files were made is kept, and it writes that when it tries to run a program; or the thread does.
/// Another handler comes meanwhile.
#[test]
fn records_that_were_kept_are_written_once_whatever_a_handler_does() {
    for way in ["kept-failing", "kept-jump"] {
        interrupt_recorded_at_each_step(true, way, 4);
    }
}

/// Not a first record is interrupted, but the write of one. The handler's buffer has room for a hundred records.
#[test]
fn a_handler_may_record_more_than_its_buffer_holds_while_its_thread_writes() {
    let mut interrupted = 0;
    let interrupt_after = |step: usize| interrupt_recorded(true, "many", &[step.to_string()]);
    while interrupt_after(interrupted) == Some(true) {
        interrupted += 1;
    }
    assert!(interrupted > 20 || interrupt_after(0).is_none(), "only {interrupted} system calls");
}

/// The child returns into a record of its parent's when that has recorded more.
#[test]
fn a_child_that_a_handler_forks_by_syscall_leaves_its_parents_buffer_alone() {
    for instructions in (10..600).step_by(20) {
        let test = TestDirectory::new("forked-within");
        let run = test.traced(Program::c("hostile/fork_within_record.c")).arg(instructions.to_string());
        let output = run.env("THR_TRACE_EVENTS", "sema_post").run();
        if !output.is_permitted("to stop a process") {
            return;
        }
        let process: u32 = output.exited(DONE).stdout_text().trim().parse().unwrap();
        let trace = test.merged();
        let posts = trace.of("sema_post").into_iter().filter(|post| post.fields.pid == process).count();
        assert_eq!(posts, 46, "forked after {instructions} instructions");
    }
}

/// Signals that come between two system calls, as when memory is touched for the first time.
#[test]
fn handlers_that_come_at_any_time_leave_first_records_complete() {
    let mut random = SeededRandom::seeded();
    for way in ["fork", "raw", "jump", "deep", "end", "exit"] {
        for _ in 0..40 {
            let microseconds = 1 + random.below(400);
            interrupt(way, &["at".into(), microseconds.to_string()]);
        }
    }
}

/// A forked child's first record names its parent. A handler leaves the making of that, and then the child ends: from the first step
/// of the making on the record is there.
#[test]
fn a_child_that_leaves_its_first_record_and_ends_has_it() {
    let mut found = 0;
    for step in 0..10_000 {
        let test = TestDirectory::new("left-fork");
        let run = test.traced(Program::c("hostile/left_fork.c")).arg(step.to_string());
        let output = run.env("THR_TRACE_EVENTS", "proc_begin").run();
        if !output.is_permitted("to stop a process") {
            return;
        }
        let lines: Vec<&str> = output.exited(DONE).stdout_text().lines().collect();
        let has_files = fs::read_dir(test.trace_directory()).is_ok_and(|mut entries| entries.next().is_some());
        assert!(has_files || found == 0, "a child left at step {step} has no files");
        if has_files {
            let trace = test.merged();
            let pids: Vec<String> = trace.records.iter().map(|record| record.fields.pid.to_string()).collect();
            assert_eq!((pids, trace.of("proc_begin").len()), (vec![lines[0].to_owned()], 1), "left at step {step}");
            found += 1;
        }
        if lines[1] == "0" {
            return assert!(found > 50, "only {found} of {step} children have files");
        }
    }
}
