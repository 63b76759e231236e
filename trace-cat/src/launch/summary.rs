//! The messages after the program has ended.

use std::path::Path;

use indicatif::DecimalBytes;

use super::new_files::{NewFiles, TraceFiles};
use crate::options::RunOptions;
use crate::support::diagnostics::Diagnostics;

/// Reports where the trace is and how to read it, or why there may be none.
pub fn report(options: &RunOptions, directory: &Path, before: &TraceFiles, new: &NewFiles, diagnostics: &Diagnostics) {
    let place = directory.display();
    if new.processes == 0 {
        return diagnostics.report_note(place, format_args!("nothing was recorded: {}", why_nothing(options)));
    }
    let NewFiles { processes, files, bytes, lost, buffers } = *new;
    let [processes, files] = [count(processes, "process", "processes"), count(files, "file", "files")];
    let earlier = if before.has_trace() { "; an earlier trace is there too" } else { "" };
    let size = DecimalBytes(bytes);
    diagnostics.report_note(&place, format_args!("{processes}, {files}, {size} of records{earlier}"));
    if buffers > 0 {
        let whose = count(buffers, "process that was killed or still runs", "processes that were killed or still run");
        diagnostics.report_note(&place, format_args!("there are also buffers of {whose}; trace-cat reads them"));
    }
    if lost > 0 {
        let records = count(lost, "record is", "records are");
        diagnostics.report_note(&place, format_args!("{records} missing at the ends (trace_lost)"));
    }
    if options.output.is_none() {
        let newest = if before.has_trace() { "--last " } else { "" };
        diagnostics.report_note("to read it", format_args!("trace-cat {newest}-F text {}", quoted(directory)));
    }
}

/// What may be the reason, the likeliest first.
fn why_nothing(options: &RunOptions) -> String {
    let recording = &options.recording;
    let events = recording.event_list();
    if events.as_deref() == Some("") {
        return "-e was given an empty list".to_owned();
    }
    let mut reasons = Vec::new();
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
    format!("perhaps {}", reasons.join(", or "))
}

fn count<Number: PartialEq + From<u8> + std::fmt::Display>(number: Number, one: &str, more: &str) -> String {
    let noun = if number == Number::from(1) { one } else { more };
    format!("{number} {noun}")
}

/// A path as one word of a shell command.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+%@".contains(&byte);
    // A leading dash would make the path an option.
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    match text.bytes().all(is_plain) && !text.is_empty() {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_noun() {
        assert_eq!(count(1usize, "file", "files"), "1 file");
        assert_eq!(count(0u64, "file", "files"), "0 files");
    }

    #[test]
    fn a_quoted_path_is_one_word_for_a_shell() {
        let paths = ["sort.thr.1", "it's", "''", "a b", "$HOME;`id`", "back\\slash", "-x", ""];
        let expected =
            ["sort.thr.1", r"'it'\''s'", r"''\'''\'''", "'a b'", "'$HOME;`id`'", r"'back\slash'", "./-x", "''"];
        assert_eq!(paths.map(|path| quoted(Path::new(path))), expected);
        let script = format!("printf '%s\\n' {}", expected.join(" "));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), paths.join("\n").replace("\n-x", "\n./-x") + "\n");
    }
}
