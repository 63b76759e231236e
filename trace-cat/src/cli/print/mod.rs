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
mod line_choice;
mod sequential_stage;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::filter::{Filter, LineLimit, OpenCallTable};
use crate::merge::{BatchTransform, Merge, MergeLimits, OrderedSection};
use crate::options::{Arrangement, CommandError, Options, OutputFormat, Printing, Selection, SortOrder};
use crate::output::{self, Formatter, LimitedFormat, TimelineFormatter, destination};
use crate::report::runs::{self, ProgramRun};
use crate::report::stat::TraceCounts;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::support::local_time::DateTime;
use crate::trace::file_handle::DescriptorBudget;
use crate::trace::inputs;
use concurrent_stage::ConcurrentStage;
use line_choice::LineRange;
use sequential_stage::SequentialStage;

/// Prints a trace.
///
/// # Errors
/// Any failure of an output or of a temporary file. Damage in the trace is reported, and all other records are printed.
pub fn print(options: Options, diagnostics: &Diagnostics) -> Result<(), CommandError> {
    let runs = runs::find_runs(&options.paths);
    let paths = selected_paths(&options, &runs, diagnostics)?;
    let inputs = inputs::collect(&paths, &DescriptorBudget::from_limit(), diagnostics);
    let path = options.printing.output.as_deref();
    let output_name = path.map_or("standard output".to_owned(), |path| path.display().to_string());
    if destination::output_identity(path).is_some_and(|output| inputs.has(output)) {
        let what = format!("the output ({output_name}) is one of the inputs");
        return Err(CommandError::Usage(what));
    }
    // An earlier output stays if there is nothing to replace it.
    if path.is_some() && inputs.texts.is_empty() && diagnostics.has_damage() {
        return Ok(());
    }
    let failed = |error| Error::new(output_name.clone(), error);

    let mut sequential =
        SequentialStage::open(options.arrangement, &options.printing, &paths, diagnostics).map_err(failed)?;
    let limits = MergeLimits {
        collects_names: options.printing.format == OutputFormat::Text && !options.stat,
        ..MergeLimits::default()
    };
    let mut merge = Merge::prepare(&inputs.texts, limits, diagnostics).map_err(Error::temporary)?;
    let mut filter = Filter::new(&options.selection);
    let running = inputs.running_until();
    filter.prepare(&merge, &running).map_err(Error::temporary)?;
    let (open_calls, undecided) = filter.open_calls();
    if undecided > 0 {
        let what =
            format_args!("{undecided} more were open when records began to be lost, and may meet the conditions");
        diagnostics.report_note("calls", what);
    }
    let pids = &options.selection.pids;
    let mut losses = inputs.unreported_losses();
    losses.retain(|(pid, _)| pids.is_empty() || pids.contains(pid));
    let (mut concurrent, mut format) = formats(&options, &paths, &runs, open_calls, running, losses);
    let Selection { since, until, head, tail, .. } = options.selection;
    let start = merge.span().map_or(0, |(start, _)| start);
    let timeline: Option<&mut dyn TimelineFormatter> = match (&mut concurrent, &mut format) {
        (ConcurrentStage::Text(text), _) => Some(&mut **text),
        (_, Formatter::Timeline(formatter)) => Some(&mut **formatter),
        _ => None,
    };
    if let Some(timeline) = timeline {
        timeline.begin(start);
        std::mem::take(&mut merge.name_lines).iter().for_each(|line| timeline.add_name(line));
    }

    let is_empty = AtomicBool::new(merge.span().is_some());
    let transform = |lines: &[u8], section: OrderedSection, out: &mut Vec<u8>| {
        if concurrent.format(&filter, lines, section, out) {
            // ORDERING: the flag is read when all threads have ended.
            is_empty.store(false, Ordering::Relaxed);
        }
    };
    let is_unchanged = matches!(concurrent, ConcurrentStage::Unchanged) && filter.accepts_all();
    let transform: BatchTransform = if is_unchanged { None } else { Some(&transform) };
    let mut times = since.map_or(0, |since| since.resolve(start))..until.map_or(u64::MAX, |until| until.resolve(start));
    // Frames do not count.
    let counted = Printing { stack: false, ..options.printing.clone() };
    let counter = output::formatter_for(&counted, &paths, OpenCallTable::default());
    let is_sorted = options.arrangement.sort != SortOrder::Time;
    let (limit, format) = match (format, counter) {
        (Formatter::Timeline(formatter), Formatter::Timeline(counter))
            if !is_sorted && !options.stat && (head.is_some() || tail.is_some()) =>
        {
            let range = LineRange { head, tail, needs_all_records: options.printing.calls };
            let (limit, lines) = range.choose(&merge, &mut times, transform, counter).map_err(failed)?;
            (limit, Formatter::Timeline(Box::new(LimitedFormat::new(formatter, lines))))
        }
        (format, _) => (LineLimit::choose(&merge, &mut times, transform, head, tail).map_err(failed)?, format),
    };
    sequential.begin(limit, format, &concurrent).map_err(failed)?;
    let mut take = |lines: &[u8]| {
        is_empty.fetch_and(lines.is_empty(), Ordering::Relaxed);
        sequential.take(lines)
    };
    merge.run(times, transform, &mut take).map_err(failed)?;
    if is_empty.into_inner() && (!filter.accepts_all() || since.or(until).is_some()) {
        diagnostics.report_note("no record matches", "the options leave out all that the trace has");
    }
    sequential.end(&mut concurrent).map_err(failed)?;
    Ok(filter.result().map_err(Error::temporary)?)
}

