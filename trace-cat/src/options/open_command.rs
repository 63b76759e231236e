//! `trace-cat open`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::output_options::{OutputFormat, Printing};
use super::run_choice::RunChoice;
use super::selection::Selection;

/// Write a timeline of a trace for the Perfetto UI, and print how to see it
///
/// The file is what -F perfetto writes: waits, holds and who let whom go on. Its name is that of the directory with .pftrace, in the
/// current directory, where an earlier one is overwritten. Nothing is sent anywhere, and no browser is started. Example: trace-cat open trace
#[derive(Args, Clone, Debug, Default)]
pub struct OpenOptions {
    /// Files or directories to read [default: $THR_TRACE_DIR, else .]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// Write to FILE, which must not be one of the files read
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub selection: Selection,

    #[command(flatten)]
    pub runs: RunChoice,
}

impl OpenOptions {
    /// How the timeline is written.
    pub fn printing(&self) -> Printing {
        let name = || {
            let path = self.paths.first().and_then(|path| path.canonicalize().ok());
            let name = path.as_deref().and_then(Path::file_name).map_or("trace".into(), |name| name.to_string_lossy());
            PathBuf::from(format!("{name}.pftrace"))
        };
        let output = Some(self.output.clone().unwrap_or_else(name));
        Printing { format: OutputFormat::Perfetto, output, ..Printing::default() }
    }
}
