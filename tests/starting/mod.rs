//! `trace-cat run`: programs started by it behave as if started by a shell, and are recorded; what cannot be is told.

mod endings;
mod obstacles;
mod places;
mod signals;
mod surroundings;

use std::fs;
use std::path::PathBuf;

use super::harness::{Run, Trial, trace_cat};

/// `trace-cat run -d trace`, the trial's trace directory.
fn started(trial: &Trial) -> Run<'_> {
    started_anywhere(trial).args(["-d", "trace"])
}

/// `trace-cat run`.
fn started_anywhere(trial: &Trial) -> Run<'_> {
    trial.native(trace_cat()).arg("run")
}

/// A shell's script, in which `$run` is `trace-cat run -d trace --`.
fn script<'a>(trial: &'a Trial, text: &str) -> Run<'a> {
    let run = format!("{} run -d {} --", trace_cat().display(), trial.trace_directory().display());
    trial.native("sh").args(["-c", text]).env("run", run)
}

/// What is in the trial's directory besides the harness's own files, sorted.
fn entries(trial: &Trial) -> Vec<PathBuf> {
    let entries = fs::read_dir(trial.directory()).unwrap().map(|entry| PathBuf::from(entry.unwrap().file_name()));
    let is_output = |path: &PathBuf| path.extension().is_some_and(|end| end == "stdout" || end == "stderr");
    let mut entries: Vec<PathBuf> = entries.filter(|path| !is_output(path)).collect();
    entries.sort();
    entries
}
