//! How the records are shown: one short file for each form of output.
//!
//! ```text
//! text    for people          csv, json   for programs
//! fields  a record cut up     event       what the table says of it     style   colours
//! cuts    where it is cut
//! ```

mod csv;
pub mod destination;
mod json;
mod terminal_style;
mod text;

use std::path::PathBuf;

use crate::options::{Color, Format, Printing};
use csv::Csv;
use json::Json;
pub use text::{Text, duration};

/// A form of output in which each record is shown for itself, so that threads share the work.
pub trait Each: Send + Sync {
    /// Appends what stands before the first record.
    fn head(&self, _out: &mut Vec<u8>) {}

    /// Appends what is shown for one record, whose line ends with its newline, to `out`.
    fn record(&self, line: &[u8], out: &mut Vec<u8>);
}

/// A form of output that remembers what it has seen, and needs to see the records in the order of the timeline.
pub trait View: Send {
    /// Appends what is shown for one record, whose line ends with its newline, to `out`.
    fn record(&mut self, line: &[u8], out: &mut Vec<u8>);

    /// Appends what was held back, because it is not known whether there will be another record.
    fn pause(&mut self, _out: &mut Vec<u8>) {}

    /// Appends what stands behind the last record.
    fn end(&mut self, out: &mut Vec<u8>) {
        self.pause(out);
    }
}

/// How records are shown.
pub enum Shown {
    /// As they are in the files.
    AsTheyAre,
    /// Each for itself.
    Each(Box<dyn Each>),
    /// One after the other.
    InOrder(Box<dyn View>),
}

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
