//! What the report and timelines are made of: the processes, as their files describe them, and the records.
//!
//! ```text
//! merge ────────► channel ──► analysis
//! other threads               this thread
//! ```
//!
//! The threads that merge make numbers of the lines; this thread takes them in order, because names of code are looked up in it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use crate::merge::{BatchTransform, Merge, OrderedSection};
use crate::options::CommandError;
use crate::output::destination::output_identity;
use crate::output::file_groups;
use crate::report::contention::{Analysis, MissingNewest, NumericRecord, WaitSelection};
use crate::report::process_info::{ProcessInfo, processes_in_groups};
use crate::report::recorded_process::{RecordedProcess, recorded_processes};
use crate::support::diagnostics::Diagnostics;
use crate::trace::file_handle::DescriptorBudget;
use crate::trace::hosts::HostTable;
use crate::trace::inputs::{self, TraceInputs};

/// How many batches of records wait for the analysis at most, and how many records a batch has: 1.1 MiB. A slice of a large trace is
/// several of them. As one, what waits would be as many slices.
const BATCHES: usize = 2;
const BATCH_RECORDS: usize = 1 << 14;

/// The files of a trace, and its processes.
pub struct AnalysisInputs {
    pub inputs: TraceInputs,
    /// By process ID.
    pub recorded: HashMap<u32, RecordedProcess>,
    pub known: HashMap<u32, ProcessInfo>,
}

impl AnalysisInputs {
    /// Collects what `paths` stand for. `None` if nothing could be read, which has been reported: an earlier output stays.
    ///
    /// # Errors
    /// The output is one of the inputs.
    pub fn collect(
        paths: &[PathBuf],
        output: Option<&Path>,
        diagnostics: &Diagnostics,
    ) -> Result<Option<AnalysisInputs>, CommandError> {
        let inputs = inputs::collect(paths, &DescriptorBudget::from_limit(), diagnostics);
        if output_identity(output).is_some_and(|output| inputs.has(output)) {
            return Err(CommandError::Usage(format!("the output ({}) is one of the inputs", output_name(output))));
        }
        if inputs.texts.is_empty() && diagnostics.has_damage() {
            return Ok(None);
        }
        let known = processes_in_groups(&file_groups(paths));
        let mut recorded = recorded_processes(&known);
        let running = inputs.running.iter().map(|(process, copied)| (process, &copied.leftovers));
        let dead = inputs.dead.iter().map(|(process, leftovers)| (process, leftovers));
        for (process, leftovers) in running.chain(dead) {
            let host = inputs.hosts.view(&process.directory);
            // The file of a child in a sandbox has another number.
            let pid = host.as_ref().map_or(leftovers.pid, |host| host.shown(leftovers.pid));
            let time = |time: u64| host.as_ref().map_or(time, |host| host.time(time));
            let threads = leftovers.complete_from.iter().map(|thread| time(thread.from));
            let lost = (leftovers.lost > 0 || leftovers.has_own_memory).then_some(u64::MAX);
            let recorded = recorded.entry(pid).or_insert_with(RecordedProcess::without_info);
            recorded.add_incompleteness(threads.chain(lost).max().unwrap_or(0));
            recorded.add_reused_rings(leftovers.reused_rings);
            // Each record may be written at once; or only what its threads needed later found no room in the file.
            recorded.has_own_memory = leftovers.has_own_memory;
        }
        Ok(Some(AnalysisInputs { inputs, recorded, known }))
    }

    /// Tells an analysis of all records which others are missing.
    pub fn add_losses(&self, analysis: &mut Analysis) {
        analysis.add_unreported_losses(&self.inputs.unreported_losses());
        let by_info = self.known.iter().map(|(pid, process)| (*pid, process.lost));
        by_info.chain(self.inputs.losses_in_all()).for_each(|(pid, lost)| analysis.raise_losses(pid, lost));
        analysis.note_buffers(self.inputs.with_buffers());
        let by_buffers = self.inputs.missing_newest();
        // Their trbuf is not there any more: only an end by itself writes all.
        let without_buffers = self.recorded.iter().filter(|(pid, recorded)| {
            let has_buffers = by_buffers.iter().any(|(known, _)| known == *pid);
            recorded.has_own_memory && recorded.has_ends() && !has_buffers
        });
        let all = without_buffers.map(|(pid, _)| (*pid, None)).chain(by_buffers.iter().cloned());
        let missing: Vec<MissingNewest> = all.map(|(pid, threads)| MissingNewest { pid, threads }).collect();
        analysis.lose_newest(&missing);
    }

