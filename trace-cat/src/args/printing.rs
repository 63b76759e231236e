//! How records are printed, and where to.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// What was typed is what it means.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How they are printed")]
pub struct Printing {
    /// How records are printed
    #[arg(short = 'F', long = "format", value_name = "FORMAT", value_enum, default_value_t = Format::Raw)]
    pub format: Format,

    /// Write to FILE, which must not be one of the files read
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// The forms of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The records as they are in the files
    Raw,
    /// A line for each record with names, results and durations, for people
    Text,
}
