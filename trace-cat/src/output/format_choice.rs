//! The output format that the options ask for.

use std::path::PathBuf;

use super::csv::CsvFormat;
use super::formatter::Formatter;
use super::json::JsonFormat;
use super::json_calls::JsonCallsFormat;
use super::terminal_style;
use super::text::TextFormat;
use crate::filter::OpenCallTable;
use crate::options::{ColorChoice, OutputFormat, Printing};
use crate::trace::file_names::{FileGroup, split_name};

/// The format that the options ask for. `paths` are the inputs, in whose directories the names of programs are found; `open_calls` are
/// known not to return.
pub fn formatter_for(printing: &Printing, paths: &[PathBuf], open_calls: OpenCallTable) -> Formatter {
    match printing.format {
        OutputFormat::Raw => Formatter::Raw,
        OutputFormat::Csv => Formatter::PerRecord(Box::new(CsvFormat::default())),
        OutputFormat::Json if printing.calls => Formatter::Timeline(Box::new(JsonCallsFormat::new(open_calls))),
        OutputFormat::Json => Formatter::PerRecord(Box::new(JsonFormat::default())),
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
    TextFormat::new(printing.time, coloured, file_groups(paths), open_calls)
}

/// The groups of files that `paths` are, or are of.
pub fn file_groups(paths: &[PathBuf]) -> Vec<FileGroup> {
    let group = |path: &PathBuf| match path.is_dir() {
        true => Some(path.clone().into()),
        false => Some(FileGroup { directory: path.parent()?.into(), prefix: split_name(path).0.to_owned() }),
    };
    let mut groups: Vec<FileGroup> = paths.iter().filter_map(group).collect();
    groups.sort();
    groups.dedup();
    groups
}
