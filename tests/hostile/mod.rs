//! Hostile conditions: limits, full disks, filters, signals, odd stacks, other people's allocators and sanitizers.
//!
//! Whatever happens, two things hold: the program does what it does without the library, and each record is in the
//! trace once, or counted in it as lost.

mod allocators;
mod bad_descriptors;
mod children_interrupted;
mod descriptors;
mod directory;
mod disk;
mod file_systems;
mod first_records;
mod first_records_interrupted;
mod kernels;
mod left_open;
mod limits;
mod losses;
mod planted_files;
mod plugins;
mod privileges;
mod processes;
mod restrictions;
mod retries;
mod sandboxes;
mod sanitizers;
mod shared_file_numbers;
mod signals;
mod stacks;
mod stages;
mod users;

pub use directory::{open_to_all, privileged};
pub use signals::{StormWorker, assert_posts_of_child, post_numbers};

use std::fs;

use super::harness::{CommandOutput, Program, TestCommand, TestDirectory, Trace};

/// The exit status of a `steps` that has taken all of its steps.
pub const DONE: i32 = 7;

fn steps() -> Program {
    Program::c("hostile/steps.c")
}

/// `steps` under the library, with only its mutex calls recorded: three records a pair.
fn traced_steps<'a>(test: &'a TestDirectory, arguments: &str) -> TestCommand<'a> {
    traced_mutexes(test, &steps()).args(words(arguments))
}

/// A program under the library, with only its mutex calls recorded.
fn traced_mutexes<'a>(test: &'a TestDirectory, program: &Program) -> TestCommand<'a> {
    test.traced(program).env("THR_TRACE_EVENTS", "mutex")
}

fn words(arguments: &str) -> impl Iterator<Item = &str> {
    arguments.split_whitespace()
}

/// Fails unless the program took all of its steps, and the library printed exactly one line, with `why` in it.
#[track_caller]
fn complains_once(output: &CommandOutput, why: &str) {
    output.exited(DONE);
    let noise = output.noise();
    assert!(noise.len() == 1 && noise[0].contains(why), "{}: {noise:#?}", output.command);
}

/// What a trace has and what it misses, by its own account.
struct Account {
    /// Records of calls.
    records: usize,
    /// Records that were lost.
    lost: u64,
    /// Why: errno values.
    causes: Vec<i64>,
}

/// What the trace has and misses. Fails if a record is there twice.
#[track_caller]
fn account(trace: &Trace) -> Account {
    let loss_records = trace.of("trace_lost");
    let mut lines: Vec<&str> = trace.records.iter().map(|record| record.line.as_str()).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), trace.records.len(), "a record is there twice");
    let mut causes: Vec<i64> = loss_records.iter().map(|record| record.fields.arguments[1].bits() as i64).collect();
    causes.dedup();
    Account {
        records: trace.records.len() - loss_records.len(),
        lost: loss_records.iter().map(|record| record.fields.arguments[0].bits()).sum(),
        causes,
    }
}

/// Fails unless trace-cat prints as many records of calls as there were, none of them lost.
#[track_caller]
fn assert_complete(test: &TestDirectory, records: usize) -> Trace {
    let trace = test.merged();
    let account = account(&trace);
    assert_eq!((account.records, account.lost), (records, 0));
    trace
}

/// Fails unless some records are missing, and the trace has their number and the reason.
#[track_caller]
fn assert_counted(test: &TestDirectory, records: usize, cause: i32) {
    let account = account(&test.merged());
    assert!(account.lost > 0, "nothing was lost: the condition did not arise");
    assert_eq!(account.causes, [i64::from(cause)]);
    assert_eq!(account.records as u64 + account.lost, records as u64, "{} and {} lost", account.records, account.lost);
}

/// A shell script in a mount namespace of its own, where root may mount what goes when the script ends; `None`, with
/// a message, where that is not possible. The script finds the trace directory in `$trace` and the test's in `$test`;
/// `$traced` before a program records it.
fn privately<'a>(test: &'a TestDirectory, script: &str) -> Option<TestCommand<'a>> {
    let unshare = |run: TestCommand<'a>| run.args(["--mount", "--propagation", "private", "sh", "-ec"]);
    let probe = unshare(test.native("unshare")).arg("mount -t tmpfs none \"$PWD/trace\"").run();
    if !probe.status.success() {
        println!("skipped: no private mounts here: {}", probe.stderr_text().trim_end());
        return None;
    }
    let (trace, library) = (test.trace_directory(), super::harness::library());
    let head = format!(
        "trace='{}' test='{}' cat='{}' traced='env LD_PRELOAD={} THR_TRACE_EVENTS=mutex THR_TRACE_DIR={0}'\n",
        trace.display(),
        test.directory().display(),
        super::harness::trace_cat().display(),
        library.display(),
    );
    let run = unshare(test.native("unshare")).arg(head + script).arg(steps());
    Some(run.noise_expected())
}

/// The records that a script of [`privately`] had trace-cat write to the file `merged`.
#[track_caller]
fn merged_by_script(test: &TestDirectory) -> Trace {
    Trace::parse("merged", &fs::read(test.directory().join("merged")).unwrap())
}
