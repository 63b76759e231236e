//! The command line: dispatches to the command, prints its messages, and returns the exit status.

mod analysis_inputs;
mod export;
mod messages;
mod print;
mod report;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use crate::launch::NewTrace;
pub use crate::options::command;
use crate::options::{CommandError, Options, OutputFormat, ReportOptions, RunOptions, Task, format_list, usage_error};
use crate::output::destination;
use crate::report::host_list;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::trace::copied_directories::without_copies;
use crate::trace::hosts::HostTable;
use crate::{control, follow, launch, recover};
use messages::Messages;
use report::ReportOutcome;

/// The exit status of a report with a deadlock, or one for which a condition of --fail-if holds.
const FINDING: u8 = 3;

/// Runs the program: parses the command line, executes the command, and returns the exit status.
pub fn main() -> ExitCode {
    env_logger::init();
    let messages = Messages::new(Box::new(io::stderr()));
    let cli = Cli { diagnostics: messages.diagnostics(), messages };
    match Task::parse(std::env::args_os(), std::env::var_os("THR_TRACE_DIR"), io::stdout().is_terminal()) {
        Ok(Task::Read(options)) => cli.read(options),
        Ok(Task::Report(options)) => cli.report(options),
        Ok(Task::Open(options)) => cli.open(options),
        Ok(Task::Set(options)) => cli.status(control::set(&options, &cli.diagnostics).map(|()| false), &["set"]),
        Ok(Task::Status(options)) => {
            let printed = control::print_status(&options, &mut io::stdout().lock(), &cli.diagnostics);
            cli.status(printed.map(|()| false), &["status"])
        }
        Ok(Task::Run(options)) => {
            let merge = |options| cli.read(options) == ExitCode::SUCCESS;
            let report = |trace, succeeded| cli.report_run(&options, trace, succeeded);
            match launch::run(&options, merge, report, &cli.diagnostics) {
                Ok(status) => ExitCode::from(status),
                Err(refusal) => {
                    cli.print_failure(&refusal.message);
                    ExitCode::from(refusal.status)
                }
            }
        }
        Err(error) => cli.print_usage(&error),
    }
}

/// What the commands report to.
struct Cli {
    messages: Messages,
    diagnostics: Diagnostics,
}

impl Cli {
    /// Prints, recovers or follows a trace.
    fn read(&self, options: Options) -> ExitCode {
        let result = options.check_commands().and_then(|()| execute(options, &self.diagnostics));
        self.status(result.map(|()| false), &[])
    }

    /// Writes a timeline for the Perfetto UI, and prints how to see it.
    fn open(&self, options: Options) -> ExitCode {
        destination::ignore_file_size_signal();
        let name = options.printing.output.as_deref().map_or_else(Default::default, |path| path.display().to_string());
        let paths = without_copies(options.paths.clone(), &self.diagnostics);
        let options = Options { paths, ..options };
        let exported = options.check_commands().and_then(|()| export::export(&options, &self.diagnostics));
        if let Ok(true) = exported {
            let hint = "open it at https://ui.perfetto.dev (Open trace file), which reads it in the browser and uploads nothing";
            // A closed standard output is no failure.
            let _ = writeln!(io::stdout(), "{name}: {hint}");
        }
        self.status(exported.map(|_| false), &["open"])
    }

    /// Reports on a trace.
    fn report(&self, options: ReportOptions) -> ExitCode {
        destination::ignore_file_size_signal();
        let paths = without_copies(options.paths.clone(), &self.diagnostics);
        let outcome = report::report(ReportOptions { paths, ..options }, &self.diagnostics);
        let has_found = |outcome: &ReportOutcome| outcome.has_deadlock || outcome.is_exceeded;
        self.status(outcome.and_then(|outcome| self.found(has_found(&outcome), outcome)), &["report"])
    }

