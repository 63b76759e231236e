//! The table of options: what was typed ([`Arguments`]), and what it means ([`Options`]).
//!
//! The parser, `-h` and `--help`, the manual pages and the shells' completions come from the structures here (see
//! `examples/documents`). A doc comment is an option's help: `-h` prints its first paragraph, `--help` and the manual all of it.

mod arrangement;
mod command_error;
mod control_commands;
mod event_list;
mod fail_condition;
mod follow_options;
mod format_list;
mod nearest_name;
mod open_command;
mod output_options;
mod report_command;
mod run_choice;
mod run_command;
mod selection;
mod time_point;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};

pub use arrangement::{Arrangement, SortOrder, SplitBy};
pub use command_error::CommandError;
pub use control_commands::{OnOff, SetOptions, StatusOptions};
pub use fail_condition::{Comparison, FailCondition, Figure, ObjectFigure, Quantity};
pub use follow_options::Following;
pub use format_list::format_list;
pub use open_command::OpenOptions;
pub use output_options::{ColorChoice, OutputFormat, Printing, TimeStyle};
pub use report_command::{ReportFormat, ReportObject, ReportOptions, ReportTable};
pub use run_choice::RunChoice;
pub use run_command::{FLIGHT_RING, Purpose, Recording, RecordingLevel, RunOptions, is_unnoticed};
pub use selection::Selection;
pub use time_point::TimePoint;

/// What was typed.
#[derive(Debug, Parser)]
#[command(name = "trace-cat", version, max_term_width = 100, about = ABOUT, long_about = LONG_ABOUT)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(visible_alias = "record")]
    Run(RunOptions),
    Report(ReportOptions),
    Open(OpenOptions),
    Set(SetOptions),
    Status(StatusOptions),
}

const ABOUT: &str = "Print the records of a trace in the order of time";
const LONG_ABOUT: &str = "\
Print the records of a trace in the order of time

Reads the files tr.xxxxxxx.yyy that libthreadt.so writes and prints their records as one timeline. The records that \
killed processes left in their buffers (trbuf.xxxxxxx) are printed too, each once.

Exit status: 0 if everything was read or recovered; 1 if something was damaged or could not be read: a message on stderr \
reports it, and all other records are printed or recovered; 2 for wrong usage.";

/// The command that the command line asks for.
#[derive(Debug)]
pub enum Task {
    /// Print or recover a trace.
    Read(Options),
    /// Run a program and record it.
    Run(RunOptions),
    /// Report on a trace.
    Report(ReportOptions),
    /// Write a timeline of a trace for a viewer.
    Open(Options),
    /// Change what is recorded of running processes.
    Set(SetOptions),
    /// List the processes that can be changed.
    Status(StatusOptions),
}

/// The options for reading a trace.
#[derive(Args, Debug, Default)]
pub struct Options {
    /// Files or directories to read [default: $THR_TRACE_DIR, else .]
    ///
    /// In a directory, the files of a trace are read; renamed files (old.*) are read only if they are named, or by --run, --last
    /// and --all-runs.
    /// A file that is named twice is read once. A trbuf file stands for all files of its process. - is the standard input.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    #[command(flatten)]
    pub selection: Selection,

    #[command(flatten)]
    pub arrangement: Arrangement,

    #[command(flatten)]
    pub printing: Printing,

    #[command(flatten)]
    pub following: Following,

    #[command(flatten)]
    pub runs: RunChoice,

    /// Count what is in the trace instead of printing it
    ///
    /// Prints the processes with their commands, threads, time spans and losses; the calls and records of each event, with
    /// their durations; and the objects of each kind. Only records that the other options select are counted. -F json makes
    /// one document of them. Example: trace-cat --stat -e mutex trace
    #[arg(long, help_heading = "Instead of printing", conflicts_with_all = ["Arrangement", "calls", "stack", "time", "color", "recover"])]
    pub stat: bool,

