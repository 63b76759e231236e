//! The messages after the program has ended.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use indicatif::DecimalBytes;
use rustix::process::geteuid;

use super::new_files::NewFiles;
use crate::options::{OutputFormat, RunChoice, RunOptions};
use crate::support::counted::counted;
use crate::support::diagnostics::Diagnostics;
use crate::support::shell::quoted_path;
use crate::trace::file_names::is_subdirectory;

/// Reports where the trace is and how to read it, or why there may be none.
/// `runs` are the new ones, if an earlier trace is there.
pub fn report(options: &RunOptions, directory: &Path, runs: &RunChoice, new: &NewFiles, diagnostics: &Diagnostics) {
    let place = directory.display();
    let NewFiles { processes, files, bytes, lost, running, killed, hindered, by_purpose } = *new;
    if lost > 0 {
        let what = counted(lost, "record was lost", "records were lost");
        diagnostics.report_note(&place, format_args!("{what} (trace_lost)"));
    }
    if running > 0 {
        let whose = counted(running, "process still runs", "processes still run");
        diagnostics.report_note(&place, format_args!("{whose}; trace-cat reads the buffers"));
    }
    if processes == 0 {
        let why = if lost > 0 { "the records were lost".to_owned() } else { why_nothing(options, directory) };
        return diagnostics.report_note(place, format_args!("nothing was recorded: {why}"));
    }
    let [processes, files] = [counted(processes, "process", "processes"), counted(files, "file", "files")];
    let earlier = if runs.run_numbers.is_empty() { "" } else { "; an earlier trace is there too" };
    let size = DecimalBytes(bytes);
    diagnostics.report_note(&place, format_args!("{processes}, {files}, {size} of records{earlier}"));
    for (number, one, more) in [
        (killed, "process that was killed or ended unnoticed", "processes that were killed or ended unnoticed"),
        (hindered, "process that could not write them", "processes that could not write them"),
    ] {
        if number > 0 {
            let whose = counted(number, one, more);
            diagnostics
                .report_note(&place, format_args!("some records are in the buffers of {whose}; trace-cat reads them"));
        }
    }
    if let Some(sizes) = by_purpose {
        diagnostics.report_note("what --for would write", sizes.describe(&options.recording));
    }
    if options.output.is_none() {
        let (only, directory) = (runs.option(), quoted_path(directory));
        let what =
            format_args!("trace-cat {only}-F text {directory}; for a report: trace-cat report {only}{directory}");
        diagnostics.report_note("to read it", what);
    }
}

/// Reports where the merged trace is. Records have only addresses; the other formats have the names.
pub fn report_merged(output: &Path, format: OutputFormat, directory: &Path, diagnostics: &Diagnostics) {
    let parent = output.parent().map(|parent| Path::new(".").join(parent));
    let is_apart = parent.and_then(|parent| parent.canonicalize().ok()) != directory.canonicalize().ok();
    let note = match format {
        OutputFormat::Raw if is_apart => format!("; the names of its code are in {}", directory.display()),
        _ => String::new(),
    };
    diagnostics.report_note(output.display(), format_args!("the merged trace{note}"));
}

/// What may be the reason, the likeliest first.
fn why_nothing(options: &RunOptions, directory: &Path) -> String {
    if !directory.is_dir() {
        return "the directory was moved or removed meanwhile".to_owned();
    }
    let recording = &options.recording;
    let events = recording.event_list();
    if events.as_deref() == Some("") {
        return "-e was given an empty list".to_owned();
    }
    let mut reasons = Vec::new();
    if recording.handler.is_some() {
        reasons.push("the handler got the records".to_owned());
    }
    let only: Vec<String> = recording.only.iter().map(|name| name.display().to_string()).collect();
    if !only.is_empty() {
        reasons.push(format!("no program was named {}", only.join(" or ")));
    }
    if let Some(events) = &events {
        reasons.push(format!("nothing of '{events}' happened"));
    }
    for (name, given) in [("THR_TRACE_ONLY", !only.is_empty()), ("THR_TRACE_EVENTS", events.is_some())] {
        if let Some(value) = std::env::var_os(name).filter(|_| !given) {
            reasons.push(format!("{name}={} in the environment excludes it", value.display()));
        }
    }
    reasons
        .push("its calls are in statically linked children, or LD_PRELOAD was taken out of the environment".to_owned());
    if geteuid().is_root() {
        let user = "it became another user, who may not";
        // What a directory is in keeps other users out also of the subdirectory that the library makes for them.
        if let Some((parent, mode)) = closed_parent(directory) {
            let place = parent.display();
            let what = format!("{user} enter {place} (mode {mode:04o}): try -d with a directory below /var/tmp");
            // The library makes it when the user changes.
            if has_directory_of_user(directory) {
                return what;
            }
            reasons.push(what);
        } else if let Ok(mode) = directory.metadata().map(|metadata| metadata.mode() & 0o777)
            && mode & 0o002 == 0
        {
            reasons.push(format!("{user} write to {} (mode {mode:04o})", directory.display()));
        }
    }
    format!("perhaps {}", reasons.join(", or "))
}

/// The first directory above a directory that only its owner and their group may enter, and its mode.
fn closed_parent(directory: &Path) -> Option<(PathBuf, u32)> {
    let path = directory.canonicalize().ok()?;
    path.ancestors().skip(1).find_map(|parent| {
        let mode = parent.metadata().ok()?.mode() & 0o777;
        (mode & 0o001 == 0).then(|| (parent.to_owned(), mode))
    })
}

/// Whether a directory has a subdirectory `u<uid>`, for what a process records after it has become another user.
fn has_directory_of_user(directory: &Path) -> bool {
    let mut entries = directory.read_dir().into_iter().flatten().flatten();
    let is_of_user = |name: &OsStr| is_subdirectory(name.as_ref()) && name.as_encoded_bytes().starts_with(b"u");
    entries.any(|entry| is_of_user(&entry.file_name()))
}
