//! Writes a timeline for a viewer, or a table.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use super::analysis_inputs::{AnalysisInputs, for_each_batch, output_name};
use super::print::selected_paths;
use crate::export::{
    EventSelection, NameSources, ProcessOrigin, TableExport, TablePlace, Target, TimelineExport, timeline_sink,
};
use crate::merge::{Merge, MergeLimits};
use crate::options::{CommandError, Options, OutputFormat, Printing};
use crate::output::destination::{self, Output};
use crate::output::file_groups;
use crate::report::contention::{Analysis, NumericRecord};
use crate::report::process_info::ProcessInfo;
use crate::report::runs;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::symbols::Symbolizer;
use crate::trace::hosts::{Host, HostTable};
use crate::trace::interned_names::InternedNames;

/// Bytes that are collected before they are written.
const CHUNK: usize = 256 << 10;

/// What is exported.
struct ExportInputs<'a> {
    merge: &'a Merge<'a>,
    hosts: &'a HostTable,
    /// The time of the first record.
    start: u64,
    analysis: Analysis,
    selection: EventSelection,
    sources: NameSources,
    running: Vec<(u32, u64)>,
}

/// Writes the timeline or the table that the options ask for. Returns whether it has a record: if nothing could be read, that has been
/// reported.
///
/// # Errors
/// Any failure of an output or of a temporary file.
pub fn export(options: &Options, diagnostics: &Diagnostics) -> Result<bool, CommandError> {
    let Options { printing, selection, .. } = options;
    let paths = selected_paths(options, &runs::find_runs(&options.paths), diagnostics)?;
    let path = printing.output.as_deref();
    let Some(trace) = AnalysisInputs::collect(&paths, path, diagnostics)? else { return Ok(false) };
    let failed = |error| Error::new(output_name(path), error);
    let running = trace.inputs.running_until();
    let is_table = printing.format == OutputFormat::Parquet;
    let place = is_table.then(|| table_place(printing, diagnostics)).transpose().map_err(failed)?;
    let output = if is_table { None } else { Some(Output::open(path, diagnostics).map_err(failed)?) };
    let merge = Merge::prepare(&trace.inputs.texts, MergeLimits::default(), diagnostics).map_err(Error::temporary)?;
    let start = merge.span().map_or(0, |(start, _)| start);
    let waits = EventSelection::waits(selection, start);
    let (is_all, symbols) = (waits.is_all(), Symbolizer::new(Vec::new(), &[]));
    let analysis = trace.analysis(waits);
    let selection = EventSelection::new(selection);
    let interned = InternedNames::new(file_groups(&paths));
    let sources = NameSources { recorded: trace.recorded, symbols, interned, objects: RefCell::default() };
    let inputs =
        ExportInputs { merge: &merge, hosts: &trace.inputs.hosts, start, analysis, selection, sources, running };
    let has_drawn = match (place, output) {
        (Some(place), _) => write_table(inputs, origins(&trace.known, &paths, printing.host.as_deref()), place),
        (None, Some(output)) => write_timeline(inputs, printing.format, output),
        (None, None) => Ok(true),
    };
    if !has_drawn.map_err(failed)? && !is_all && merge.span().is_some() {
        diagnostics.report_note("nothing matches", "the options leave out all that the trace has");
    }
    Ok(merge.span().is_some())
}

/// Writes a timeline. Returns whether anything selected was drawn.
fn write_timeline(inputs: ExportInputs, format: OutputFormat, mut output: Output) -> io::Result<bool> {
    let ExportInputs { merge, hosts, analysis, selection, sources, running, .. } = inputs;
    let mut export = TimelineExport::new(analysis, selection, sources, timeline_sink(format));
    let mut out = Vec::with_capacity(CHUNK);
    let mut take = |records: &[u8]| {
        NumericRecord::of_bytes(records).try_for_each(|record| export.add(&record, &mut out))?;
        if out.len() >= CHUNK {
            output.write(&out)?;
            out.clear();
        }
        Ok(())
    };
    for_each_batch(merge, hosts, "exporting", &mut take)?;
    output.write(&out)?;
    export.finish(&running, &mut |bytes| output.write(bytes))
}

/// Writes a table. Returns whether it has a row.
fn write_table(inputs: ExportInputs, origins: HashMap<u32, ProcessOrigin>, place: TablePlace) -> io::Result<bool> {
    let ExportInputs { merge, hosts, start, analysis, selection, sources, running } = inputs;
    let mut export = TableExport::new(analysis, selection, sources, origins, (place, start))?;
    let mut take = |records: &[u8]| NumericRecord::of_bytes(records).try_for_each(|record| export.add(&record));
    for_each_batch(merge, hosts, "exporting", &mut take)?;
    export.finish(&running)
}

/// Where a table goes.
fn table_place(printing: &Printing, diagnostics: &Diagnostics) -> io::Result<TablePlace> {
    let Some(path) = printing.output.as_deref() else {
        return Ok(TablePlace::File(Target::Stream(Output::open(None, diagnostics)?.into_file())));
    };
    if printing.partition {
        return Ok(TablePlace::Partitions(path.to_owned()));
    }
    if destination::is_needed_by_a_trace(path) {
        return Err(destination::needed_by_a_trace());
    }
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory: --partition makes a table of one"))
        }
        Ok(metadata) if !metadata.is_file() => {
            Ok(TablePlace::File(Target::Stream(Output::open(Some(path), diagnostics)?.into_file())))
        }
        _ => Ok(TablePlace::File(Target::Replaced(path.to_owned()))),
    }
}

/// Where each process ran, by the number by which it is known: on the host that is named, or else on that of its directory.
fn origins(known: &HashMap<u32, ProcessInfo>, paths: &[PathBuf], name: Option<&str>) -> HashMap<u32, ProcessOrigin> {
    let hosts = HostTable::of_all(paths);
    let own =
        |host: &Host, pid: u32| host.directories.iter().find_map(|(directory, _)| hosts.view(directory)?.own(pid));
    let origin = |shown: u32, process: &ProcessInfo| {
        let of_several = hosts.hosts.iter().find_map(|host| Some((&*host.name, own(host, shown)?)));
        let (host, pid) = of_several.unwrap_or((hosts.hosts.first().map_or("", |host| &host.name), shown));
        let boot = String::from_utf8_lossy(&process.system[0]).into_owned();
        ProcessOrigin { host: name.unwrap_or(host).to_owned(), boot, pid }
    };
    known.iter().map(|(pid, process)| (*pid, origin(*pid, process))).collect()
}
