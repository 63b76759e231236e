//! A program that closes descriptors that are not its own, at any moment: whichever call of the library fails by that, nothing is
//! lost, and nothing is concluded from it.

use std::fs;

use super::super::harness::{Program, TestCommand, TestDirectory, library};
use super::{DONE, assert_complete, steps, words};

/// `steps` with its mutex calls recorded, where the library's call `nth` on a descriptor fails.
fn command<'a>(test: &'a TestDirectory, run: TestCommand<'a>, nth: usize, arguments: &'a str) -> TestCommand<'a> {
    let variables = [
        format!("LD_PRELOAD={}", library().display()),
        format!("THR_TRACE_DIR={}", test.trace_directory().display()),
        "THR_TRACE_EVENTS=mutex".to_owned(),
    ];
    run.arg(nth.to_string()).args(["libthreadt.so", "/usr/bin/env"]).args(variables).arg(steps()).args(words(arguments))
}

/// Fails unless the trace is complete and where it belongs. Returns how many calls on descriptors there were.
#[track_caller]
fn run(test: &TestDirectory, run: TestCommand<'_>, pairs: usize) -> usize {
    let output = run.run();
    output.exited(DONE);
    assert_eq!(output.stderr_text(), "", "{}", output.command);
    assert_complete(test, 3 * pairs);
    let names = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with("ns")), "{}", output.command);
    output.stdout_text().lines().last().unwrap().parse().unwrap()
}

#[test]
fn no_call_that_fails_loses_anything() {
    let program = Program::c("hostile/bad_descriptors.c");
    let (mut nth, mut all) = (0, 0);
    while nth <= all {
        let test = TestDirectory::new("bad-descriptor");
        let steps = "pairs 5 clone 5 exec thread 700 pairs 5";
        all = run(&test, command(&test, test.native(&program), nth, steps), 5 + 5 + 700 + 5);
        nth += 1;
    }
    assert!(all > 100, "{all} calls");
}

/// A dead process of another PID namespace has left files with this one's number: they are renamed, and not taken for a living
/// process's.
#[test]
fn no_call_that_fails_makes_a_dead_process_alive() {
    let program = Program::c("hostile/bad_descriptors.c");
    fn contain(run: TestCommand<'_>) -> TestCommand<'_> {
        run.args(["--pid", "--fork", "--kill-child", "--mount-proc"])
    }
    if !contain(TestDirectory::new("namespaces").native("unshare")).arg("true").run().status.success() {
        return println!("skipped: no PID namespaces here");
    }
    let (mut nth, mut all) = (1, 1);
    // What the first record needs.
    while nth <= all.min(60) {
        let test = TestDirectory::new("dead-namespace");
        let in_namespace = || contain(test.native("unshare")).arg(&program);
        command(&test, in_namespace(), 0, "pairs 50 kill").run();
        all = run(&test, command(&test, in_namespace(), nth, "pairs 100"), 100);
        nth += 1;
    }
}