    /// Reports on the trace of a program in a directory; `None` if nothing was recorded. Returns the exit status, if it is not the
    /// program's, which `succeeded` or not.
    fn report_run(&self, run: &RunOptions, trace: Option<NewTrace>, succeeded: bool) -> Option<u8> {
        let Some(NewTrace { directory, runs }) = trace else {
            let unknown = run.fail_if.first()?;
            self.print_failure(format_args!("--fail-if '{}': not known: nothing was recorded", unknown.text));
            return Some(2);
        };
        let (output, fail_if) = (run.report.clone().filter(|path| path != "-"), run.fail_if.clone());
        let options = ReportOptions { paths: vec![directory], runs, output, fail_if, ..ReportOptions::default() };
        let outcome = report::report_run(&options, &self.diagnostics);
        match outcome.and_then(|outcome| self.found(outcome.is_exceeded, outcome)) {
            Ok(is_exceeded) => is_exceeded.then_some(FINDING),
            Err(CommandError::Usage(message) | CommandError::NotKnown(message)) => {
                self.print_failure(message);
                Some(2)
            }
            Err(CommandError::Failed(error)) => {
                self.print_failure(error);
                succeeded.then_some(launch::OWN_FAILURE)
            }
        }
    }

    /// Whether a report has found what is a status of its own. Then a figure that is not known changes nothing, and is only printed.
    ///
    /// # Errors
    /// It has not, and a figure is not known.
    fn found(&self, has_found: bool, outcome: ReportOutcome) -> Result<bool, CommandError> {
        if !has_found && !outcome.unknown.is_empty() {
            return Err(CommandError::NotKnown(outcome.unknown.join("\n")));
        }
        outcome.unknown.iter().for_each(|message| self.print_failure(message));
        Ok(has_found)
    }

    /// The exit status of a command that found what is a status of its own, or that failed. `subcommands` is its name.
    fn status(&self, result: Result<bool, CommandError>, subcommands: &[&str]) -> ExitCode {
        match result {
            Ok(true) => return ExitCode::from(FINDING),
            Ok(false) => {}
            Err(CommandError::Usage(message)) => return self.print_usage(&usage_error(subcommands, message)),
            Err(CommandError::NotKnown(message)) => {
                message.lines().for_each(|line| self.print_failure(line));
                return ExitCode::from(2);
            }
            // The reader of the output has closed it, and needs no more records.
            Err(CommandError::Failed(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(CommandError::Failed(error)) => {
                self.print_failure(error);
                return ExitCode::FAILURE;
            }
        }
        if self.diagnostics.has_damage() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn print_failure(&self, message: impl std::fmt::Display) {
        self.diagnostics.without_progress(|| self.messages.print_failure(message));
    }

    /// Prints the help that was asked for, or what is wrong with the command line.
    fn print_usage(&self, error: &clap::Error) -> ExitCode {
        if error.use_stderr() {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
            self.diagnostics.without_progress(|| self.messages.print_lines(text));
            return ExitCode::from(2);
        }
        // A closed standard output is no failure.
        let _ = error.print();
        ExitCode::SUCCESS
    }
}

fn execute(options: Options, diagnostics: &Diagnostics) -> Result<(), CommandError> {
    destination::ignore_file_size_signal();
    if options.recover {
        let recovered = recover::recover(&options.paths, &mut io::stdout().lock(), diagnostics);
        return Ok(recovered.map_err(|error| Error::new("standard output", error))?);
    }
    if options.printing.format == OutputFormat::Help {
        let written = io::stdout().write_all(format_list().as_bytes());
        return Ok(written.map_err(|error| Error::new("standard output", error))?);
    }
    if options.hosts {
        return print_hosts(&options, diagnostics);
    }
    if options.following.follow {
        return follow::follow(&options, diagnostics);
    }
    let options = Options { paths: without_copies(options.paths.clone(), diagnostics), ..options };
    if options.printing.format.is_timeline() {
        return export::export(&options, diagnostics).map(|_| ());
    }
    print::print(options, diagnostics)
}

fn print_hosts(options: &Options, diagnostics: &Diagnostics) -> Result<(), CommandError> {
    let path = options.printing.output.as_deref();
    let failed = |error| Error::new(analysis_inputs::output_name(path), error);
    let table = HostTable::of_all(&options.paths);
    if table.hosts.is_empty() {
        let first = options.paths.first().map_or_else(String::new, |path| path.display().to_string());
        diagnostics.report_damage(first, "no trace directory");
        return Ok(());
    }
    let append = match options.printing.format {
        OutputFormat::Json => host_list::append_document,
        _ => host_list::append_table,
    };
    let mut text = Vec::new();
    append(&table, &mut text);
    let mut output = destination::Output::open(path, diagnostics).map_err(failed)?;
    Ok(output.write(&text).map_err(failed)?)
}
