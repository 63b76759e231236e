//! The command line: dispatches to the command, prints its messages, and returns the exit status.

mod messages;
mod print;
mod report;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

pub use crate::options::command;
use crate::options::{CommandError, Options, ReportOptions, Task, usage_error};
use crate::output::destination;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::{follow, launch, recover};
use messages::Messages;

/// The exit status of a report with a deadlock.
const DEADLOCK: u8 = 3;

/// Runs the program: parses the command line, executes the command, and returns the exit status.
pub fn main() -> ExitCode {
    env_logger::init();
    let messages = Messages::new(Box::new(io::stderr()));
    let cli = Cli { diagnostics: messages.diagnostics(), messages };
    match Task::parse(std::env::args_os(), std::env::var_os("THR_TRACE_DIR"), io::stdout().is_terminal()) {
        Ok(Task::Read(options)) => cli.read(options),
        Ok(Task::Report(options)) => cli.report(options),
        Ok(Task::Run(options)) => {
            let merge = |options| cli.read(options) == ExitCode::SUCCESS;
            match launch::run(&options, merge, &cli.diagnostics) {
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

    /// Reports on a trace.
    fn report(&self, options: ReportOptions) -> ExitCode {
        destination::ignore_file_size_signal();
        self.status(report::report(options, &self.diagnostics), &["report"])
    }

    /// The exit status of a command that found a deadlock, or that failed. `subcommands` is its name.
    fn status(&self, result: Result<bool, CommandError>, subcommands: &[&str]) -> ExitCode {
        match result {
            Ok(true) => return ExitCode::from(DEADLOCK),
            Ok(false) => {}
            Err(CommandError::Usage(message)) => return self.print_usage(&usage_error(subcommands, message)),
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
    if options.following.follow { follow::follow(&options, diagnostics) } else { print::print(options, diagnostics) }
}
