//! What is said when the program has ended.

use std::path::Path;

use super::new_files::{NewFiles, TraceFiles};
use crate::options::RunOptions;
use crate::support::diagnostics::Diagnostics;

/// Says where the trace is and how to read it, or why there may be none.
pub fn tell(options: &RunOptions, directory: &Path, before: &TraceFiles, came: &NewFiles, diagnostics: &Diagnostics) {
    let place = directory.display();
    if came.processes == 0 {
        return diagnostics.report_note(place, format_args!("nothing was recorded: {}", why_nothing(options)));
    }
    let NewFiles { processes, files, bytes, lost, buffers } = *came;
    let contents = [count(processes, "process", "processes"), count(files, "file", "files"), size(bytes)].join(", ");
    let more = if before.has_trace() { "; an earlier trace is there too" } else { "" };
    diagnostics.report_note(&place, format_args!("{contents} of records{more}"));
    if buffers > 0 {
        let whose = count(buffers, "process that was killed or still runs", "processes that were killed or still run");
        diagnostics.report_note(&place, format_args!("there are also buffers of {whose}; trace-cat reads them"));
    }
    if lost > 0 {
        diagnostics.report_note(
            &place,
            format_args!("{} missing at the ends (trace_lost)", count64(lost, "record is", "records are")),
        );
    }
    if options.printing.output.is_none() {
        let newest = if before.has_trace() { "--last " } else { "" };
        diagnostics.report_note("to read it", format_args!("trace-cat {newest}-F text {}", quoted(directory)));
    }
}

/// What may be the reason, the likeliest first.
fn why_nothing(options: &RunOptions) -> String {
    let recording = &options.recording;
    if recording.events.as_deref() == Some("") {
        return "-e was given an empty list".to_owned();
    }
    let mut reasons = Vec::new();
    let only: Vec<String> = recording.only.iter().map(|name| name.display().to_string()).collect();
    if !only.is_empty() {
        reasons.push(format!("no program was named {}", only.join(" or ")));
    }
    if let Some(events) = &recording.events {
        reasons.push(format!("nothing of '{events}' happened"));
    }
    for (name, given) in [("THR_TRACE_ONLY", !only.is_empty()), ("THR_TRACE_EVENTS", recording.events.is_some())] {
        if let Some(value) = std::env::var_os(name).filter(|_| !given) {
            reasons.push(format!("{name}={} in the environment excludes it", value.display()));
        }
    }
    reasons
        .push("its calls are in statically linked children, or LD_PRELOAD was taken out of the environment".to_owned());
    format!("perhaps {}", reasons.join(", or "))
}

fn count(number: usize, one: &str, more: &str) -> String {
    count64(number as u64, one, more)
}

fn count64(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// A number of bytes with three digits or so.
fn size(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    match units.into_iter().find(|&(unit, _)| bytes >= unit) {
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => count64(bytes, "byte", "bytes"),
    }
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+%@".contains(&byte);
    if text.bytes().all(plain) && !text.starts_with('-') {
        return text;
    }
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_for_people() {
        for (bytes, expected) in [(1, "1 byte"), (999, "999 bytes"), (1999, "1.9 kB"), (12_345_678, "12.3 MB")] {
            assert_eq!(size(bytes), expected);
        }
        assert_eq!(count(1, "file", "files"), "1 file");
        assert_eq!(count(0, "file", "files"), "0 files");
    }

    #[test]
    fn paths_can_be_pasted() {
        for (path, expected) in [("sort.thr.1", "sort.thr.1"), ("it's", r"'it'\''s'"), ("-x", "'./-x'")] {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }
}
