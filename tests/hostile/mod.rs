//! Hostile conditions: limits, full disks, filters, signals, odd stacks, other people's allocators and sanitizers.
//!
//! Whatever happens, two things hold: the program does what it does without the library, and each record is in the
//! trace once, or counted in it as lost.

mod allocators;
mod descriptors;
mod directory;
mod disk;
mod limits;
mod losses;
mod numbers;
mod plugins;
mod privileges;
mod processes;
mod sanitizers;
mod signals;
mod stacks;
mod stages;

pub use directory::{open_to_all, privileged};
pub use signals::Worker;

use std::fs;

use super::harness::{Output, Program, Run, Trace, Trial};

/// What a `steps` that does all it is told ends with.
pub const DONE: i32 = 7;

fn steps() -> Program {
    Program::c("hostile/steps.c")
}

/// `steps` under the library, with only its mutex calls recorded: three records a pair.
fn traced_steps<'a>(trial: &'a Trial, arguments: &str) -> Run<'a> {
    traced_mutexes(trial, &steps()).args(words(arguments))
}

/// A program under the library, with only its mutex calls recorded.
fn traced_mutexes<'a>(trial: &'a Trial, program: &Program) -> Run<'a> {
    trial.traced(program).env("THR_TRACE_EVENTS", "mutex")
}

fn words(arguments: &str) -> impl Iterator<Item = &str> {
    arguments.split_whitespace()
}

/// Fails unless the program did all it was told, and the library said exactly one line, with `why` in it.
#[track_caller]
fn complains_once(output: &Output, why: &str) {
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

/// Fails if a record is there twice.
#[track_caller]
fn account(trace: &Trace) -> Account {
    let told = trace.of("trace_lost");
    let mut lines: Vec<&str> = trace.records.iter().map(|record| record.line.as_str()).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), trace.records.len(), "a record is there twice");
    let mut causes: Vec<i64> = told.iter().map(|record| record.fields.arguments[1].bits() as i64).collect();
    causes.dedup();
    Account {
        records: trace.records.len() - told.len(),
        lost: told.iter().map(|record| record.fields.arguments[0].bits()).sum(),
        causes,
    }
}

/// Fails unless trace-cat prints as many records of calls as there were, none of them lost.
#[track_caller]
fn assert_complete(trial: &Trial, records: usize) -> Trace {
    let trace = trial.merged();
    let account = account(&trace);
    assert_eq!((account.records, account.lost), (records, 0));
    trace
}

/// Fails unless some records are missing, and the trace says how many and why.
#[track_caller]
fn assert_counted(trial: &Trial, records: usize, cause: i32) {
    let account = account(&trial.merged());
    assert!(account.lost > 0, "nothing was lost: the condition did not arise");
    assert_eq!(account.causes, [i64::from(cause)]);
    assert_eq!(account.records as u64 + account.lost, records as u64, "{} and {} lost", account.records, account.lost);
}

/// A shell script in a mount namespace of its own, where root may mount what goes when the script ends; `None`, after
/// saying so, where that may not be. The script finds the trace directory in `$trace` and the trial's in `$trial`;
/// `$traced` before a program records it.
fn privately<'a>(trial: &'a Trial, script: &str) -> Option<Run<'a>> {
    let unshare = |run: Run<'a>| run.args(["--mount", "--propagation", "private", "sh", "-ec"]);
    let probe = unshare(trial.native("unshare")).arg("mount -t tmpfs none \"$PWD/trace\"").run();
    if !probe.status.success() {
        println!("skipped: no private mounts here: {}", probe.stderr_text().trim_end());
        return None;
    }
    let (trace, library) = (trial.trace_directory(), super::harness::library());
    let head = format!(
        "trace='{}' trial='{}' cat='{}' traced='env LD_PRELOAD={} THR_TRACE_EVENTS=mutex THR_TRACE_DIR={0}'\n",
        trace.display(),
        trial.directory().display(),
        super::harness::trace_cat().display(),
        library.display(),
    );
    let run = unshare(trial.native("unshare")).arg(head + script).arg(steps());
    Some(run.noise_expected())
}

/// The records that a script of [`privately`] had trace-cat write to the file `merged`.
#[track_caller]
fn merged_by_script(trial: &Trial) -> Trace {
    Trace::parse("merged", &fs::read(trial.directory().join("merged")).unwrap())
}