    /// An analysis that knows of each process before its first record what its trinfo shows.
    pub fn analysis(&self, selection: WaitSelection) -> Analysis {
        let knowledge = self.recorded.iter().map(|(pid, recorded)| (*pid, recorded.knowledge));
        let mut analysis = Analysis::new(knowledge.collect(), selection);
        analysis.knowledge_of_others = RecordedProcess::without_info().knowledge;
        let programs = self.recorded.iter().map(|(pid, recorded)| (*pid, recorded.code_of_programs()));
        programs.for_each(|(pid, programs)| analysis.know_code(pid, programs));
        analysis
    }
}

/// Gives all records to `take` in order, while other threads merge.
///
/// # Errors
/// The failure of a temporary file, and those of `take`.
pub fn for_each_batch(
    merge: &Merge,
    hosts: &HostTable,
    phase: &'static str,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    thread::scope(|scope| {
        let (sender, batches) = mpsc::sync_channel::<Vec<u8>>(BATCHES);
        // The memory of a batch is used again: new pages for each would cost more than its bytes.
        let (giver_back, spare) = mpsc::channel::<Vec<u8>>();
        let merging = scope.spawn(move || {
            let parse = |lines: &[u8], _: OrderedSection, out: &mut Vec<u8>| {
                let start = out.len();
                NumericRecord::append_lines(lines, out);
                if hosts.is_multiple() {
                    NumericRecord::change(&mut out[start..], |record| record.show_processes(hosts));
                }
            };
            let parse: BatchTransform = Some(&parse);
            merge.run_phase(phase, 0..u64::MAX, parse, &mut move |records| {
                let is_taken = |records: &[u8]| {
                    let mut batch = spare.try_recv().unwrap_or_default();
                    batch.clear();
                    batch.reserve_exact(records.len());
                    batch.extend_from_slice(records);
                    sender.send(batch).is_ok()
                };
                Ok(NumericRecord::batches(records, BATCH_RECORDS).all(is_taken))
            })
        });
        let taken = batches.into_iter().try_for_each(|batch| {
            take(&batch)?;
            // Nobody needs it after the last one.
            let _ = giver_back.send(batch);
            Ok(())
        });
        let merged = merging.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken.and(merged)
    })
}

pub fn output_name(path: Option<&Path>) -> String {
    path.map_or("standard output".to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::diagnostics::tests::recorded_diagnostics;

    /// Merged into a file elsewhere, or without the trinfo.
    #[test]
    fn records_without_their_trinfo_do_not_show_what_was_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let text = "0000000001:000000005:0000001:0000001:0x00000000000a:01:16:0:0:0:0:0:0\n";
        std::fs::create_dir(path("elsewhere")).unwrap();
        for name in ["tr.0000001.001", "merged", "elsewhere/merged"] {
            std::fs::write(path(name), text).unwrap();
        }
        let lacks = |path: PathBuf| {
            let trace = AnalysisInputs::collect(&[path], None, &recorded_diagnostics().0).unwrap().unwrap();
            let mut analysis = trace.analysis(WaitSelection::default());
            analysis.add(&NumericRecord::parse(text.as_bytes()).unwrap());
            analysis.processes[0].knowledge.lacks_settings
        };
        assert!(lacks(directory.path().to_owned()));
        std::fs::write(path("trinfo.0000001"), "lost 7\nuncounted 7\n").unwrap();
        assert!(lacks(directory.path().to_owned()), "a recovery has made it");
        std::fs::write(path("trinfo.0000001"), "format 1\npid 1\nlevel all\n").unwrap();
        assert!(!lacks(directory.path().to_owned()));
        assert!(!lacks(path("merged")));
        assert!(lacks(path("elsewhere/merged")));
    }

    /// The trbuf of a process that was killed has been recovered, or was not copied along.
    #[test]
    fn the_newest_records_of_a_process_may_be_missing_although_its_trbuf_is() {
        let lacks = |info: &str, last: &str| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().to_owned();
            let text = format!("0000000001:000000005:0000001:0000001:0x00000000000a:{last}:0:0:0:0:0\n");
            std::fs::write(path.join("trinfo.0000001"), format!("format 1\npid 1\n{info}")).unwrap();
            std::fs::write(path.join("tr.0000001.001"), &text).unwrap();
            let trace = AnalysisInputs::collect(&[path], None, &recorded_diagnostics().0).unwrap().unwrap();
            let mut analysis = trace.analysis(WaitSelection::default());
            analysis.add(&NumericRecord::parse(text.as_bytes()).unwrap());
            trace.add_losses(&mut analysis);
            analysis.processes[0].lacks_newest
        };
        assert!(lacks("buffer anonymous\nevents all\n", "01:16:0"));
        assert!(!lacks("buffer shared\nevents all\n", "01:16:0"));
        assert!(!lacks("buffer anonymous\nevents all\n", "11:04:0"), "it has ended by itself");
        assert!(!lacks("buffer anonymous\nevents mutex\n", "02:04:0"), "ends have no record");
    }
}
