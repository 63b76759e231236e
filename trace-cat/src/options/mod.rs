//! The table of options: what was typed ([`Arguments`]), and what it means ([`Options`]).
//!
//! The parser, `-h` and `--help`, the manual pages and the shells' completions come from the structures here (see
//! `examples/documents`). A doc comment is an option's help: `-h` prints its first paragraph, `--help` and the manual all of it.
//!
//! ```text
//! selection        which records
//! output_options   how they are printed, and where to
//! arrangement      in which order, and in how many files
//! follow_options   while programs run
//! run_command      trace-cat run
//! event_list       lists of categories and events; nearest_name: what a wrong name may mean
//! time_point       points in time
//! command_error    why a command ends early
//! ```

mod arrangement;
mod command_error;
mod event_list;
mod follow_options;
mod nearest_name;
mod output_options;
mod run_command;
mod selection;
mod time_point;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueHint};

pub use arrangement::{Arrangement, SortOrder, SplitBy};
pub use command_error::CommandError;
pub use follow_options::Following;
pub use output_options::{ColorChoice, OutputFormat, Printing, TimeStyle};
pub use run_command::{Recording, RecordingLevel, RunOptions};
pub use selection::Selection;
pub use time_point::TimePoint;

/// What was typed.
#[derive(Debug, Parser)]
#[command(name = "trace-cat", version, max_term_width = 100, about = ABOUT, long_about = LONG_ABOUT)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Files or directories to read [default: $THR_TRACE_DIR, else .]
    ///
    /// Of a directory, the files that belong to a trace are taken; files that were set aside (old.*) are left alone
    /// unless they are named. A file that is named twice is read once. A trbuf file stands for all files of its
    /// process. - is the standard input.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    selection: selection::SelectionArguments,

    #[command(flatten)]
    arrangement: Arrangement,

    #[command(flatten)]
    printing: Printing,

    #[command(flatten)]
    following: Following,

    /// Read only the newest run
    ///
    /// A run is a program and the processes that it started; a directory into which programs were recorded at several
    /// times has several, which a message on standard error tells. Example: trace-cat --last -F text trace
    #[arg(long, help_heading = "Which records", conflicts_with = "recover")]
    last: bool,

    /// Count what is in the trace instead of printing it
    ///
    /// Processes with their commands, threads, time spans and losses; calls and records of each event, and how long
    /// they took; objects of each kind. The options for which records choose what is counted. Example: trace-cat --stat
    /// -e mutex trace
    #[arg(long, help_heading = "Instead of printing", conflicts_with_all = ["Arrangement", "format", "time", "color", "recover"])]
    stat: bool,

    /// Put what dead processes left in their trbufs into the record files
    ///
    /// For those who go on with grep and awk: each trbuf of a process that is gone is written out, each record once,
    /// and removed. PATHs are directories, in which subdirectories ns* are seen to as well, or trbufs. Nothing is
    /// printed but a line for each trbuf. May be interrupted and run again at any time; the trbufs of living processes
    /// are left alone. Example: trace-cat --recover trace
    #[arg(long, help_heading = "Instead of printing", conflicts_with_all = ["SelectionArguments", "Arrangement", "Printing"])]
    recover: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run_command::RunArguments),
}

const ABOUT: &str = "Print the records of a trace in the order of time";
const LONG_ABOUT: &str = "\
Print the records of a trace in the order of time

Reads the files tr.xxxxxxx.yyy that libthreadt.so writes and prints their records as one timeline. What processes that \
were killed left in their buffers (trbuf.xxxxxxx) is printed too, each record once.

Exit status: 0 when everything was read or recovered; 1 when something was damaged or could not be read, which a message on stderr \
tells, while the rest is printed or recovered; 2 for wrong usage.";

/// What is to be done.
#[derive(Debug)]
pub enum Task {
    /// Print or recover a trace.
    Read(Options),
    /// Run a program and record it.
    Run(RunOptions),
}

/// What is to be done with a trace.
#[derive(Debug)]
pub struct Options {
    /// Files and directories, at least one.
    pub paths: Vec<PathBuf>,
    /// Which records.
    pub selection: Selection,
    /// In which order, and in how many files.
    pub arrangement: Arrangement,
    /// How and where to they are printed.
    pub printing: Printing,
    /// Whether to go on with what is recorded meanwhile.
    pub following: Following,
    /// Read only the newest run.
    pub last: bool,
    /// Count instead of printing.
    pub stat: bool,
    /// Write out what is in trbufs instead of printing.
    pub recover: bool,
}

impl Options {
    /// Everything of the newest run in a directory.
    pub fn newest_of(directory: PathBuf, printing: Printing) -> Options {
        Options {
            paths: vec![directory],
            selection: Selection::default(),
            arrangement: Arrangement::default(),
            printing,
            following: Following::default(),
            last: true,
            stat: false,
            recover: false,
        }
    }
}

impl Task {
    /// Understands a command line, whose first word is the program's name. `directory` is `$THR_TRACE_DIR`.
    ///
    /// # Errors
    /// What is to be printed instead of a trace: the help that was asked for, or what is wrong.
    pub fn parse(words: impl IntoIterator<Item = OsString>, directory: Option<OsString>) -> Result<Task, clap::Error> {
        let Arguments { command, mut paths, selection, arrangement, printing, following, last, stat, recover } =
            Arguments::try_parse_from(words)?;
        if let Some(Command::Run(run)) = command {
            let options = run.understand().map_err(|what| usage_error(&["run"], what))?;
            return Ok(Task::Run(options));
        }
        if paths.is_empty() {
            let directory = directory.filter(|directory| !directory.is_empty());
            paths.push(directory.map_or_else(|| ".".into(), PathBuf::from));
        }
        printing.check().map_err(|what| usage_error(&[], what))?;
        if arrangement.split.is_some() && printing.format != OutputFormat::Raw {
            return Err(usage_error(
                &[],
                "--split makes files of records as they are, not of another format\n\n  tip: give one of its files to 'trace-cat --format'",
            ));
        }
        let selection = selection.understand().map_err(|what| usage_error(&[], what))?;
        Ok(Task::Read(Options { paths, selection, arrangement, printing, following, last, stat, recover }))
    }
}

/// The table of options.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// A wrong use of the command line that the parser could not see. `subcommands` are those it is about, from the
/// outermost; none for trace-cat itself.
pub fn usage_error(subcommands: &[&str], what: impl std::fmt::Display) -> clap::Error {
    let mut command = command();
    command.build();
    let mut about = &mut command;
    for name in subcommands {
        about = about.find_subcommand_mut(name).expect("callers name subcommands that there are");
    }
    about.error(ErrorKind::ValueValidation, what)
}

#[cfg(test)]
mod tests;
