//! The environment variables, each wrong value included. Whatever their values, the program runs as it does without them.

mod directory;
mod events;
mod names;
mod writing;

use super::harness::{CommandOutput, Program, TestCommand, TestDirectory};

fn modest() -> Program {
    Program::c("environment/modest.c")
}

/// Runs the program as `run` has it, and fails unless it prints and returns what it always does. Returns the
/// messages of the library.
#[track_caller]
fn unchanged(run: TestCommand<'_>) -> Vec<String> {
    let output: CommandOutput = run.noise_expected().run();
    output.exited(9);
    assert_eq!(output.stdout_text(), "done\n", "{}", output.command);
    let (noise, own): (Vec<&str>, Vec<&str>) =
        output.stderr_text().lines().partition(|line| line.starts_with("libthreadt: "));
    assert_eq!(own, ["nothing to complain of"], "{}", output.command);
    noise.into_iter().map(str::to_owned).collect()
}

/// The names in the test's trace directory.
fn files(test: &TestDirectory) -> Vec<String> {
    let entries = std::fs::read_dir(test.trace_directory()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
