//! `trace-cat run`: programs that it starts behave as if a shell had started them, and are recorded. Those that cannot be
//! recorded are refused with a message.

mod endings;
mod inherited_state;
mod refusals;
mod signals;
mod trace_directories;

use std::fs;
use std::path::PathBuf;

use super::harness::{TestCommand, TestDirectory, trace_cat};

/// `trace-cat run -d trace`, the test's trace directory.
fn started(test: &TestDirectory) -> TestCommand<'_> {
    started_anywhere(test).args(["-d", "trace"])
}

/// `trace-cat run`.
fn started_anywhere(test: &TestDirectory) -> TestCommand<'_> {
    test.native(trace_cat()).arg("run")
}

/// A shell's script, in which `$run` is `trace-cat run -d trace --`.
fn script<'a>(test: &'a TestDirectory, text: &str) -> TestCommand<'a> {
    let run = format!("{} run -d {} --", trace_cat().display(), test.trace_directory().display());
    test.native("sh").args(["-c", text]).env("run", run)
}

/// What is in the test's directory besides the harness's own files, sorted.
fn entries(test: &TestDirectory) -> Vec<PathBuf> {
    let entries = fs::read_dir(test.directory()).unwrap().map(|entry| PathBuf::from(entry.unwrap().file_name()));
    let is_output = |path: &PathBuf| path.extension().is_some_and(|end| end == "stdout" || end == "stderr");
    let mut entries: Vec<PathBuf> = entries.filter(|path| !is_output(path)).collect();
    entries.sort();
    entries
}
