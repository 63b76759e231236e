//! `trace-cat report`.

use std::collections::HashMap;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use super::print::selected_paths;
use crate::merge::{BatchTransform, Merge, MergeLimits, OrderedSection};
use crate::options::{CommandError, Options, ReportFormat, ReportOptions};
use crate::output::destination::{Output, output_identity};
use crate::output::file_groups;
use crate::report::contention::{Analysis, ContentionShares, NumericRecord, WaitSelection};
use crate::report::page::{PageOptions, ReportView, append_document, append_folded, append_page, append_profile};
use crate::report::process_info::processes_in_groups;
use crate::report::recorded_process::recorded_processes;
use crate::report::runs;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::symbols::{Aliases, Symbolizer};
use crate::trace::file_handle::DescriptorBudget;
use crate::trace::inputs;

/// How many rows the tables of the page have.
const TOP: usize = 10;

/// Prints a report; returns whether there is a deadlock.
///
/// # Errors
/// Any failure of the output or of a temporary file.
pub fn report(options: ReportOptions, diagnostics: &Diagnostics) -> Result<bool, CommandError> {
    let ReportOptions { paths, by, top, format, output, no_pager, pids, lwps, objects, debug_dirs, skip, last, .. } =
        options;
    let ReportOptions { run, all_runs, alias, .. } = options;
    let aliases = alias.as_deref().map_or(Ok(Aliases::default()), read_aliases)?;
    let named = Options { paths, last, run, all_runs, ..Options::default() };
    format.check_output(output.is_none() && io::stdout().is_terminal())?;
    let paths = selected_paths(&named, &runs::find_runs(&named.paths), diagnostics)?;
    let inputs = inputs::collect(&paths, &DescriptorBudget::half_of_the_limit(), diagnostics);
    let path = output.as_deref();
    let output_name = path.map_or("standard output".to_owned(), |path| path.display().to_string());
    if output_identity(path).is_some_and(|output| inputs.has(output)) {
        return Err(CommandError::Usage(format!("the output ({output_name}) is one of the inputs")));
    }
    // The reasons have been reported; an earlier output stays.
    if inputs.texts.is_empty() && diagnostics.has_damage() {
        return Ok(false);
    }
    let known = processes_in_groups(&file_groups(&paths));
    let mut recorded = recorded_processes(&known);
    let running = inputs.running.iter().map(|(process, copied)| (process.number, &copied.leftovers));
    let dead = inputs.dead.iter().map(|(process, leftovers)| (process.number, leftovers));
    for (number, leftovers) in running.chain(dead) {
        let threads = leftovers.complete_from.iter().map(|thread| thread.from);
        let lost = (leftovers.lost > 0).then_some(u64::MAX);
        recorded.entry(number).or_default().add_incompleteness(threads.chain(lost).max().unwrap_or(0));
    }
    let merge = Merge::prepare(&inputs.texts, MergeLimits::default(), diagnostics).map_err(Error::temporary)?;

    let knowledge: HashMap<u32, _, _> = recorded.iter().map(|(pid, recorded)| (*pid, recorded.knowledge)).collect();
    let mut analysis = Analysis::new(knowledge, WaitSelection { pids, lwps, objects });
    analysis.shares = format.has_stacks().then(ContentionShares::default);
    let parse = |lines: &[u8], _: OrderedSection, out: &mut Vec<u8>| NumericRecord::append_lines(lines, out);
    let parse: BatchTransform = Some(&parse);
    let mut take = |records: &[u8]| {
        NumericRecord::of_bytes(records).for_each(|record| analysis.add(&record));
        Ok(true)
    };
    merge.run_phase("analysing", 0..u64::MAX, parse, &mut take).map_err(Error::temporary)?;
    let graph = analysis.finish(&inputs.running_until());

    let mut symbols = Symbolizer::new(debug_dirs, &skip);
    symbols.aliases = aliases;
    let view = ReportView::new(&analysis, &graph, &recorded, &known, &symbols);
    let mut text = Vec::new();
    match format {
        ReportFormat::Json => append_document(&view, &mut text),
        ReportFormat::Folded => append_folded(&view, &mut text),
        ReportFormat::Pprof => append_profile(&view, &mut text),
        ReportFormat::Text => {
            let top = top.unwrap_or(if by.is_some() { usize::MAX } else { TOP });
            let paths: Vec<String> = named.paths.iter().map(|path| path.display().to_string()).collect();
            append_page(&view, &PageOptions { top, by, paths: paths.join(" ") }, &mut text);
        }
    }
    let written = Output::open_paged(path, !no_pager, diagnostics).and_then(|mut output| output.write(&text));
    written.map_err(|error| Error::new(output_name, error))?;
    Ok(!graph.deadlocks.is_empty())
}

/// The names that the user has given.
fn read_aliases(path: &Path) -> Result<Aliases, CommandError> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| CommandError::Usage(format!("{name}: {error}")))?;
    Aliases::parse(&text).map_err(|error| CommandError::Usage(format!("{name}:{error}")))
}
