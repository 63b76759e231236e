//! The output format that the options ask for.

use std::path::{Path, PathBuf};

use super::csv::CsvFormat;
use super::formatter::Formatter;
use super::frame_names::FrameNames;
use super::json::JsonFormat;
use super::json_calls::JsonCallsFormat;
use super::terminal_style;
use super::text::TextFormat;
use crate::filter::OpenCallTable;
use crate::options::{ColorChoice, OutputFormat, Printing};
use crate::trace::file_names::{FileGroup, split_name, with_subdirectories};
use crate::trace::hosts::HostTable;
use crate::trace::interned_names::InternedNames;

/// The format that the options ask for. `paths` are the inputs, in whose directories the names of programs are found; `open_calls` are
/// known not to return.
pub fn formatter_for(printing: &Printing, paths: &[PathBuf], open_calls: OpenCallTable) -> Formatter {
    let interned = || InternedNames::new(file_groups(paths));
    match printing.format {
        // Timelines and the list of formats are not made of records, and -F ctf has a writer of its own.
        OutputFormat::Raw
        | OutputFormat::Perfetto
        | OutputFormat::Chrome
        | OutputFormat::Paje
        | OutputFormat::Parquet
        | OutputFormat::Ctf
        | OutputFormat::Help => Formatter::Raw,
        OutputFormat::Csv => Formatter::PerRecord(Box::new(CsvFormat::new(interned()))),
        OutputFormat::Json if printing.calls => {
            let names = printing.stack.then(|| FrameNames::new(file_groups(paths)));
            Formatter::Timeline(Box::new(JsonCallsFormat::new(open_calls, interned(), names)))
        }
        OutputFormat::Json => Formatter::PerRecord(Box::new(JsonFormat::new(interned()))),
        OutputFormat::Text => Formatter::Timeline(Box::new(text(printing, paths, open_calls))),
    }
}

/// The format `text`, if the options ask for it: it needs the records in order, and yet threads share its work.
pub fn shared_text_format(printing: &Printing, paths: &[PathBuf], open_calls: &OpenCallTable) -> Option<TextFormat> {
    (printing.format == OutputFormat::Text).then(|| text(printing, paths, open_calls.clone()))
}

fn text(printing: &Printing, paths: &[PathBuf], open_calls: OpenCallTable) -> TextFormat {
    let coloured = match printing.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => printing.output.is_none() && terminal_style::is_wanted(),
    };
    let groups = file_groups(paths);
    let names = printing.stack.then(|| FrameNames::new(groups.clone()));
    let format = TextFormat::new(printing.time, coloured, groups, open_calls);
    match names {
        Some(names) => format.with_stacks(names),
        None => format,
    }
}

/// The groups of files that `paths` are, or are of. A directory has also those of its subdirectories.
pub fn file_groups(paths: &[PathBuf]) -> Vec<FileGroup> {
    let hosts = HostTable::of(paths);
    let mut groups = groups_of_one_host(paths);
    groups.iter_mut().for_each(|group| group.host = hosts.view(&group.directory));
    groups
}

fn groups_of_one_host(paths: &[PathBuf]) -> Vec<FileGroup> {
    let groups_of = |path: &PathBuf| -> Vec<FileGroup> {
        if !path.is_dir() {
            let prefix = split_name(path).0.to_owned();
            let group = |directory: &Path| FileGroup { prefix, ..FileGroup::from(directory.to_owned()) };
            return path.parent().map(group).into_iter().collect();
        }
        with_subdirectories(path).into_iter().map(FileGroup::from).collect()
    };
    let mut groups: Vec<FileGroup> = paths.iter().flat_map(groups_of).collect();
    groups.sort();
    groups.dedup();
    groups
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_has_its_subdirectories_files_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["u65534", "ns12", "u65534/ns7", "under", "u"] {
            fs::create_dir(path(name)).unwrap();
        }
        fs::write(path("u7"), "").unwrap();
        let groups =
            |paths: &[PathBuf]| file_groups(paths).into_iter().map(|group| group.directory).collect::<Vec<_>>();
        assert_eq!(groups(&[path("")]), [path(""), path("ns12"), path("u65534"), path("u65534/ns7")]);
        assert_eq!(groups(&[path("ns12/tr.0000001.001")]), [path("ns12")]);
    }
}
