//! `trace-cat --follow`: what running processes record is printed as it happens, once, and in order.

mod files;
mod idle_and_busy;
mod kills;
mod processes;
mod rings;
mod selection;
mod timelines;

use std::fs;
use std::path::PathBuf;

use super::harness::{CommandOutput, Program, RunningCommand, TestCommand, TestDirectory};

/// A window that is wide enough for a busy machine, where a thread may be preempted between reading the clock and recording. Late
/// records have tests of their own.
const WIDE: [&str; 2] = ["--window", "30s"];

/// trace-cat, following the trace directory.
fn follow<'a>(test: &'a TestDirectory, arguments: &[&str]) -> TestCommand<'a> {
    test.trace_cat().arg("--follow").args(arguments)
}

/// The same, from before the first process until the last has ended.
fn follow_all(test: &TestDirectory) -> RunningCommand {
    follow(test, &WIDE).arg("--until-exit").spawn()
}

/// Ends a follower with a signal, and waits for its result.
fn end(follower: RunningCommand) -> CommandOutput {
    follower.signal(libc::SIGTERM);
    follower.wait()
}

/// Lets programs go on that wait for the file `go`.
fn go(test: &TestDirectory) {
    fs::write(test.directory().join("go"), "").unwrap();
}

/// `recording_modes/ring.c`, which posts, without rings; only posts are recorded.
fn posts<'a>(test: &'a TestDirectory, steps: &str) -> TestCommand<'a> {
    let run = test.traced(Program::c("recording_modes/ring.c")).args(steps.split_whitespace());
    run.env("THR_TRACE_EVENTS", "sema")
}

/// The lines of a text, sorted.
fn sorted(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// Fails unless the records of `text` are in the order of time.
#[track_caller]
fn assert_in_order(text: &[u8]) {
    // The time is 20 bytes wide, and digits sort as numbers do.
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let wrong = lines.windows(2).position(|pair| pair[0].get(..20) > pair[1].get(..20));
    if let Some(at) = wrong {
        panic!("not in the order of time:\n{}", String::from_utf8_lossy(&lines[at..at + 2].concat()));
    }
}

/// Fails unless `followed` has just the records of `merged`, each as often, and in the order of time.
#[track_caller]
fn assert_same(followed: &[u8], merged: &[u8]) {
    assert_same_lines_in_any_order(followed, merged);
    assert_in_order(followed);
}

/// Fails unless `followed` has just the lines of `merged`, each as often.
#[track_caller]
fn assert_same_lines_in_any_order(followed: &[u8], merged: &[u8]) {
    let [found, expected] = [sorted(followed), sorted(merged)];
    if found != expected {
        let lines = |lines: &[&[u8]], others: &[&[u8]]| {
            let mut others = others.iter().peekable();
            let mut left = Vec::new();
            for line in lines {
                while others.next_if(|other| *other < line).is_some() {}
                if others.next_if(|other| *other == line).is_none() {
                    left.push(String::from_utf8_lossy(line).into_owned());
                }
            }
            (left.len(), left.into_iter().take(3).collect::<String>())
        };
        let (missing, extra) = (lines(&expected, &found), lines(&found, &expected));
        panic!("of {} records missing {missing:?}, too many {extra:?}", expected.len());
    }
}

/// Fails unless `followed` has the same records as the trace has now, without a message. Returns how many.
#[track_caller]
fn assert_all(test: &TestDirectory, followed: &CommandOutput) -> usize {
    followed.success();
    // On a busy machine programs record faster than the follower may read.
    let is_late = |line: &&str| line.starts_with("trace-cat: --follow: more is recorded than can be read: ");
    let messages: Vec<&str> = followed.stderr_text().lines().filter(|line| !is_late(line)).collect();
    assert!(messages.is_empty(), "{messages:?}");
    let merged = test.trace_cat().run();
    merged.success();
    assert_same(&followed.stdout, &merged.stdout);
    followed.stdout.iter().filter(|&&byte| byte == b'\n').count()
}

/// The numbers of the posts of each semaphore of each process, in the order in which they stand.
fn numbers(text: &[u8]) -> std::collections::BTreeMap<(u32, u64), Vec<u64>> {
    let mut numbers = std::collections::BTreeMap::<_, Vec<u64>>::new();
    for post in super::harness::Trace::parse("trace-cat", text).of("sema_post") {
        numbers.entry((post.fields.pid, post.get("sem"))).or_default().push(post.get("s_count"));
    }
    numbers
}

/// Fails unless each semaphore's posts are all there from the first on, once and one behind the other. How many there are of each.
#[track_caller]
fn assert_contiguous(text: &[u8]) -> Vec<u64> {
    let all = numbers(text);
    for (which, numbers) in &all {
        let wrong = numbers.iter().zip(0..).find(|(found, expected)| **found != *expected);
        assert_eq!(wrong, None, "{which:?}: a post is missing, double or at the wrong place");
    }
    all.values().map(|numbers| numbers.len() as u64).collect()
}

/// The files of the trace directory whose names begin so.
fn files(test: &TestDirectory, prefix: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix)).collect()
}
