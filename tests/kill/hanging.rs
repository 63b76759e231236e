//! A program that hangs: its open call lasts as long as the program is looked at, and perhaps longer than it lived.

use std::thread::sleep;
use std::time::Duration;

use crate::harness::{Program, TestDirectory};

/// The columns after the call of the open one that `--longer` selects; `None` if it selects none.
fn open_call(test: &TestDirectory, longer: &str) -> Option<String> {
    let output = test.trace_cat().args(["-F", "text", "-e", "mutex", "--longer", longer]).run();
    output.success();
    let mut lines = output.stdout_text().lines();
    let call = lines.find(|line| line.contains("> mutex_lock("))?;
    Some(call[call.find(" open ").expect("it is open")..].trim().to_owned())
}

#[test]
fn a_call_of_a_program_that_hangs_lasts_until_now() {
    let test = TestDirectory::new("hanging");
    let mut program = test.traced(Program::c("kill/hanging.c")).spawn();
    program.wait_for("ready\n");
    // The thread makes no record any more, but the time of its call passes.
    let last = (0..1000).find_map(|_| {
        sleep(Duration::from_millis(20));
        open_call(&test, "100ms")
    });
    let last = last.expect("the call has lasted that long");
    assert!(last.ends_with(" running"), "{last}");
    assert_eq!(open_call(&test, "1h"), None);
    let counts = test.trace_cat().arg("--stat").run();
    let locks = counts.stdout_text().lines().find(|line| line.starts_with("mutex_lock ")).unwrap();
    let columns: Vec<&str> = locks.split_whitespace().collect();
    // Calls, records, blocked, and how many are open; between these the time and its unit.
    assert_eq!((&columns[1..4], columns.last()), (&["2", "3", "1"][..], Some(&"1")), "{locks}");
    program.signal(libc::SIGKILL);
    program.wait().killed(libc::SIGKILL);
    // When it was killed is unknown.
    let last = open_call(&test, "1h").unwrap();
    assert!(last.ends_with(" or more"), "{last}");
}