/// The paths to read. What they leave out is reported.
pub fn selected_paths(
    options: &Options,
    runs: &[ProgramRun],
    diagnostics: &Diagnostics,
) -> Result<Vec<PathBuf>, CommandError> {
    let renamed = runs::renamed_paths(runs);
    let shared: usize = shared_numbers(options, runs).values().sum();
    if let Some(newest) = runs.last().filter(|_| shared > 0) {
        let hint = if options.runs.all_runs {
            "--run counts each for itself"
        } else {
            "only their files tell them apart (ns*/)"
        };
        let noun = if shared == 1 { "process" } else { "processes" };
        let what = format_args!("process IDs stand for {shared} more {noun}; {hint}");
        diagnostics.report_note(newest.directory.display(), what);
    }
    if options.runs.all_runs {
        return Ok(options.paths.iter().chain(renamed).cloned().collect());
    }
    if !options.runs.run_numbers.is_empty() {
        let numbers: BTreeSet<usize> = options.runs.run_numbers.iter().copied().collect();
        let paths = |number: usize| {
            let run = number.checked_sub(1).and_then(|index| runs.get(index)).map(ProgramRun::paths);
            run.ok_or_else(|| {
                CommandError::Usage(format!("there is no run {number}, but {} (--stat lists several)", runs.len()))
            })
        };
        return numbers.into_iter().map(paths).collect::<Result<Vec<_>, _>>().map(|paths| paths.concat());
    }
    let Some(newest) = runs.last() else { return Ok(options.paths.clone()) };
    if options.runs.last {
        return Ok(newest.paths());
    }
    let others = runs.iter().filter(|run| run.directory != newest.directory).count();
    let place = match &options.paths[..] {
        [first, rest @ ..] if others > 0 && !rest.is_empty() => format!("{} and {} more", first.display(), rest.len()),
        _ => newest.directory.display().to_string(),
    };
    if runs.len() > 1 && !options.stat {
        let (count, since) = (runs.len(), DateTime(newest.start));
        let what = format_args!("{count} runs; --last is for the newest alone, of {since}, --run N for another");
        diagnostics.report_note(&place, what);
    }
    let is_named = |path: &&PathBuf| options.paths.contains(path);
    let renamed = renamed.filter(|path| !is_named(path)).count();
    if renamed > 0 {
        let what = format_args!("{renamed} renamed files (old.*) are not read, but by --all-runs, --run N and --last");
        diagnostics.report_note(&place, what);
    }
    Ok(options.paths.clone())
}

/// The process IDs that several of the processes to read have (see [`runs::shared_numbers`]).
fn shared_numbers(options: &Options, runs: &[ProgramRun]) -> BTreeMap<u32, usize> {
    let only = if options.runs.last { vec![runs.len()] } else { options.runs.run_numbers.clone() };
    let runs = runs.iter().zip(1..).filter(|(_, number)| only.is_empty() || only.contains(number));
    let processes = runs.flat_map(|(run, _)| &run.processes);
    runs::shared_numbers(processes.filter(|process| options.runs.all_runs || !only.is_empty() || !process.is_renamed()))
}

/// How records are formatted, by the merging threads and after them.
fn formats(
    options: &Options,
    paths: &[PathBuf],
    runs: &[ProgramRun],
    open_calls: OpenCallTable,
    running: Vec<(u32, u64)>,
    losses: Vec<(u32, u64)>,
) -> (ConcurrentStage, Formatter) {
    let Options { arrangement: Arrangement { sort, .. }, selection, printing, .. } = options;
    if options.stat {
        let only = if options.runs.last { 1 } else { options.runs.run_numbers.len() };
        let count = if only > 0 { runs.len().min(only) } else { runs.len() };
        let mut stat = TraceCounts::new(output::file_groups(paths), (count > 0).then_some(count))
            .with_open_calls(open_calls, running)
            .with_unreported_losses(losses);
        stat.shared_numbers = shared_numbers(options, runs);
        stat.as_document = printing.format == OutputFormat::Json;
        if count > 1 {
            stat.run_lines = runs::run_lines(runs);
        }
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
        Formatter::PerRecord(formatter) if !sorted && !is_limited => {
            (ConcurrentStage::PerRecord(formatter), Formatter::Raw)
        }
        formatter => (ConcurrentStage::Unchanged, formatter),
    }
}
