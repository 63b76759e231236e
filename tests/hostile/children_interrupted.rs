//! A signal handler interrupts what a forked child does first, at each of its system calls.
//!
//! The child is being initialised then, and its thread still has its parent's slot at first. Whatever the handler does, the child's
//! records are as many as its calls, or are counted as lost.

use super::super::harness::{Program, Record, TestDirectory};
use super::DONE;

/// Lets a handler do what `way` names after so many system calls, or after -`step` instructions. Returns whether it came in time;
/// `None`, with a message, where no process may be stopped.
#[track_caller]
fn interrupt(way: &str, step: i32) -> Option<bool> {
    interrupt_recorded(false, way, step)
}

/// The same, where records are written `at_once`, or not.
#[track_caller]
fn interrupt_recorded(at_once: bool, way: &str, step: i32) -> Option<bool> {
    let test = TestDirectory::new("interrupted-child");
    let run = test.traced(Program::c("hostile/interrupted_child.c")).arg(way).arg(step.to_string());
    let output = run.unbuffered_if(at_once).run();
    if !output.is_permitted("to stop a process") {
        return None;
    }
    let mut lines: Vec<&str> = output.exited(DONE).stdout_text().lines().collect();
    let was_interrupted = lines.pop() == Some("1");
    let trace = test.merged();
    for line in lines {
        let (pid, posts) = line.split_once(' ').unwrap();
        let (pid, posts): (u32, u64) = (pid.parse().unwrap(), posts.parse().unwrap());
        let of_process = |record: &&&Record| record.fields.pid == pid;
        let (recorded, losses) = (trace.of("sema_post"), trace.of("trace_lost"));
        let recorded = recorded.iter().filter(of_process).count() as u64;
        let lost: u64 = losses.iter().filter(of_process).map(|record| record.get("lost")).sum();
        assert_eq!(recorded + lost, posts, "{way} {step}: {recorded} records of {pid}");
        assert!(lost == 0 || posts > 256, "{way} {step}: {lost} are lost of {pid}");
    }
    Some(was_interrupted)
}

/// Interrupts a child after each system call of what it does first, or after each of so many.
#[track_caller]
fn interrupt_at_each_step(way: &str, stride: usize) {
    interrupt_recorded_at_each_step(false, way, stride);
}

/// The same, where records are written `at_once`, or not.
#[track_caller]
fn interrupt_recorded_at_each_step(at_once: bool, way: &str, stride: usize) {
    let mut steps = (0..10_000).step_by(stride);
    let Some(after) = steps.find(|step| interrupt_recorded(at_once, way, *step) != Some(true)) else {
        panic!("a child's fork never ends");
    };
    assert!(after > 30 || interrupt(way, 0).is_none(), "only {after} system calls");
}

#[test]
fn a_handler_is_recorded_while_a_child_is_initialised() {
    interrupt_at_each_step("none", 1);
}

/// Records that find no room until the child has files.
#[test]
fn a_handler_may_make_more_records_than_are_kept() {
    interrupt_at_each_step("many", 3);
}

/// The child of the child has no record of its parent's.
#[test]
fn a_handler_may_fork_while_a_child_is_initialised() {
    interrupt_at_each_step("fork", 2);
}

/// The child of the child has files of its own when it returns into what its parent was forgetting.
#[test]
fn a_child_that_a_handler_forks_keeps_its_files_while_its_parent_is_initialised() {
    interrupt_recorded_at_each_step(true, "return", 1);
}

/// The same between two system calls.
#[test]
fn a_child_that_a_handler_forks_at_any_instruction_keeps_its_files() {
    for instructions in (300..20_000).step_by(509) {
        let was_interrupted = interrupt_recorded(true, "return", -instructions);
        assert_ne!(was_interrupted, Some(false), "only {instructions} instructions");
    }
}

#[test]
fn a_handler_may_fork_unnoticed_while_a_child_is_initialised() {
    interrupt_at_each_step("raw", 2);
}

/// Another thread's records are kept, too.
#[test]
fn a_handler_may_create_a_thread_while_a_child_is_initialised() {
    interrupt_at_each_step("thread", 2);
}

#[test]
fn a_handler_that_ends_a_child_leaves_no_record_of_it_behind() {
    interrupt_at_each_step("exit", 1);
}

/// The next program goes on with the files of the child.
#[test]
fn a_handler_that_executes_in_a_child_leaves_no_record_of_it_behind() {
    interrupt_at_each_step("exec", 1);
}

#[test]
fn a_handler_that_cannot_execute_lets_the_child_go_on() {
    interrupt_at_each_step("failing", 1);
}

/// What a guest of the child does is not the child's.
#[test]
fn a_handler_may_make_guests_while_a_child_is_initialised() {
    interrupt_at_each_step("vfork", 1);
}

/// A handler forks a child at each system call of its process's end. The child ends there, too, and says nothing.
#[test]
fn a_child_that_is_forked_while_its_parent_ends_is_silent() {
    for system_calls in 0..10_000 {
        let test = TestDirectory::new("forked-at-exit");
        let run = test.traced(Program::c("hostile/forked_at_exit.c")).arg(system_calls.to_string());
        let output = run.env("THR_TRACE_EVENTS", "sema_post").run();
        if !output.is_permitted("to stop a process") {
            return;
        }
        let was_interrupted = output.exited(DONE).stdout_text() == "1\n";
        assert_eq!(test.merged().of("sema_post").len(), 10, "after {system_calls} system calls");
        if !was_interrupted {
            return assert!(system_calls > 10, "only {system_calls} system calls");
        }
    }
    panic!("the process never ends");
}
