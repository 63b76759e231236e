//! `trace-cat report`.

use std::collections::HashMap;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};

use super::analysis_inputs::{AnalysisInputs, for_each_batch, output_name};
use super::print::selected_paths;
use crate::merge::{Merge, MergeLimits};
use crate::options::{CommandError, FailCondition, Options, ReportObject, ReportOptions, RunChoice};
use crate::output::destination::Output;
use crate::report::contention::{
    Analysis, AnalysisParts, ContentionShares, Moment, NumericRecord, WaitGraph, WaitSelection,
};
use crate::report::page::{ReportView, write_report};
use crate::report::process_info::ProcessInfo;
use crate::report::recorded_process::RecordedProcess;
use crate::report::runs;
use crate::report::trace_names::answer_questions;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::symbols::{Aliases, Symbolizer};

/// What a report found that is an exit status of its own.
#[derive(Clone, Debug, Default)]
pub struct ReportOutcome {
    pub has_deadlock: bool,
    /// A condition of --fail-if holds.
    pub is_exceeded: bool,
    /// The conditions whose figures are not known, with the reasons.
    pub unknown: Vec<String>,
}

/// Prints a report.
///
/// # Errors
/// Any failure of the output or of a temporary file.
pub fn report(options: ReportOptions, diagnostics: &Diagnostics) -> Result<ReportOutcome, CommandError> {
    options.check_format(io::stdout().is_terminal())?;
    let path = options.output.as_deref();
    let mut output = None;
    let write = |text: &[u8]| {
        let opened = match output.take() {
            Some(opened) => opened,
            None => Output::open_paged(path, !options.no_pager, diagnostics)?,
        };
        output.insert(opened).write(text)
    };
    report_with(&options, write, diagnostics)
}

/// Prints the page of a program's run to stderr, or to the file that the options name.
///
/// # Errors
/// As [`report`].
pub fn report_run(options: &ReportOptions, diagnostics: &Diagnostics) -> Result<ReportOutcome, CommandError> {
    let mut output = None;
    let write = |text: &[u8]| match options.output.as_deref() {
        Some(path) => {
            let opened = match output.take() {
                Some(opened) => opened,
                None => Output::open(Some(path), diagnostics)?,
            };
            output.insert(opened).write(text)
        }
        None => diagnostics.without_progress(|| io::stderr().write_all(text)),
    };
    report_with(options, write, diagnostics)
}

fn report_with(
    options: &ReportOptions,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
    diagnostics: &Diagnostics,
) -> Result<ReportOutcome, CommandError> {
    let symbols = symbolizer(options)?;
    let read = |options: &ReportOptions, parts| AnalysedTrace::read_objects(options, parts, &symbols, diagnostics);
    let Some(trace) = read(options, AnalysisParts::of_report(options))? else { return Ok(ReportOutcome::default()) };
    let mut view = trace.view(&symbols);
    if let Some(old) = &options.against {
        let paths = vec![old.clone()];
        let options = ReportOptions { paths, runs: RunChoice::default(), ..options.clone() };
        let Some(old) = read(&options, AnalysisParts::COMPARED)? else { return Ok(ReportOutcome::default()) };
        view.compare_with(&old.view(&symbols));
    }
    write_report(&view, options, &mut write)
        .map_err(|error| Error::new(output_name(options.output.as_deref()), error))?;
    let has_deadlock = !trace.graph.deadlocks.is_empty();
    Ok(ReportOutcome { has_deadlock, ..check_limits(&view, &options.fail_if, diagnostics) })
}

/// Reports the conditions of --fail-if that hold; returns whether one does, and which figures are not known.
fn check_limits(view: &ReportView, conditions: &[FailCondition], diagnostics: &Diagnostics) -> ReportOutcome {
    let mut outcome = ReportOutcome::default();
    for condition in conditions {
        match view.exceeded(condition) {
            Ok(None) => {}
            Ok(Some(message)) => {
                outcome.is_exceeded = true;
                diagnostics.report_note("--fail-if", message);
            }
            Err(message) => outcome.unknown.push(message),
        }
    }
    outcome
}

/// A trace that has been read and analysed.
struct AnalysedTrace {
    analysis: Analysis,
    graph: WaitGraph,
    /// By process ID.
    recorded: HashMap<u32, RecordedProcess>,
    known: HashMap<u32, ProcessInfo>,
}

