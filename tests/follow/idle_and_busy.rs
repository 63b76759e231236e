//! The records of a running process are read while it is idle, and while it records at full speed.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use super::{assert_contiguous, end, files, follow, go, posts};
use crate::harness::{CommandOutput, Program, RunningCommand, TestDirectory};
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

/// A program that records posts of semaphores at full speed; `ending` is how it ends by itself. It has begun to record.
fn start_counting(test: &TestDirectory, ending: &[&str]) -> RunningCommand {
    let program = test.traced(Program::c("kill/counting.c")).arg(counts(test)).arg("steady").args(ending);
    let mut program = program.env("THR_TRACE_EVENTS", "sema").spawn();
    while posts_made(test) == 0 {
        assert!(!program.has_ended() || posts_made(test) > 0);
        sleep(Duration::from_micros(100));
    }
    program
}

fn counts(test: &TestDirectory) -> PathBuf {
    test.directory().join("counts")
}

/// How many posts such a program has made at least.
fn posts_made(test: &TestDirectory) -> u64 {
    finished(&counts(test)).iter().map(|calls| calls.div_ceil(3)).sum()
}

/// Fails unless all posts of each thread up to some moment were read, and at least as many as were `made` when reading began.
#[track_caller]
fn assert_read(output: &CommandOutput, made: u64) {
    output.success();
    assert_eq!(output.stderr_text(), "");
    let read: u64 = assert_contiguous(&output.stdout).iter().sum();
    assert!(read >= made, "{read} posts were read, {made} had been made before");
}

#[test]
fn at_full_speed_each_thread_is_read_without_gap_or_double() {
    for _ in 0..3 {
        let test = TestDirectory::new("follow-plain");
        let program = start_counting(&test, &[]);
        let readings = [(); 3].map(|()| {
            let made = posts_made(&test);
            let mut reader = test.trace_cat().spawn();
            program.signal(libc::SIGCONT);
            while !reader.has_ended() {
                // However long reading takes, the trace stays small.
                if posts_made(&test) > made + 50_000 {
                    program.signal(libc::SIGSTOP);
                }
                sleep(Duration::from_millis(1));
            }
            // Not while the output is collected, either.
            program.signal(libc::SIGSTOP);
            (made, reader.wait())
        });
        program.signal(libc::SIGKILL);
        program.wait().killed(libc::SIGKILL);
        for (made, output) in readings {
            assert_read(&output, made);
        }
    }
}

/// The last readings are at the end of the program, and after it.
#[test]
fn a_program_that_ends_is_read_without_gap_or_double() {
    for _ in 0..4 {
        let test = TestDirectory::new("follow-ends");
        let mut program = start_counting(&test, &["exit", "60000"]);
        loop {
            let (ended, made) = (program.has_ended(), posts_made(&test));
            assert_read(&test.trace_cat().run(), made);
            if ended {
                break;
            }
        }
        program.wait().exited(40);
    }
}
