//! Prints the records of a trace directory as one timeline.
//!
//! ```text
//! args ──► read ──► merge ──► filter ──► view ──► output
//!          which files,       which      raw, text, csv, json
//!          what is in them    records
//! ```
//!
//! `report` is what there is to know beside the records: `--stat`, and which processes are a run. `recover` is another way: with it, nothing is printed, and what dead processes left is put into their files. `run`
//! starts a program that makes a trace in the first place.
//!
//! Nothing flows back, and no file is held in memory: what can grow with the trace is the list of its files and the
//! list of its runs. `say` tells what is wrong on the way; `names` knows names for numbers, `local_time`
//! what clocks show.

mod args;
mod filter;
#[cfg(test)]
mod image;
mod local_time;
mod merge;
mod names;
mod output;
#[cfg(test)]
mod random;
mod read;
mod recover;
mod report;
mod run;
mod say;
#[cfg(test)]
mod trial;
mod view;

use std::io;
use std::process::ExitCode;

use args::{Options, Task};
use filter::Filter;
use merge::Limits;
use output::Output;
use read::handle::Descriptors;
use read::inputs;
use report::runs;
use report::stat::Stat;
use say::{Say, reason};
use view::View;

fn main() -> ExitCode {
    env_logger::init();
    let say = Say::new(Box::new(io::stderr()));
    match Task::parse(std::env::args_os(), std::env::var_os("THR_TRACE_DIR")) {
        Ok(Task::Read(options)) => end(print(options, &say), &say),
        Ok(Task::Run(options)) => {
            let merge = |options| end(print(options, &say), &say) == ExitCode::SUCCESS;
            ExitCode::from(run::run(&options, merge, &say))
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
        say.failure(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
        return ExitCode::from(2);
    }
    // As in a run, nobody may be there to read it.
    let _ = error.print();
    ExitCode::SUCCESS
}

/// Why a run ended before its end.
enum Stop {
    Usage(clap::Error),
    Failed(String, io::Error),
}

/// Prints a trace, or recovers it.
fn print(options: Options, say: &Say) -> Result<(), Stop> {
    if options.recover {
        return recover::recover(&options.paths, &mut io::stdout().lock(), say)
            .map_err(|error| Stop::Failed("standard output".to_owned(), error));
    }
    let runs = runs::find(&options.paths);
    let paths = match runs.last() {
        Some(newest) if options.last => newest.paths(),
        newest => {
            if let Some(newest) = newest.filter(|_| runs.len() > 1 && !options.stat) {
                let since = local_time::Moment(newest.start);
                let what = format_args!("{} runs; --last is for the newest alone, of {since}", runs.len());
                say.note(newest.directory.display(), what);
            }
            options.paths.clone()
        }
    };
    let inputs = inputs::collect(&paths, &Descriptors::half_of_the_limit(), say);
    let path = &options.printing.output;
    let output_name = path.as_ref().map_or("standard output".to_owned(), |path| path.display().to_string());
    if output::identity(path.as_deref()).is_some_and(|output| inputs.identities.contains(&output)) {
        return Err(Stop::Usage(args::usage_error(
            &[],
            format_args!("the output ({output_name}) is one of the inputs"),
        )));
    }
    let failed = |error| Stop::Failed(output_name.clone(), error);
    let mut output = Output::open(path.as_deref()).map_err(failed)?;
    let mut merge = merge::merge(&inputs.texts, Limits::default(), say)
        .map_err(|error| Stop::Failed("temporary file".to_owned(), error))?;
    let filter = Filter::new(options.selection);
    let mut view: Box<dyn View> = match options.stat {
        true => Box::new(Stat::new(view::directories(&paths), (!runs.is_empty()).then_some(runs.len()))),
        false => view::open(&options.printing, &paths),
    };
    output.add(|out| view.head(out)).map_err(failed)?;
    while let Some(line) = merge.line() {
        if filter.wants(line) {
            output.add(|out| view.record(line, out)).map_err(failed)?;
        }
        merge.advance(say);
    }
    output.add(|out| view.end(out)).map_err(failed)?;
    output.finish().map_err(failed)
}
