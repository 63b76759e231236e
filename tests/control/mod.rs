//! `trace-cat set` and `trace-cat status`: what is recorded changes while programs run.

mod attacks;
mod processes;
mod snapshots;
mod switching;

use std::fs;
use std::time::Duration;

use super::harness::{CommandOutput, Program, Record, RunningCommand, TestCommand, TestDirectory, Trace, trace_cat};

/// `control/numbered.c`.
fn numbered<'a>(test: &'a TestDirectory, arguments: &str) -> TestCommand<'a> {
    test.traced(Program::c("control/numbered.c")).args(arguments.split(' '))
}

/// Changes what a process records.
#[track_caller]
fn set(test: &TestDirectory, pid: u32, options: &str) {
    let output = test.native(trace_cat()).arg("set").args(words(options)).arg(pid.to_string()).run();
    output.success();
    assert_eq!(output.stderr_text(), "");
}

/// The words of a text; `''` is an empty one.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').map(|word| if word == "''" { "" } else { word })
}

/// What has been recorded so far, buffers included.
fn so_far(test: &TestDirectory) -> Trace {
    Trace::parse("trace-cat", &test.trace_cat().run().stdout)
}

/// Waits until the trace has so many records of settings: each thread makes one at its next call after a change.
#[track_caller]
fn wait_for_changes(test: &TestDirectory, count: usize) {
    wait_until(|| so_far(test).of("trace_events").len() >= count);
}

/// Waits until `holds` is true.
#[track_caller]
fn wait_until(holds: impl Fn() -> bool) {
    for _ in 0..20_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain");
}

/// What `trace-cat status` prints.
fn status(test: &TestDirectory, target: &str) -> CommandOutput {
    test.native(trace_cat()).args(["status", target]).run()
}

/// The words of its only line.
#[track_caller]
fn status_line(test: &TestDirectory) -> Vec<String> {
    let output = status(test, test.trace_directory().to_str().unwrap());
    let lines: Vec<&str> = output.success().stdout_text().lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    lines[1].split_whitespace().map(str::to_owned).collect()
}

/// Lets the threads of `numbered.c` end.
#[track_caller]
fn stop(test: &TestDirectory, program: RunningCommand) {
    fs::write(test.directory().join("stop"), "").unwrap();
    program.wait().success();
}

/// The names of the files in the trace directory, without their numbers.
fn kinds_of_files(test: &TestDirectory) -> Vec<String> {
    let entries = fs::read_dir(test.trace_directory()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.iter_mut().for_each(|name| name.truncate(name.find('.').unwrap_or(name.len())));
    names.sort();
    names.dedup();
    names
}

/// Fails unless between two records of settings of a thread all of its numbered calls are there, or none. How many of these
/// records there are, and how many numbered calls.
#[track_caller]
fn assert_all_or_none(trace: &Trace) -> (usize, usize) {
    let mut lwps: Vec<u32> = trace.records.iter().map(|record| record.fields.lwpid).collect();
    lwps.sort_unstable();
    lwps.dedup();
    let (mut changes, mut calls) = (0, 0);
    for lwp in lwps {
        let (mut last, mut paused, mut may_skip) = (0, false, true);
        for record in trace.of_lwp(lwp) {
            let number = |record: &Record| record.get("value");
            if record.is("trace_events") {
                changes += 1;
                paused = record.get("paused") == 1;
                may_skip |= paused;
            } else if record.is("thr_setspecific") {
                calls += 1;
                let number = number(record);
                assert!(!paused, "recorded while paused: {}", record.line);
                let expected = if may_skip { number.max(last + 1) } else { last + 1 };
                assert_eq!(number, expected, "{}", record.line);
                (last, may_skip) = (number, false);
            } else {
                // A wait that was going on when the thread was paused has its return record.
                assert!(!paused || record.fields.which == 2, "recorded while paused: {}", record.line);
            }
        }
    }
    (changes, calls)
}