impl AnalysedTrace {
    /// Reads the trace that the options name, and before that all its objects, if the options select some by name. `None` if nothing
    /// could be read, which has been reported: an earlier output stays.
    fn read_objects(
        options: &ReportOptions,
        parts: AnalysisParts,
        symbols: &Symbolizer,
        diagnostics: &Diagnostics,
    ) -> Result<Option<AnalysedTrace>, CommandError> {
        let (mut addresses, mut names) = (Vec::new(), Vec::new());
        for object in &options.objects {
            match object {
                ReportObject::Address(address) => addresses.push(*address),
                ReportObject::Name(name) => names.push(name),
            }
        }
        if !names.is_empty() {
            let all = AnalysedTrace::read(options, AnalysisParts::NONE, Vec::new(), symbols, diagnostics)?;
            let Some(all) = all else { return Ok(None) };
            let view = all.view(symbols);
            for name in names {
                let found = view.address_of(name);
                addresses.push(found.map_err(|problem| CommandError::Usage(format!("--object '{name}': {problem}")))?);
            }
        }
        AnalysedTrace::read(options, parts, addresses, symbols, diagnostics)
    }

    /// Reads the trace, for a report on all its objects or those at these addresses.
    fn read(
        options: &ReportOptions,
        parts: AnalysisParts,
        objects: Vec<u64>,
        symbols: &Symbolizer,
        diagnostics: &Diagnostics,
    ) -> Result<Option<AnalysedTrace>, CommandError> {
        let ReportOptions { paths, runs, .. } = options.clone();
        let named = Options { paths, runs, ..Options::default() };
        let paths = selected_paths(&named, &runs::find_runs(&named.paths), diagnostics)?;
        let output = options.output.as_deref();
        let Some(trace) = AnalysisInputs::collect(&paths, output, diagnostics)? else { return Ok(None) };
        // Batches wait for the analysis, too.
        let limits = MergeLimits { waiting_max: 8 << 20, ..MergeLimits::default() };
        let merge = Merge::prepare(&trace.inputs.texts, limits, diagnostics).map_err(Error::temporary)?;

        let start = merge.span().map_or(0, |(start, _)| start);
        let selection = WaitSelection { objects, ..selection(options, start) };
        let mut analysis = trace.analysis(selection);
        analysis.limit_to(parts);
        analysis.shares = options.format.has_stacks().then(ContentionShares::default);
        let at = options.at.map(|at| at.resolve(start));
        let mut moment = Moment::new(at, trace.inputs.complete_until());
        let mut take = |records: &[u8]| {
            let mut records = NumericRecord::of_bytes(records).peekable();
            while let Some(record) = records.next() {
                if let Some(moment) = &mut moment {
                    moment.pass(&mut analysis, &record);
                }
                match records.peek().is_some_and(|returned| analysis.add_immediate_lock(&record, returned)) {
                    true => drop(records.next()),
                    false => analysis.add(&record),
                }
                answer_questions(&mut analysis, &trace.recorded, symbols);
            }
            Ok(())
        };
        for_each_batch(&merge, &trace.inputs.hosts, "analysing", &mut take).map_err(Error::temporary)?;
        // What follows needs memory of its own.
        drop(merge);
        trace.add_losses(&mut analysis);
        let graph = analysis.finish(&trace.inputs.running_until());
        let graph = match moment {
            Some(moment) => moment.graph(graph, &analysis),
            None => graph,
        };
        analysis.find_critical_paths().map_err(Error::temporary)?;
        let has_no_waits = analysis.threads.iter().all(|thread| thread.waits == 0);
        if has_no_waits && !analysis.selection.is_all() && analysis.span.is_some() {
            diagnostics.report_note("no wait matches", "the options leave out all that the trace has");
        }
        let AnalysisInputs { recorded, known, .. } = trace;
        Ok(Some(AnalysedTrace { analysis, graph, recorded, known }))
    }

    fn view<'a>(&'a self, symbols: &'a Symbolizer) -> ReportView<'a> {
        ReportView::new(&self.analysis, &self.graph, &self.recorded, &self.known, symbols)
    }
}

/// What the options select of a trace whose first record is at `start`.
fn selection(options: &ReportOptions, start: u64) -> WaitSelection {
    let since = options.since.map_or(0, |since| since.resolve(start));
    let until = options.until.map_or(u64::MAX, |until| until.resolve(start));
    WaitSelection {
        pids: options.pids.clone(),
        lwps: options.lwps.clone(),
        objects: Vec::new(),
        kinds: options.events.as_ref().map(WaitSelection::kinds_of),
        only_contention: options.only_contention,
        times: since..until,
    }
}

/// The source of names that the options ask for.
fn symbolizer(options: &ReportOptions) -> Result<Symbolizer, CommandError> {
    let mut symbols = Symbolizer::new(options.debug_dirs.clone(), &options.skip);
    if let Some(path) = &options.alias {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| CommandError::Usage(format!("{name}: {error}")))?;
        symbols.aliases = Aliases::parse(&text).map_err(|error| CommandError::Usage(format!("{name}:{error}")))?;
    }
    Ok(symbols)
}
