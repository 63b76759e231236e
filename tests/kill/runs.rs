//! Which processes belong to one run where the newest records of one of them are in its buffers alone: it still runs, or was killed.

use std::fs;
use std::path::PathBuf;

use crate::harness::{Program, TestCommand, TestDirectory, assert_same_lines};

/// What times begin with that are earlier than all others.
const EARLIER: &str = "1000000000:";

/// `recording_modes/ring.c`, which posts, with rings of this size if it has any.
fn posts<'a>(test: &'a TestDirectory, ring: Option<&str>, steps: &str) -> TestCommand<'a> {
    let run = test.traced(Program::c("recording_modes/ring.c")).args(steps.split_whitespace());
    match ring {
        Some(size) => run.env("THR_TRACE_RING", size),
        None => run,
    }
}

/// Makes the records that are in the files much older, so that they are those of another run.
fn make_older(test: &TestDirectory) {
    let entries = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().path());
    let is_of_records = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("tr.");
    for path in entries.filter(is_of_records) {
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text.lines().map(|line| format!("{EARLIER}{}\n", &line[11..])).collect::<String>()).unwrap();
    }
}

/// Fails unless the server and both clients are the second of two runs, from the server's first record on, and all that they
/// recorded is read as the last run.
#[track_caller]
fn assert_second_run(test: &TestDirectory) {
    let all = test.trace_cat().run();
    let of_second = |line: &&str| !line.starts_with(EARLIER);
    let expected: String = all.stdout_text().split_inclusive('\n').filter(of_second).collect();
    let mut messages: Vec<&str> = all.stderr_text().lines().collect();
    assert!(all.stderr_text().contains(": 2 runs; --last is "), "{messages:?}");
    messages.sort_unstable();
    assert!(messages.windows(2).all(|two| two[0] != two[1]), "{messages:?}");
    let last = test.trace_cat().arg("--last").run();
    last.success();
    assert_same_lines(last.stdout_text(), &expected, "the last run");
    assert_eq!(test.trace_cat().args(["--run", "2"]).run().stdout_text(), last.stdout_text());
    let counts = test.trace_cat().arg("--stat").run();
    let line = counts.stdout_text().lines().find(|line| line.starts_with("  --run 2 ")).expect("a second run");
    let nanoseconds = &expected[EARLIER.len()..][..9];
    assert!(line.contains(&format!(".{nanoseconds} on, 3 processes")), "from .{nanoseconds} on: {line}");
}

#[test]
fn a_server_that_runs_or_was_killed_is_in_one_run_with_its_clients() {
    for ring in [None, Some("64K"), Some("1M")] {
        for signal in [libc::SIGKILL, libc::SIGTERM] {
            println!("ring {ring:?}, signal {signal}");
            let test = TestDirectory::new("runs");
            posts(&test, None, "posts 4").run().exited(7);
            make_older(&test);
            let mut server = posts(&test, ring, "posts 5 go posts 6 pause").spawn();
            server.wait_for("ready\n");
            for _ in 0..2 {
                posts(&test, None, "posts 7").run().exited(7);
            }
            fs::write(test.directory().join("go"), "").unwrap();
            server.wait_for("paused\n");
            assert_second_run(&test);
            server.signal(signal);
            server.wait().killed(signal);
            assert_second_run(&test);
        }
    }
}
