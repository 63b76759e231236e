//! Prints what there is of a trace, from its files to the output.
//!
//! ```text
//! merge ──► early ──► sink
//!           threads   one thread, in order:
//!           filter,   few, sorter, late,
//!           show      splitter or output
//! ```
//!
//! What can be shown record by record, or batch by batch, is shown by the threads that merge. What has to wait until the
//! records are counted or sorted is shown behind that.

mod concurrent_stage;
mod sequential_stage;

use std::path::PathBuf;

use crate::filter::{Few, Filter};
use crate::merge::{Limits, Merge, Shape, Turn};
use crate::options;
use crate::options::CommandError;
use crate::options::{Arrangement, Options, Selection};
use crate::output;
use crate::output::Shown;
use crate::output::destination;
use crate::report::runs;
use crate::report::runs::Run;
use crate::report::stat::Stat;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::support::local_time::Moment;
use crate::trace::file_handle::Descriptors;
use crate::trace::inputs;
use concurrent_stage::Early;
use sequential_stage::{Late, Sink};

/// Prints a trace.
///
/// # Errors
/// What prevents that. What cannot be read of the trace is told, and the rest is printed.
pub fn print(options: Options, diagnostics: &Diagnostics) -> Result<(), CommandError> {
    let runs = runs::find(&options.paths);
    let paths = chosen(&options, &runs, diagnostics);
    let inputs = inputs::collect(&paths, &Descriptors::half_of_the_limit(), diagnostics);
    let path = options.printing.output.as_deref();
    let output_name = path.map_or("standard output".to_owned(), |path| path.display().to_string());
    if destination::identity(path).is_some_and(|output| inputs.identities.contains(&output)) {
        let what = format!("the output ({output_name}) is one of the inputs");
        return Err(CommandError::Usage(what));
    }
    let failed = |error| Error::new(output_name.clone(), error);

    let mut sink = Sink::open(options.arrangement, path, diagnostics).map_err(failed)?;
    let merge = Merge::prepare(&inputs.texts, Limits::default(), diagnostics).map_err(Error::temporary)?;
    let views = views(&options, &paths, &runs);
    let Selection { since, until, head, tail, .. } = options.selection;
    let mut filter = Filter::new(options.selection);
    filter.prepare(&merge).map_err(Error::temporary)?;

    let (mut early, late) = views;
    let shape = |lines: &[u8], turn: Turn, out: &mut Vec<u8>| early.show(&filter, lines, turn, out);
    let shape: Shape = if filter.is_idle() && early.is_idle() { None } else { Some(&shape) };
    let start = merge.span().map_or(0, |(start, _)| start);
    let mut times = since.map_or(0, |since| since.resolve(start))..until.map_or(u64::MAX, |until| until.resolve(start));
    let few = Few::choose(&merge, &mut times, shape, head, tail).map_err(failed)?;
    sink.begin(few, late, &early).map_err(failed)?;
    merge.run(times, shape, &mut |lines| sink.take(lines)).map_err(failed)?;
    sink.end(&mut early).map_err(failed)?;
    Ok(filter.result().map_err(Error::temporary)?)
}

/// The paths to read. That there is more than one run is told.
fn chosen(options: &Options, runs: &[Run], diagnostics: &Diagnostics) -> Vec<PathBuf> {
    match runs.last() {
        Some(newest) if options.last => return newest.paths(),
        Some(newest) if runs.len() > 1 && !options.stat => {
            let since = Moment(newest.start);
            let what = format_args!("{} runs; --last is for the newest alone, of {since}", runs.len());
            diagnostics.report_note(newest.directory.display(), what);
        }
        _ => {}
    }
    options.paths.clone()
}

/// How records are shown, by the threads that merge and behind them.
fn views(options: &Options, paths: &[PathBuf], runs: &[Run]) -> (Early, Late) {
    let Options { arrangement: Arrangement { sort, .. }, selection, printing, .. } = options;
    if options.stat {
        let stat = Stat::new(output::directories(paths), (!runs.is_empty()).then_some(runs.len()));
        return (Early::Nothing, Late::InOrder(Box::new(stat)));
    }
    let sorted = *sort != options::Order::Time;
    // The first or the last records only are counted before they are shown.
    let few = selection.head.is_some() || selection.tail.is_some();
    if !sorted
        && !few
        && let Some(text) = output::shared(printing, paths)
    {
        return (Early::Text(Box::new(text)), Late::Nothing);
    }
    match output::open(printing, paths) {
        Shown::AsTheyAre => (Early::Nothing, Late::Nothing),
        Shown::Each(view) if sorted => (Early::Nothing, Late::Each(view)),
        Shown::Each(view) => (Early::Each(view), Late::Nothing),
        Shown::InOrder(view) => (Early::Nothing, Late::InOrder(view)),
    }
}
