//! The records of a running process are read while it is idle, and while it records at full speed.

use super::{assert_contiguous, end, files, follow, go, posts};
use crate::harness::{Program, TestDirectory};
use crate::kill::finished;

/// The program makes three calls and then waits. None of their records is in a file.
#[test]
fn a_record_that_stays_in_its_buffer_is_printed() {
    for before in [true, false] {
        println!("followed from before the start: {before}");
        let test = TestDirectory::new("follow-waiting");
        let start = || test.trace_cat().args(["--follow", "--until-exit"]).spawn();
        let early = before.then(start);
        let mut program = posts(&test, "posts 3 go thread 2").spawn();
        program.wait_for("ready\n");
        let mut follower = early.unwrap_or_else(start);
        follower.wait_for(":2:0:0\n");
        assert_eq!(files(&test, "tr.").len(), 0, "a file was written");
        assert_eq!(assert_contiguous(&follower.stdout()), [3]);
        let plain = test.trace_cat().run();
        plain.success();
        assert_eq!((plain.stderr_text(), assert_contiguous(&plain.stdout)), ("", vec![3]));
        go(&test);
        program.wait().exited(7);
        let output = follower.wait();
        output.success();
        assert_eq!(assert_contiguous(&output.stdout), [3, 2]);
    }
}

/// Each record is printed soon after it is made, whichever thread makes it and whatever the other threads do.
#[test]
fn records_of_a_waiting_thread_are_printed_beside_threads_that_end() {
    let test = TestDirectory::new("follow-stays");
    let mut follower = follow(&test, &["-F", "csv"]).spawn();
    let mut program = posts(&test, "stay 2 thread 3 stay 4 thread 5 go posts 6").spawn();
    program.wait_for("ready\n");
    for last in ["1,0,0,", "2,0,0,", "3,0,0,", "4,0,0,"] {
        follower.wait_for(last);
    }
    go(&test);
    program.wait().exited(7);
    follower.wait_for("5,0,0,");
    let output = end(follower);
    output.success();
    assert_eq!(output.stdout_text().lines().filter(|line| line.contains("sema_post")).count(), 2 + 3 + 4 + 5 + 6);
}

/// Read again and again at full speed: of each thread everything up to some moment, which is not before the one at which reading
/// began.
#[test]
fn at_full_speed_each_thread_is_read_without_gap_or_double() {
    let mut alive = 0;
    for round in 0..40 {
        let test = TestDirectory::new("follow-plain");
        let counts = test.directory().join("counts");
        // The busier the machine, the longer it has to run to be read while it does.
        let calls = 100_000 * (1 + round / 4).min(8);
        let program = test.traced(Program::c("kill/counting.c")).arg(&counts).args(["steady", "exit"]);
        let mut program = program.arg(calls.to_string()).env("THR_TRACE_EVENTS", "sema").spawn();
        loop {
            let ended = program.has_ended();
            let before: u64 = finished(&counts).iter().map(|calls| calls.div_ceil(3)).sum();
            let output = test.trace_cat().run();
            if before > 0 {
                output.success();
                assert_eq!(output.stderr_text(), "");
            }
            let found: u64 = assert_contiguous(&output.stdout).iter().sum();
            assert!(found >= before, "{found} posts were read, {before} had been made before");
            alive += usize::from(before > 0 && !ended && !program.has_ended());
            if ended {
                break;
            }
        }
        program.wait().exited(40);
        if alive >= 6 {
            return;
        }
    }
    assert!(alive > 0, "it was never read while it ran");
}
