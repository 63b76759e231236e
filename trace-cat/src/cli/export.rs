//! Writes a timeline for a viewer.

use std::cell::RefCell;

use super::analysis_inputs::{AnalysisInputs, for_each_batch, output_name};
use super::print::selected_paths;
use crate::export::{EventSelection, NameSources, TimelineExport, timeline_sink};
use crate::merge::{Merge, MergeLimits};
use crate::options::{CommandError, Options};
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
    let analysis = Analysis::new(trace.knowledge(), waits);
    let selection = EventSelection::new(&options.selection);
    let interned = InternedNames::new(file_groups(&paths));
    let sources = NameSources { recorded: trace.recorded, symbols, interned, objects: RefCell::default() };
    let sink = timeline_sink(options.printing.format);
    let mut export = TimelineExport::new(analysis, selection, sources, sink);
    let mut out = Vec::with_capacity(CHUNK);
    let mut take = |records: &[u8]| {
        NumericRecord::of_bytes(records).try_for_each(|record| export.add(&record, &mut out))?;
        if out.len() >= CHUNK {
            output.write(&out)?;
            out.clear();
        }
        Ok(())
    };
    for_each_batch(&merge, &trace.inputs.hosts, "exporting", &mut take).map_err(failed)?;
    output.write(&out).map_err(failed)?;
    let has_drawn = export.finish(&trace.inputs.running_until(), &mut |bytes| output.write(bytes)).map_err(failed)?;
    if !has_drawn && !is_all && merge.span().is_some() {
        diagnostics.report_note("nothing matches", "the options leave out all that the trace has");
    }
    Ok(true)
}