    /// List the hosts of the directories, and what is known of their clocks
    ///
    /// For each directory: the host, the state of its clock (synchronized, unsynchronized, not_asked, refused, unknown), by how
    /// much the clock is wrong at most as the host's kernel knew it, what is added to the times of records, how many processes;
    /// and the processes that are shown with other numbers, because an earlier host has processes of the same ones. Directories
    /// of several hosts that are read together are merged by these corrected times. -F json makes one document. Example:
    /// trace-cat --hosts alpha/ beta/
    #[arg(long, help_heading = "Instead of printing",
        conflicts_with_all = ["Selection", "Arrangement", "Following", "calls", "stack", "time", "color", "stat", "recover", "RunChoice"])]
    pub hosts: bool,

    /// Write what dead processes left in their trbufs to the record files
    ///
    /// For use with grep and awk: each trbuf of a process that has ended is written to the record files, each record once,
    /// and removed. A PATH is a directory, whose subdirectories ns* and renamed trbufs (old.*) are included, or a trbuf. A line is printed for each
    /// trbuf. The recovery may be interrupted and run again at any time. The trbufs of running processes are not changed.
    /// Example: trace-cat --recover trace
    #[arg(long, help_heading = "Instead of printing", conflicts_with_all = ["Selection", "Arrangement", "Printing", "RunChoice"])]
    pub recover: bool,
}

/// The answer to another format with --hosts.
const HOSTS_FORMATS: &str = "--hosts prints a table, or a document with -F json";

impl Options {
    /// Whether --follow leaves out the existing records: nothing is printed of them, and no journal has to have them.
    pub fn begins_now(&self) -> bool {
        self.selection.since == Some(TimePoint::Now) && self.printing.output.is_none()
    }

    /// Checks what else is asked for with `-F ctf`, which writes all records in order at once.
    fn check_ctf(&self) -> Result<(), &'static str> {
        let Options { printing, arrangement, following, .. } = self;
        match printing.format {
            OutputFormat::Ctf if self.hosts => Err(HOSTS_FORMATS),
            OutputFormat::Ctf if self.stat => Err("--stat prints tables, or a document with -F json"),
            OutputFormat::Ctf if following.follow => Err("-F ctf writes a trace that is complete, not with --follow"),
            OutputFormat::Ctf if arrangement.sort != SortOrder::Time => {
                Err("-F ctf has the order of time, not of --sort")
            }
            OutputFormat::Ctf if printing.output.is_none() => Err("-F ctf makes a directory: name it with -o"),
            _ => Ok(()),
        }
    }

    /// A hint for a path that does not exist: it may have been meant as the name of a command.
    ///
    /// # Errors
    /// The path and the command.
    pub fn check_commands(&self) -> Result<(), CommandError> {
        let mut table = command();
        table.build();
        let names = || table.get_subcommands().flat_map(|command| command.get_name_and_visible_aliases());
        for path in &self.paths {
            if let Some(name) = path.to_str().and_then(|word| nearest_name::nearest_of(word, names()))
                && path.symlink_metadata().is_err()
            {
                let what = format!("no such file or directory: '{}'", path.display());
                return Err(CommandError::Usage(format!("{what}\n\n  tip: the command 'trace-cat {name}' exists")));
            }
        }
        Ok(())
    }

    /// Refuses what a timeline for a viewer has no use for, and to write one to a terminal.
    fn check_timeline(&self, is_terminal: bool) -> Result<(), String> {
        let Options { printing, selection, arrangement, following, .. } = self;
        let Some((name, file)) = printing.format.timeline_file() else { return Ok(()) };
        if self.hosts {
            return Err(HOSTS_FORMATS.to_owned());
        }
        if self.stat {
            return Err("--stat prints tables, or a document with -F json".to_owned());
        }
        if following.follow && printing.format == OutputFormat::Paje {
            return Err("-F paje is in the order of beginnings, not with --follow".to_owned());
        }
        if printing.format == OutputFormat::Parquet {
            if following.follow {
                return Err("-F parquet writes a table that is complete, not with --follow".to_owned());
            }
            if selection.blocked || selection.longer.is_some() {
                let columns = "the table has what calls cost as columns: ask for those with waited or duration there";
                return Err(format!(
                    "-F parquet has all records of calls, not those of --blocked and --longer; {columns}"
                ));
            }
        }
        if selection.head.is_some() || selection.tail.is_some() {
            return Err(format!("-F {name} has no lines that --head and --tail could count: use --since and --until"));
        }
        if arrangement.sort != SortOrder::Time {
            return Err(format!("-F {name} has no other order than that of time: leave --sort out"));
        }
        // With --follow, FILE of -o is a journal.
        if is_terminal && following.follow {
            return Err(format!("-F {name} is not for terminals: write it to a file with >{file}"));
        }
        if is_terminal && printing.output.is_none() {
            return Err(format!("-F {name} is not for terminals: write it to a file with -o {file}"));
        }
        Ok(())
    }

    /// Options that print all records of these runs in a directory.
    pub fn records_of(directory: PathBuf, runs: RunChoice, printing: Printing) -> Options {
        Options { paths: vec![directory], printing, runs, ..Options::default() }
    }
}

