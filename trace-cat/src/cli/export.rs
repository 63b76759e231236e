//! Writes a timeline for a viewer.
//!
//! ```text
//! merge ────────► channel ──► analysis ──► format ──► output
//! other threads               this thread
//! ```
//!
//! The threads that merge make numbers of the lines; this thread takes them in order, because names of code are looked up in it.

use std::cell::RefCell;
use std::io;
use std::sync::mpsc;
use std::thread;

use super::analysis_inputs::{AnalysisInputs, output_name};
use super::print::selected_paths;
use crate::export::{
    ChromeTimeline, EventSelection, NameSources, PajeTimeline, PerfettoTimeline, TimelineExport, TimelineSink,
};
use crate::merge::{BatchTransform, Merge, MergeLimits, OrderedSection};
use crate::options::{CommandError, Options, OutputFormat};
use crate::output::destination::Output;
use crate::output::file_groups;
use crate::report::contention::{Analysis, NumericRecord};
use crate::report::runs;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::symbols::Symbolizer;
use crate::trace::interned_names::InternedNames;

/// Bytes that are collected before they are written.
const CHUNK: usize = 256 << 10;
/// How many batches of records wait for the analysis at most.
const BATCHES: usize = 8;

/// Writes the timeline that the options ask for. Returns whether it was written: not if nothing could be read, which has been reported.
///
/// # Errors
/// Any failure of an output or of a temporary file.
pub fn export(options: &Options, diagnostics: &Diagnostics) -> Result<bool, CommandError> {
    let paths = selected_paths(options, &runs::find_runs(&options.paths), diagnostics)?;
    let path = options.printing.output.as_deref();
    let Some(trace) = AnalysisInputs::collect(&paths, path, diagnostics)? else { return Ok(false) };
    let failed = |error| Error::new(output_name(path), error);
    let mut output = Output::open(path, diagnostics).map_err(failed)?;
    let merge = Merge::prepare(&trace.inputs.texts, MergeLimits::default(), diagnostics).map_err(Error::temporary)?;
    let start = merge.span().map_or(0, |(start, _)| start);
    let waits = EventSelection::waits(&options.selection, start);
    let (is_all, symbols) = (waits.is_all(), Symbolizer::new(Vec::new(), &[]));
    let sink: Box<dyn TimelineSink> = match options.printing.format {
        OutputFormat::Perfetto => Box::new(PerfettoTimeline::default()),
        OutputFormat::Paje => Box::new(PajeTimeline::default()),
        _ => Box::new(ChromeTimeline::default()),
    };
    let analysis = Analysis::new(trace.knowledge(), waits);
    let selection = EventSelection::new(&options.selection);
    let (recorded, interned) = (&trace.recorded, InternedNames::new(file_groups(&paths)));
    let sources = NameSources { recorded, symbols: &symbols, interned, objects: RefCell::default() };
    let mut export = TimelineExport::new(analysis, selection, sources, sink);
    run(&merge, &mut export, &mut |bytes| output.write(bytes)).map_err(failed)?;
    let has_drawn = export.finish(&trace.inputs.running_until(), &mut |bytes| output.write(bytes)).map_err(failed)?;
    if !has_drawn && !is_all && merge.span().is_some() {
        diagnostics.report_note("nothing matches", "the options leave out all that the trace has");
    }
    Ok(true)
}

/// Gives all records to `export`, while other threads merge.
fn run(merge: &Merge, export: &mut TimelineExport, write: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    thread::scope(|scope| {
        let (sender, batches) = mpsc::sync_channel::<Vec<u8>>(BATCHES);
        let merging = scope.spawn(move || {
            let parse = |lines: &[u8], _: OrderedSection, out: &mut Vec<u8>| NumericRecord::append_lines(lines, out);
            let parse: BatchTransform = Some(&parse);
            merge.run_phase("exporting", 0..u64::MAX, parse, &mut |records| Ok(sender.send(records.to_vec()).is_ok()))
        });
        let mut out = Vec::with_capacity(CHUNK);
        let take_all = || {
            for batch in batches {
                for record in NumericRecord::of_bytes(&batch) {
                    export.add(&record, &mut out)?;
                }
                if out.len() >= CHUNK {
                    write(&out)?;
                    out.clear();
                }
            }
            write(&out)
        };
        let taken = take_all();
        let merged = merging.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken.and(merged)
    })
}
