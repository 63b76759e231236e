//! What the report and timelines are made of, besides the records: the processes, as their files describe them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::options::CommandError;
use crate::output::destination::output_identity;
use crate::output::file_groups;
use crate::report::contention::Knowledge;
use crate::report::process_info::{ProcessInfo, processes_in_groups};
use crate::report::recorded_process::{RecordedProcess, recorded_processes};
use crate::support::diagnostics::Diagnostics;
use crate::trace::file_handle::DescriptorBudget;
use crate::trace::inputs::{self, TraceInputs};

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
        let inputs = inputs::collect(paths, &DescriptorBudget::half_of_the_limit(), diagnostics);
        if output_identity(output).is_some_and(|output| inputs.has(output)) {
            return Err(CommandError::Usage(format!("the output ({}) is one of the inputs", output_name(output))));
        }
        if inputs.texts.is_empty() && diagnostics.has_damage() {
            return Ok(None);
        }
        let known = processes_in_groups(&file_groups(paths));
        let mut recorded = recorded_processes(&known);
        let running = inputs.running.iter().map(|(process, copied)| (process.number, &copied.leftovers));
        let dead = inputs.dead.iter().map(|(process, leftovers)| (process.number, leftovers));
        for (number, leftovers) in running.chain(dead) {
            let threads = leftovers.complete_from.iter().map(|thread| thread.from);
            let lost = (leftovers.lost > 0).then_some(u64::MAX);
            recorded.entry(number).or_default().add_incompleteness(threads.chain(lost).max().unwrap_or(0));
        }
        Ok(Some(AnalysisInputs { inputs, recorded, known }))
    }

    /// What is known of each process before its first record.
    pub fn knowledge(&self) -> HashMap<u32, Knowledge> {
        self.recorded.iter().map(|(pid, recorded)| (*pid, recorded.knowledge)).collect()
    }
}

pub fn output_name(path: Option<&Path>) -> String {
    path.map_or("standard output".to_owned(), |path| path.display().to_string())
}
