//! `trace-cat run`: starts a program with the library in it, and reports afterwards where its trace is.
//!
//! What cannot work is reported before the program runs, in one line, and the program is not run.

mod child_process;
mod elf;
mod environment;
mod group_witness;
mod new_files;
mod program_check;
mod program_path;
mod purpose_sizes;
mod recorder_library;
mod refusal;
mod summary;
mod trace_directory;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::options::{Options, Printing, Recording, RunChoice, RunOptions};
use crate::report::runs;
use crate::support::diagnostics::{Diagnostics, reason};
use child_process::ProgramEnd;
use new_files::{NewFiles, TraceFiles};
use program_check::Obstacle;
pub use refusal::OWN_FAILURE;
use refusal::{CANNOT_EXECUTE, NOT_FOUND, Refusal};

/// The trace of a program that was run.
pub struct NewTrace {
    pub directory: PathBuf,
    /// Its runs, if the directory had a trace before. Else all that is there is this one's.
    pub runs: RunChoice,
}

/// Runs the program, and returns the exit status that trace-cat has to end with; if a signal ended the program, the same
/// signal ends this process. `merge` writes the trace to a file, and returns whether it succeeded. `report` reports on the trace, if there
/// is one; whether the program succeeded decides with it which status is returned.
pub fn run(
    options: &RunOptions,
    merge: impl FnOnce(Options) -> bool,
    report: impl FnOnce(Option<NewTrace>, bool) -> Option<u8>,
    diagnostics: &Diagnostics,
) -> Result<u8, Refusal> {
    match record(options, merge, report, diagnostics)? {
        ProgramEnd::Status(status) => Ok(status),
        ProgramEnd::Signal(signal) => {
            child_process::end_by(signal);
            // The signal is ignored or blocked here: the status is as a shell shows it.
            Ok(128 + signal as u8)
        }
    }
}

fn record(
    options: &RunOptions,
    merge: impl FnOnce(Options) -> bool,
    report: impl FnOnce(Option<NewTrace>, bool) -> Option<u8>,
    diagnostics: &Diagnostics,
) -> Result<ProgramEnd, Refusal> {
    let name = &options.command[0];
    let path = program_path::find(name).map_err(|refusal| with_hint(refusal, options))?;
    let (library, elf) = recorder_library::find(options.library.as_deref())?;
    let traits = match program_check::check(&path, &elf) {
        Ok(traits) => traits,
        Err(Obstacle::Fatal(refusal)) => return Err(refusal),
        Err(Obstacle::Unrecordable(why)) if options.force => {
            diagnostics.report_note(why, "only children of another kind can be recorded");
            program_check::ProgramTraits::default()
        }
        Err(Obstacle::Unrecordable(why)) => {
            let what = format_args!("{why} (--force runs it for its children)");
            return Err(Refusal::new(OWN_FAILURE, what));
        }
    };
    if let Some(why) = traits.unrecorded_locks {
        diagnostics.report_note(path.display(), why);
    }
    let report_file = options.report.iter().filter(|path| *path != "-");
    report_file.chain(&options.output).try_for_each(|path| check_writable(path))?;
    let directory = trace_directory::prepare(options.directory.as_deref(), &path, Path::new(""))?;
    // The program may change its working directory.
    let absolute = directory.canonicalize().map_err(|error| Refusal::own_failure(&directory, reason(&error)))?;
    let before = TraceFiles::of(&directory);
    let handler = options.recording.handler.as_deref().map(recorder_library::absolute_handler).transpose()?;
    let recording = Recording { handler, ..options.recording.clone() };
    let variables = environment::variables(&recording, &library, &absolute, &traits);
    let mut ended = child_process::run(&path, &options.command, &variables).map_err(|error| {
        let _ = std::fs::remove_dir(&directory);
        let status = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_EXECUTE };
        Refusal::new(status, format_args!("{}: {}", path.display(), reason(&error)))
    })?;
    let after = TraceFiles::of(&directory);
    let new = NewFiles::since(&before, &after, &options.recording);
    let runs = match before.has_trace() {
        true => RunChoice::of(runs::numbers_with(&directory, &after.changed_since(&before).collect())),
        false => RunChoice::default(),
    };
    summary::report(options, &directory, &runs, &new, diagnostics);
    if let Some(output) = &options.output {
        let merged = if new.processes == 0 {
            discard_earlier(output, diagnostics);
            false
        } else {
            let printing = Printing { format: options.format, output: Some(output.clone()), ..Printing::default() };
            merge(Options::records_of(directory.clone(), runs.clone(), printing))
        };
        if merged {
            summary::report_merged(output, options.format, &directory, diagnostics);
        } else if ended == ProgramEnd::Status(0) {
            ended = ProgramEnd::Status(OWN_FAILURE);
        }
    }
    if options.report.is_some() {
        let trace = NewTrace { directory, runs };
        let status = report((new.processes > 0).then_some(trace), ended == ProgramEnd::Status(0));
        ended = status.map_or(ended, ProgramEnd::Status);
    }
    Ok(ended)
}

/// Checks that the output can be written, so that the program does not run in vain.
/// Adds to a refusal what may be wrong with the command line.
fn with_hint(refusal: Refusal, options: &RunOptions) -> Refusal {
    let option = if options.recording.has_default_stack() {
        "--stack=N"
    } else if options.report.as_deref() == Some(Path::new("-")) {
        "--report=FILE"
    } else {
        return refusal;
    };
    if refusal.status != NOT_FOUND {
        return refusal;
    }
    let message = refusal.message;
    Refusal::new(NOT_FOUND, format_args!("{message} (a value of that option stands behind an equals sign: {option})"))
}

fn check_writable(path: &Path) -> Result<(), Refusal> {
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    opened.map(drop).map_err(|error| Refusal::own_failure(path, reason(&error)))
}

/// Empties the output, so that an earlier run's trace is not taken for this one's.
fn discard_earlier(path: &Path, diagnostics: &Diagnostics) {
    if path.is_file() {
        match File::create(path) {
            Ok(_) => diagnostics.report_note(path.display(), "is empty: nothing was recorded"),
            Err(error) => diagnostics.report_damage(path.display(), reason(&error)),
        }
    }
}
