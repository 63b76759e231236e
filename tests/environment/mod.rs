//! The environment variables, each wrong value included. Whatever they say, the program runs as it does without.

mod directory;
mod events;
mod writing;

use super::harness::{Output, Program, Run, Trial};

fn modest() -> Program {
    Program::c("environment/modest.c")
}

/// Runs the program as `run` has it, and fails unless it prints and returns what it always does. Returns what the
/// library said on stderr besides.
#[track_caller]
fn unchanged(run: Run<'_>) -> Vec<String> {
    let output: Output = run.noise_expected().run();
    output.exited(9);
    assert_eq!(output.stdout_text(), "done\n", "{}", output.command);
    let (noise, own): (Vec<&str>, Vec<&str>) =
        output.stderr_text().lines().partition(|line| line.starts_with("libthreadt: "));
    assert_eq!(own, ["nothing to complain of"], "{}", output.command);
    noise.into_iter().map(str::to_owned).collect()
}

/// The names in the trial's trace directory.
fn files(trial: &Trial) -> Vec<String> {
    let entries = std::fs::read_dir(trial.trace_directory()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
