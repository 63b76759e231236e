//! Programs that leave a call by a jump out of a signal handler when it takes too long, and try it anew.

use super::super::harness::{Program, TestDirectory};
use super::{DONE, account};

/// What the library does in a call takes longer than the program has for it, each time: the call returns all the same, and each that has
/// returned is recorded or counted.
#[test]
fn calls_that_are_tried_until_they_return_in_time_return() {
    let program = Program::c("hostile/retried.c");
    // The first record takes a hundred system calls, a full buffer some ten, a record that is written at once six.
    // Files are made the second time, while the signals wait. So is a buffer written, but not a record that is written at once.
    for (first, step, rounds, mode, left) in [
        ("0", "10", "300", ("THR_TRACE_DETAIL", "0"), 1),
        ("0", "10", "300", ("THR_TRACE_BUF", "1"), 30),
        ("0", "10", "300", ("THR_TRACE_RING", "64K"), 1),
        ("1", "3", "3000", ("THR_TRACE_DETAIL", "0"), 30),
        ("1", "3", "300", ("THR_TRACE_BUF", "1"), 30),
    ] {
        let test = TestDirectory::new("retried");
        let run = test.traced(&program).args([first, step, rounds]).env(mode.0, mode.1);
        let output = run.env("THR_TRACE_EVENTS", "sema_post").run();
        if !output.is_permitted("to stop a process") {
            return;
        }
        let words: Vec<u64> =
            output.exited(DONE).stdout_text().split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [begun, returned] = words[..] else { panic!("{}", output.stdout_text()) };
        assert!(begun >= returned + left, "{mode:?}: the condition did not arise: {begun} of {returned} posts");
        let account = account(&test.merged());
        let found = account.records as u64 + account.lost;
        assert!((returned..=begun).contains(&found), "{mode:?}: {found} and not {returned} to {begun} records");
    }
}

/// Whether a call was left by a jump shows on the stack, of which the thread uses much: to look through it takes longer than the program
/// has for a call.
#[test]
fn calls_are_tried_until_they_return_on_a_stack_that_is_much_used() {
    let program = Program::c("hostile/tried_on_stack.c");
    for (microseconds, size, mode) in [
        ("400", "500000", ("THR_TRACE_DETAIL", "0")),
        ("100", "65536", ("THR_TRACE_DETAIL", "0")),
        ("400", "500000", ("THR_TRACE_BUF", "1")),
        ("400", "500000", ("THR_TRACE_STACK", "8")),
    ] {
        let test = TestDirectory::new("tried-on-stack");
        let run = test.traced(&program).args([microseconds, size]).env("THR_TRACE_EVENTS", "mutex").env(mode.0, mode.1);
        let text = run.run().exited(DONE).stdout_text().to_owned();
        let words: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [begun, returned] = words[..] else { panic!("{text}") };
        let account = account(&test.merged());
        let found = account.records as u64 + account.lost;
        // Of a call that has waited or failed there is a second record, with the stack.
        let most = if mode.0 == "THR_TRACE_STACK" { 2 * begun } else { begun };
        assert!((returned..=most).contains(&found), "{mode:?}: {found} and not {returned} to {most} records");
    }
}

/// A timer comes more often than a buffer is written, and its handler leaves what it interrupts. What was left once is done the next time.
#[test]
fn a_timer_that_is_faster_than_a_write_loses_nothing() {
    let program = Program::c("hostile/fast_timer.c");
    for (microseconds, mode) in [("173", ("THR_TRACE_DETAIL", "0")), ("50", ("THR_TRACE_BUF", "1"))] {
        let test = TestDirectory::new("fast-timer");
        let run = test.traced(&program).args([microseconds, "300"]).env("THR_TRACE_EVENTS", "sema_post");
        let text = run.env(mode.0, mode.1).run().exited(DONE).stdout_text().to_owned();
        let words: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [begun, returned] = words[..] else { panic!("{text}") };
        let account = account(&test.merged());
        let found = account.records as u64;
        assert_eq!(account.lost, 0, "{mode:?}: of {returned}");
        assert!((returned..=begun).contains(&found), "{mode:?}: {found} and not {returned} to {begun} records");
    }
}
