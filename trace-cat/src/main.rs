//! Prints the records of a trace directory as one timeline.
//!
//! ```text
//! args ──► read ──► merge ──► filter ──► arrange ──► view ──► output
//!          which files,       which      order,      raw, text, csv, json
//!          what is in them    records    files
//! ```
//!
//! `report` is what there is to know beside the records: `--stat`, and which processes are a run. `recover` is another
//! way: with it, nothing is printed, and what dead processes left is put into their files. `run` starts a program that
//! makes a trace in the first place.
//!
//! Nothing flows back, and no file is held in memory: what can grow with the trace is the list of its files and the
//! list of its runs. `say` tells what is wrong on the way, `progress` how far it is; `names` knows names for numbers,
//! `local_time` what clocks show.

mod args;
mod arrange;
mod filter;
mod follow;
#[cfg(test)]
mod image;
mod local_time;
mod merge;
mod names;
mod output;
mod parts;
mod progress;
#[cfg(test)]
mod random;
mod read;
mod recover;
mod report;
mod run;
mod say;
mod threads;
#[cfg(test)]
mod trial;
mod view;

use std::io;
use std::process::ExitCode;

use args::{Arrangement, Options, Selection, Task};
use arrange::{Sorter, Splitter};
use filter::{Few, Filter};
use merge::{Limits, Merge, Shape, Turn};
use output::Output;
use read::handle::Descriptors;
use read::inputs;
use report::runs;
use report::stat::Stat;
use say::{Say, reason};
use view::{Shown, View};

fn main() -> ExitCode {
    env_logger::init();
    let say = Say::on_stderr();
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
        Err(Stop::Failed(_, error)) if parts::is_temporary(&error) => {
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
enum Stop {
    Usage(clap::Error),
    Failed(String, io::Error),
}

/// Prints a trace, or recovers it.
fn print(options: Options, say: &Say) -> Result<(), Stop> {
    output::survive_limits();
    if options.recover {
        return recover::recover(&options.paths, &mut io::stdout().lock(), say)
            .map_err(|error| Stop::Failed("standard output".to_owned(), error));
    }
    if options.following.follow {
        return follow::follow(&options, say);
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
    let Arrangement { sort, split } = options.arrangement;
    let mut splitter =
        split.zip(path.as_deref()).map(|(what, path)| Splitter::new(what, path)).transpose().map_err(failed)?;
    let mut output = Output::open(path.as_deref().filter(|_| splitter.is_none()), say).map_err(failed)?;
    let temporary = |error| Stop::Failed("temporary file".to_owned(), error);
    let merge = Merge::prepare(&inputs.texts, Limits::default(), say).map_err(temporary)?;
    let Selection { since, until, head, tail, .. } = options.selection;
    let mut filter = Filter::new(options.selection);
    filter.prepare(&merge).map_err(temporary)?;
    let mut sorter = Sorter::new(sort);
    // Sorted records, and the first or the last ones only, are shown by one thread.
    let in_one = options.stat || sorter.is_some() || head.is_some() || tail.is_some();
    let mut shared = if in_one { None } else { view::shared(&options.printing, &paths) };
    let shown = match &shared {
        _ if options.stat => {
            Shown::InOrder(Box::new(Stat::new(view::directories(&paths), (!runs.is_empty()).then_some(runs.len()))))
        }
        Some(_) => Shown::AsTheyAre,
        None => view::open(&options.printing, &paths),
    };
    let (each, mut in_order) = match shown {
        Shown::AsTheyAre => (None, None),
        Shown::Each(view) => (Some(view), None),
        Shown::InOrder(view) => (None, Some(view)),
    };
    // Where records are sorted, they are shown behind that.
    let early = each.as_ref().filter(|_| sorter.is_none());
    let shape = |lines: &[u8], turn: Turn, out: &mut Vec<u8>| match (&shared, early) {
        (Some(text), _) => {
            let mut batch = text.batch();
            filter.select(lines, |line| batch.push(line));
            text.show(batch, turn, out);
        }
        (None, Some(view)) => filter.select(lines, |line| view.record(line, out)),
        (None, None) => filter.select(lines, |line| out.extend_from_slice(line)),
    };
    let shape: Shape = if filter.is_idle() && shared.is_none() && early.is_none() { None } else { Some(&shape) };
    let start = merge.span().map_or(0, |(start, _)| start);
    let mut times = since.map_or(0, |since| since.resolve(start))..until.map_or(u64::MAX, |until| until.resolve(start));
    let mut few = Few::choose(&merge, &mut times, shape, head, tail).map_err(failed)?;
    let mut piece = Vec::new();
    if let Some(view) = &each {
        view.head(&mut piece);
        output.write(&piece).map_err(failed)?;
    }
    let late = each.as_ref().filter(|_| sorter.is_some());
    let mut put = |lines: &[u8]| {
        if let Some(splitter) = &mut splitter {
            return splitter.push(lines);
        }
        if late.is_none() && in_order.is_none() {
            return output.write(lines);
        }
        piece.clear();
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            match (&mut in_order, late) {
                (Some(view), _) => view.record(line, &mut piece),
                (None, Some(view)) => view.record(line, &mut piece),
                (None, None) => piece.extend_from_slice(line),
            }
        }
        output.write(&piece)
    };
    let mut take = |lines: &[u8]| {
        let (lines, more) = few.cut(lines);
        match &mut sorter {
            Some(sorter) => sorter.push(lines)?,
            None => put(lines)?,
        }
        Ok(more)
    };
    merge.run(times, shape, &mut take).map_err(failed)?;
    sorter.map_or(Ok(()), |sorter| sorter.finish(&mut put, say)).map_err(failed)?;
    splitter.map_or(Ok(()), Splitter::finish).map_err(failed)?;
    let shared = shared.as_mut().map(|text| text as &mut dyn View);
    if let Some(view) = shared.or(in_order.as_deref_mut()) {
        piece.clear();
        view.end(&mut piece);
        output.write(&piece).map_err(failed)?;
    }
    output.finish().map_err(failed)?;
    filter.result().map_err(temporary)
}
