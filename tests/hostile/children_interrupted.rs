//! A signal handler interrupts what a forked child does first, at each of its system calls.
//!
//! The child is being initialised then, and its thread still has its parent's slot at first. Whatever the handler does, the child's
//! records are as many as its calls.

use super::super::harness::{Program, TestDirectory};
use super::DONE;

/// Lets a handler do what `way` names after so many system calls. Returns whether it came in time; `None`, with a message, where no
/// process may be stopped.
#[track_caller]
fn interrupt(way: &str, step: usize) -> Option<bool> {
    let test = TestDirectory::new("interrupted-child");
    let run = test.traced(Program::c("hostile/interrupted_child.c")).arg(way).arg(step.to_string());
    let output = run.run();
    if output.status.code() == Some(77) {
        println!("skipped: no process may be stopped here");
        return None;
    }
    let mut lines: Vec<&str> = output.exited(DONE).stdout_text().lines().collect();
    let was_interrupted = lines.pop() == Some("1");
    let trace = test.merged();
    for line in lines {
        let (pid, posts) = line.split_once(' ').unwrap();
        let (pid, posts): (u32, usize) = (pid.parse().unwrap(), posts.parse().unwrap());
        let found = trace.of("sema_post").iter().filter(|record| record.fields.pid == pid).count();
        assert!((posts - 3..=posts).contains(&found), "{way} {step}: {found} of {posts} records of {pid}");
    }
    Some(was_interrupted)
}

/// Interrupts a child after each system call of what it does first, or after each of so many.
#[track_caller]
fn interrupt_at_each_step(way: &str, stride: usize) {
    let mut steps = (0..10_000).step_by(stride);
    let Some(after) = steps.find(|step| interrupt(way, *step) != Some(true)) else {
        panic!("a child's fork never ends");
    };
    assert!(after > 30 || interrupt(way, 0).is_none(), "only {after} system calls");
}

/// What a guest of the child does is not the child's.
#[test]
fn a_handler_may_make_guests_while_a_child_is_initialised() {
    interrupt_at_each_step("vfork", 1);
}
