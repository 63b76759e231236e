//! A signal handler that interrupts the making of the process's files, at its first record.

use std::fs;

use super::super::harness::{Program, TestDirectory};
use super::{DONE, account, traced_steps};

/// How many calls the program has made in this way, how many of them are recorded, and how many the trace counts as lost.
fn calls_and_records(way: &str, yields: &str) -> (usize, usize, u64) {
    let test = TestDirectory::new("first-record");
    let program = Program::c("hostile/first_record.c");
    // An earlier program makes the clock, and only that.
    traced_steps(&test, "pairs 1").run().exited(DONE);
    let clock = test.trace_directory().join("trclock");
    for entry in fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry != clock {
            fs::remove_file(entry).unwrap();
        }
    }
    let run = test.traced(&program).env("THR_TRACE_EVENTS", "thr_yield").env("FILE", &clock).args([way, yields]);
    let output = run.run();
    output.exited(DONE);
    let account = account(&test.merged());
    (output.stdout_text().trim().parse().unwrap(), account.records, account.lost)
}

/// The handler's records are kept until the thread has a buffer.
#[test]
fn what_a_handler_records_while_files_are_made_is_kept() {
    assert_eq!(calls_and_records("yield", "200"), (210, 210, 0));
}

/// For more than so many there is no room: the process counts them, and children that the handler forks do not.
#[test]
fn what_finds_no_room_is_counted_by_one_process() {
    let (calls, records, lost) = calls_and_records("fork", "1000");
    assert_eq!((calls, records as u64 + lost), (1020, 1020));
    assert!(lost > 0);
}

/// The thread that the handler waits for does not wait for the handler's thread, and records nevertheless.
#[test]
fn a_handler_may_wait_for_a_thread_that_records() {
    for way in ["await", "end"] {
        assert_eq!(calls_and_records(way, "200"), (210, 210, 0), "{way}");
    }
}
