//! `trace-cat status`: the processes that can be changed, and what they record.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use spec::EventSet;
use spec::info;
use spec::names::FileName;
use spec::tables::{CATEGORIES, EVENTS};

use super::controlled_process::ControlledProcess;
use super::target_search;
use crate::options::{CommandError, StatusOptions};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::error::Error;
use crate::support::visible_text::visible_bytes;
use crate::trace::file_handle::read_info;
use crate::trace::file_names::{listed_directory, owner_of_records};

const HEADINGS: [&str; 10] =
    ["PID", "NAME", "GENERATION", "PAUSED", "LEVEL", "STACK", "DETAIL", "WRITTEN", "LOST", "EVENTS"];

/// Prints a line for each process that `options` mean.
///
/// # Errors
/// The output cannot be written.
pub fn print_status(
    options: &StatusOptions,
    out: &mut dyn Write,
    diagnostics: &Diagnostics,
) -> Result<(), CommandError> {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for process in target_search::find(&options.targets, diagnostics) {
        match row(&process) {
            Ok(row) => rows.push(row),
            // It has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => diagnostics.report_damage(process.path.display(), reason(&error)),
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            line += &if column == 1 || column + 1 == row.len() {
                format!("{cell:<width$}  ")
            } else {
                format!("{cell:>width$}  ")
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    Ok(printed.map_err(|error| Error::new("standard output", error))?)
}

fn row(process: &ControlledProcess) -> io::Result<[String; 10]> {
    let (settings, lost) = process.settings()?;
    let yes_no = |yes| if yes { "yes" } else { "no" }.to_owned();
    Ok([
        process.pid_here.map_or_else(|| "?".to_owned(), |pid| pid.to_string()),
        name(process),
        settings.generation.to_string(),
        yes_no(settings.paused),
        if settings.only_blocked { "blocked" } else { "all" }.to_owned(),
        settings.stack_frames.to_string(),
        if settings.detail { "on" } else { "off" }.to_owned(),
        written(process).to_string(),
        lost.to_string(),
        event_names(&settings.events),
    ])
}

/// The name of the process's program.
fn name(process: &ControlledProcess) -> String {
    let text = process.files().and_then(|files| read_info(&files.path(FileName::Info(files.number))).ok());
    let text = text.unwrap_or_default();
    let names = info::lines(&text).filter(|(key, _)| *key == b"comm");
    let name: Vec<u8> = names.last().map_or_else(|| b"?".to_vec(), |(_, value)| info::unescape(value).collect());
    visible_bytes(&name)
}

/// How many bytes its record files have.
fn written(process: &ControlledProcess) -> u64 {
    let Some(files) = process.files() else { return 0 };
    let entries = fs::read_dir(listed_directory(&files.directory)).into_iter().flatten().flatten();
    let is_own = |path: &Path| {
        owner_of_records(path).is_some_and(|(owner, _)| owner.number == files.number && owner.prefix.is_empty())
    };
    entries
        .filter(|entry| is_own(&files.directory.join(entry.file_name())))
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .sum()
}

/// A set of events as a list: whole categories by their names.
fn event_names(set: &EventSet) -> String {
    let mut names = Vec::new();
    for (category, name) in (1..).zip(&CATEGORIES[1..]) {
        let of_category = || EVENTS.iter().filter(|event| event.category == category);
        let recorded = of_category().filter(|event| set.contains_numbers(category, event.number));
        // Numbers that the table does not have are recorded with their category.
        if of_category().count() == recorded.clone().count() && set.contains_numbers(category, u8::MAX) {
            names.push(*name);
        } else {
            names.extend(recorded.map(|event| event.name));
        }
    }
    match names.len() {
        0 => "none".to_owned(),
        // As trinfo has it.
        _ if *set == EventSet::DEFAULT => "all".to_owned(),
        _ => names.join(":"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_categories_have_their_names() {
        let names = |list: &str| event_names(&EventSet::parse_recorded(list.as_bytes(), &mut |_| panic!()));
        assert_eq!(names(""), "none");
        assert_eq!(names("-thr_self:thr_self"), "all");
        assert_eq!(names("cond_wait:mutex:user"), "mutex:cond_wait:user");
    }
}