impl Task {
    /// Parses a command line, whose first word is the program's name. `directory` is `$THR_TRACE_DIR`; `is_terminal` if the standard
    /// output is one.
    ///
    /// # Errors
    /// The help that was asked for, or what is wrong with the command line.
    pub fn parse(
        words: impl IntoIterator<Item = OsString>,
        directory: Option<OsString>,
        is_terminal: bool,
    ) -> Result<Task, clap::Error> {
        let Arguments { command, mut options } = Arguments::try_parse_from(words)?;
        let add_directory = |paths: &mut Vec<PathBuf>| {
            if paths.is_empty() {
                let directory = directory.filter(|directory| !directory.is_empty());
                paths.push(directory.map_or_else(|| ".".into(), PathBuf::from));
            }
        };
        match command {
            Some(Command::Run(mut run)) => {
                run.recording = run.recording.for_purpose();
                run.check().map_err(|what| usage_error(&["run"], what))?;
                return Ok(Task::Run(run));
            }
            Some(Command::Report(mut report)) => {
                add_directory(&mut report.paths);
                report.resolve().map_err(|what| usage_error(&["report"], what))?;
                return Ok(Task::Report(report));
            }
            Some(Command::Open(mut open)) => {
                add_directory(&mut open.paths);
                let printing = open.printing();
                let OpenOptions { paths, selection, runs, .. } = open;
                let mut options = Options { paths, selection, printing, runs, ..Options::default() };
                options.selection.resolve().map_err(|what| usage_error(&["open"], what))?;
                options.check_timeline(false).map_err(|what| usage_error(&["open"], what))?;
                return Ok(Task::Open(options));
            }
            Some(Command::Set(set)) => return Ok(Task::Set(set)),
            Some(Command::Status(mut status)) => {
                add_directory(&mut status.targets);
                return Ok(Task::Status(status));
            }
            None => add_directory(&mut options.paths),
        }
        // With --follow, FILE of -o is a journal.
        let is_shown = options.printing.output.is_none() || options.following.follow;
        options.printing.resolve(is_terminal && is_shown);
        options.printing.check().map_err(|what| usage_error(&[], what))?;
        options.check_timeline(is_terminal).map_err(|what| usage_error(&[], what))?;
        if options.hosts && options.printing.format == OutputFormat::Csv {
            return Err(usage_error(&[], HOSTS_FORMATS));
        }
        if options.stat && options.printing.format == OutputFormat::Csv {
            return Err(usage_error(&[], "--stat prints tables, or a document with -F json"));
        }
        if options.arrangement.split.is_some() && options.printing.format != OutputFormat::Raw {
            return Err(usage_error(
                &[],
                "--split writes records as they are, in no other format\n\n  tip: read one of its files with 'trace-cat --format'",
            ));
        }
        options.check_ctf().map_err(|what| usage_error(&[], what))?;
        options.selection.resolve().map_err(|what| usage_error(&[], what))?;
        Ok(Task::Read(options))
    }
}

/// The table of options.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// A wrong use of the command line that the parser does not detect. `subcommands` names the command that it is about, from
/// the outermost; it is empty for trace-cat itself.
pub fn usage_error(subcommands: &[&str], what: impl std::fmt::Display) -> clap::Error {
    let mut command = command();
    command.build();
    let mut about = &mut command;
    for name in subcommands {
        about = about.find_subcommand_mut(name).expect("callers name subcommands that exist");
    }
    about.error(ErrorKind::ValueValidation, what)
}

#[cfg(test)]
mod tests;
