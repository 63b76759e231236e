//! Programs that leave a call by a jump out of a signal handler when it takes too long, and try it anew.

use super::super::harness::{Program, TestDirectory};
use super::{DONE, account};

/// What the library does in a call takes longer than the program has for it, each time: the call returns all the same, and each that has
/// returned is recorded or counted.
#[test]
fn calls_that_are_tried_until_they_return_in_time_return() {
    let program = Program::c("hostile/retried.c");
    // The first record takes a hundred system calls, a full buffer some ten, a record that is written at once six.
    for (first, step, rounds, mode) in [
        ("0", "10", "300", ("THR_TRACE_DETAIL", "0")),
        ("0", "10", "300", ("THR_TRACE_BUF", "1")),
        ("0", "10", "300", ("THR_TRACE_RING", "64K")),
        ("1", "3", "3000", ("THR_TRACE_DETAIL", "0")),
        ("1", "3", "300", ("THR_TRACE_BUF", "1")),
    ] {
        let test = TestDirectory::new("retried");
        let run = test.traced(&program).args([first, step, rounds]).env(mode.0, mode.1);
        let output = run.env("THR_TRACE_EVENTS", "sema_post").run();
        if output.status.code() == Some(77) {
            return println!("skipped: no process may be stopped here");
        }
        let words: Vec<u64> =
            output.exited(DONE).stdout_text().split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [begun, returned] = words[..] else { panic!("{}", output.stdout_text()) };
        assert!(begun >= returned + 30, "{mode:?}: the condition did not arise: {begun} of {returned} posts");
        let account = account(&test.merged());
        let found = account.records as u64 + account.lost;
        assert!((returned..=begun).contains(&found), "{mode:?}: {found} and not {returned} to {begun} records");
    }
}
