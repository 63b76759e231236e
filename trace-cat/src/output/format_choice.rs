//! The output format that the options ask for.

use std::path::PathBuf;

use super::csv::Csv;
use super::formatter::Shown;
use super::json::Json;
use super::terminal_style;
use super::text::Text;
use crate::options::{Color, Format, Printing};

/// The view that the options ask for. `paths` are those that are read: names of programs are found there.
pub fn open(printing: &Printing, paths: &[PathBuf]) -> Shown {
    match printing.format {
        Format::Raw => Shown::AsTheyAre,
        Format::Csv => Shown::Each(Box::new(Csv::default())),
        Format::Json => Shown::Each(Box::new(Json::default())),
        Format::Text => Shown::InOrder(Box::new(text(printing, paths))),
    }
}

/// The view that the options ask for, if it needs the order of the records and threads can share it all the same.
pub fn shared(printing: &Printing, paths: &[PathBuf]) -> Option<Text> {
    (printing.format == Format::Text).then(|| text(printing, paths))
}

fn text(printing: &Printing, paths: &[PathBuf]) -> Text {
    let coloured = match printing.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => printing.output.is_none() && terminal_style::is_welcome(),
    };
    Text::new(printing.time, coloured, directories(paths))
}

/// The directories in which files of a trace are found: those that are named, and those of files that are.
pub fn directories(paths: &[PathBuf]) -> Vec<PathBuf> {
    let directory = |path: &PathBuf| if path.is_dir() { Some(path.clone()) } else { Some(path.parent()?.into()) };
    let mut directories: Vec<PathBuf> = paths.iter().filter_map(directory).collect();
    directories.sort();
    directories.dedup();
    directories
}
