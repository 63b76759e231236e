//! Prints a trace, from its files to the output.
//!
//! ```text
//! merge ──► concurrent_stage ──► sequential_stage
//!           threads              one thread, in order:
//!           filter,              line limit, sorter,
//!           format               format, splitter or output
//! ```
//!
//! What can be formatted record by record, or batch by batch, is formatted by the threads that merge. What has to wait until
//! the records are counted or sorted is formatted after that.

mod concurrent_stage;
mod sequential_stage;

use std::path::PathBuf;

use crate::filter::{Filter, LineLimit, OpenCallTable};
use crate::merge::{BatchTransform, Merge, MergeLimits, OrderedSection};
use crate::options::{Arrangement, CommandError, Options, Selection, SortOrder};
use crate::output::{self, Formatter, TimelineFormatter as _, destination};
use crate::report::runs::{self, ProgramRun};
use crate::report::stat::TraceCounts;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::support::local_time::DateTime;
use crate::trace::file_handle::DescriptorBudget;
use crate::trace::inputs;
use concurrent_stage::ConcurrentStage;
use sequential_stage::SequentialStage;

/// Prints a trace.
///
/// # Errors
/// Any failure of an output or of a temporary file. Damage in the trace is reported, and all other records are printed.
pub fn print(options: Options, diagnostics: &Diagnostics) -> Result<(), CommandError> {
    let runs = runs::find_runs(&options.paths);
    let paths = selected_paths(&options, &runs, diagnostics);
    let inputs = inputs::collect(&paths, &DescriptorBudget::half_of_the_limit(), diagnostics);
    let path = options.printing.output.as_deref();
    let output_name = path.map_or("standard output".to_owned(), |path| path.display().to_string());
    if destination::output_identity(path).is_some_and(|output| inputs.has(output)) {
        let what = format!("the output ({output_name}) is one of the inputs");
        return Err(CommandError::Usage(what));
    }
    let failed = |error| Error::new(output_name.clone(), error);

    let mut sequential = SequentialStage::open(options.arrangement, path, diagnostics).map_err(failed)?;
    let merge = Merge::prepare(&inputs.texts, MergeLimits::default(), diagnostics).map_err(Error::temporary)?;
    let mut filter = Filter::new(&options.selection);
    let running = inputs.running_until();
    filter.prepare(&merge, &running).map_err(Error::temporary)?;
    let (open_calls, undecided) = filter.open_calls();
    if undecided > 0 {
        let what =
            format_args!("{undecided} more were open when records began to be lost, and may meet the conditions");
        diagnostics.report_note("calls", what);
    }
    let (mut concurrent, mut format) = formats(&options, &paths, &runs, open_calls, running);
    let Selection { since, until, head, tail, .. } = options.selection;
    let start = merge.span().map_or(0, |(start, _)| start);
    match (&mut concurrent, &mut format) {
        (ConcurrentStage::Text(text), _) => text.begin(start),
        (_, Formatter::Timeline(formatter)) => formatter.begin(start),
        _ => {}
    }

    let transform =
        |lines: &[u8], section: OrderedSection, out: &mut Vec<u8>| concurrent.format(&filter, lines, section, out);
    let is_unchanged = matches!(concurrent, ConcurrentStage::Unchanged) && filter.accepts_all();
    let transform: BatchTransform = if is_unchanged { None } else { Some(&transform) };
    let mut times = since.map_or(0, |since| since.resolve(start))..until.map_or(u64::MAX, |until| until.resolve(start));
    let limit = LineLimit::choose(&merge, &mut times, transform, head, tail).map_err(failed)?;
    sequential.begin(limit, format, &concurrent).map_err(failed)?;
    merge.run(times, transform, &mut |lines| sequential.take(lines)).map_err(failed)?;
    sequential.end(&mut concurrent).map_err(failed)?;
    Ok(filter.result().map_err(Error::temporary)?)
}

/// The paths to read. If there are several runs, a note reports that.
fn selected_paths(options: &Options, runs: &[ProgramRun], diagnostics: &Diagnostics) -> Vec<PathBuf> {
    match runs.last() {
        Some(newest) if options.last => return newest.paths(),
        Some(newest) if runs.len() > 1 && !options.stat => {
            let since = DateTime(newest.start);
            let what = format_args!("{} runs; --last is for the newest alone, of {since}", runs.len());
            diagnostics.report_note(newest.directory.display(), what);
        }
        _ => {}
    }
    options.paths.clone()
}

/// How records are formatted, by the merging threads and after them.
fn formats(
    options: &Options,
    paths: &[PathBuf],
    runs: &[ProgramRun],
    open_calls: OpenCallTable,
    running: Vec<(u32, u64)>,
) -> (ConcurrentStage, Formatter) {
    let Options { arrangement: Arrangement { sort, .. }, selection, printing, .. } = options;
    if options.stat {
        let count = if options.last { runs.len().min(1) } else { runs.len() };
        let stat = TraceCounts::new(output::trace_directories(paths), (count > 0).then_some(count))
            .with_open_calls(open_calls, running);
        return (ConcurrentStage::Unchanged, Formatter::Timeline(Box::new(stat)));
    }
    let sorted = *sort != SortOrder::Time;
    // Records are counted for --head and --tail before they are formatted.
    let is_limited = selection.head.is_some() || selection.tail.is_some();
    if !sorted
        && !is_limited
        && let Some(text) = output::shared_text_format(printing, paths, &open_calls)
    {
        return (ConcurrentStage::Text(Box::new(text)), Formatter::Raw);
    }
    match output::formatter_for(printing, paths, open_calls) {
        Formatter::PerRecord(formatter) if !sorted => (ConcurrentStage::PerRecord(formatter), Formatter::Raw),
        formatter => (ConcurrentStage::Unchanged, formatter),
    }
}
