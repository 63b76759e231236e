//! Prints the records of a trace directory as one timeline.
//!
//! ```text
//! args ──► read ──► merge ──► filter ──► arrange ──► view ──► output
//!          which files,       which      order,      raw, text, csv, json
//!          what is in them    records    files
//! ```
//!
//! `print` puts these steps together. `follow` is another way, for records that come while they are printed; with `recover`,
//! nothing is printed, and what dead processes left is put into their files. `report` is what there is to know beside the
//! records: `--stat`, and which processes are a run. `run` starts a program that makes a trace in the first place.
//!
//! Nothing flows back, and no file is held in memory: what can grow with the trace is the list of its files and the
//! list of its runs. `say` tells what is wrong on the way, `progress` how far it is; `names` knows names for numbers,
//! `local_time` what clocks show.

mod print;

use std::io;
use std::process::ExitCode;

pub use crate::options::command;
use crate::options::{Options, Task};
use crate::output::destination;
use crate::support::diagnostics::{Say, reason};
use crate::support::temporary_files::is_temporary;
use crate::{follow, launch, recover};

/// Runs the program.
pub fn main() -> ExitCode {
    env_logger::init();
    let say = Say::on_stderr();
    match Task::parse(std::env::args_os(), std::env::var_os("THR_TRACE_DIR")) {
        Ok(Task::Read(options)) => end(read(options, &say), &say),
        Ok(Task::Run(options)) => {
            let merge = |options| end(read(options, &say), &say) == ExitCode::SUCCESS;
            ExitCode::from(launch::run(&options, merge, &say))
        }
        Err(error) => no_run(&error, &say),
    }
}

/// Says why a run ended, if it did not come to its end.
fn end(result: Result<(), Stop>, say: &Say) -> ExitCode {
    match result {
        Ok(()) if say.damaged() => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Usage(error)) => no_run(&error, say),
        // Whoever read the output has seen enough.
        Err(Stop::Failed(_, error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Stop::Failed(_, error)) if is_temporary(&error) => {
            say.failure(reason(&error));
            ExitCode::FAILURE
        }
        Err(Stop::Failed(what, error)) => {
            say.failure(format_args!("{what}: {}", reason(&error)));
            ExitCode::FAILURE
        }
    }
}

/// Prints the help that was asked for, or what is wrong with the command line.
fn no_run(error: &clap::Error, say: &Say) -> ExitCode {
    if error.use_stderr() {
        let text = error.render().to_string();
        say.failure_of_lines(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
        return ExitCode::from(2);
    }
    // As in a run, nobody may be there to read it.
    let _ = error.print();
    ExitCode::SUCCESS
}

/// Why a run ended before its end.
pub enum Stop {
    /// The command line is wrong.
    Usage(clap::Error),
    /// A file failed: which one, and how.
    Failed(String, io::Error),
}

/// Prints or recovers a trace, or follows it.
fn read(options: Options, say: &Say) -> Result<(), Stop> {
    destination::survive_limits();
    if options.recover {
        return recover::recover(&options.paths, &mut io::stdout().lock(), say)
            .map_err(|error| Stop::Failed("standard output".to_owned(), error));
    }
    if options.following.follow { follow::follow(&options, say) } else { print::print(options, say) }
}
