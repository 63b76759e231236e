//! Merges the inputs by printed time, whatever their number and whatever the order within them.
//!
//! ```text
//! trace::scan ──► slice_plan ──► slice_loader ──► loser_tree ──► ordered_output
//! index           slices         a slice          its records    the slices in order
//! ```
//!
//! `ordered_section` lets threads do work in the order of the slices before that.
//!
//! Every text is read once from end to end, to find which times are where and what is damaged: only then is the first record
//! known. The index divides time into slices that fit the processor's cache. Threads take slices one after the other, load
//! what the inputs have of them, sort what is not in order, merge, and give the result to `ordered_output`.
//!
//! Three cases need more than that:
//!
//! - A text in no order at all would have to be read completely for each slice. It is sorted into a `temporary_text` first.
//! - Many inputs may all have records in each slice. They are merged into fewer inputs first.
//! - There may be more records of one time than memory holds. `equal_times` streams them.

mod equal_times;
mod input;
mod limits;
mod loser_tree;
mod ordered_output;
mod ordered_section;
mod slice_loader;
mod slice_plan;
mod sort_keys;
mod temporary_text;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use log::info;

use crate::record::call_stack::count_records;
use crate::record::columns;
use crate::support::diagnostics::Diagnostics;
use crate::support::progress::{Amount, Phase};
use crate::support::threads::run_on_threads;
use crate::trace::record_text::RecordText;
use crate::trace::scan::{ScanLimits, scan};

use input::MergeInput;
pub use limits::MergeLimits;
use loser_tree::LineBuffer;
use ordered_output::{LineConsumer, OrderedOutput};
pub use ordered_section::OrderedSection;
use ordered_section::OrderedSections;
use slice_loader::SliceRecords;
use slice_plan::{SlicePlan, bounds, slices_of};
use sort_keys::StampTable;
use temporary_text::TemporaryText;

/// Texts that are ready to be merged.
pub struct Merge<'a> {
    inputs: Vec<MergeInput>,
    plan: SlicePlan,
    limits: MergeLimits,
    stamps: StampTable,
    /// The output is read again, as an input. What is no record in it would be reported as damage of a temporary text, which
    /// no user has.
    makes_input: bool,
    /// The records that name a thread, in the order of time, if the limits want them.
    pub name_lines: Vec<Box<[u8]>>,
    diagnostics: &'a Diagnostics,
}

/// Makes output from merged lines, in any thread; `None` outputs the lines themselves. Work that depends on earlier lines is
/// done in an [`OrderedSection`].
pub type BatchTransform<'a> = Option<&'a (dyn Fn(&[u8], OrderedSection, &mut Vec<u8>) + Sync)>;

impl<'a> Merge<'a> {
    /// Reads every text once and reports what is damaged. What can be read of a damaged text is merged.
    pub fn prepare(
        texts: &[Arc<RecordText>],
        limits: MergeLimits,
        diagnostics: &'a Diagnostics,
    ) -> io::Result<Merge<'a>> {
        let mut merge = Merge::scan(texts, limits, diagnostics);
        merge.sort_unordered_inputs()?;
        merge.merge_groups()?;
        Ok(merge)
    }

    fn scan(texts: &[Arc<RecordText>], mut limits: MergeLimits, diagnostics: &'a Diagnostics) -> Merge<'a> {
        let total: u64 = texts.iter().map(|text| text.size(0..text.end())).sum();
        limits.block = limits.block.max((total / limits.blocks_max).next_multiple_of(4096));
        limits.slice_per_input = limits.slice_per_input.max(8 * limits.block);
        let mut indexes = scan(texts, scan_limits(&limits), diagnostics);
        // Temporary texts have the same records.
        limits.collects_names = false;
        let mut name_lines: Vec<_> =
            indexes.iter_mut().flat_map(|index| std::mem::take(&mut index.name_lines)).collect();
        name_lines.sort_by_key(|line| columns::time(line));
        let inputs = texts.iter().cloned().zip(indexes).filter(|(_, index)| index.span().is_some());
        let inputs = inputs.map(|(text, index)| MergeInput::new(text, index));
        let mut merge = Merge {
            inputs: inputs.collect(),
            plan: SlicePlan::new(&[], Vec::new()),
            limits,
            stamps: StampTable::new(),
            makes_input: false,
            name_lines,
            diagnostics,
        };
        merge.plan_slices();
        merge
    }

    fn plan_slices(&mut self) {
        let bounds = bounds(&self.inputs, &self.limits);
        self.plan = SlicePlan::new(&self.inputs, bounds);
    }

    /// The times of the first and of the last record.
    pub fn span(&self) -> Option<(u64, u64)> {
        let slices = self.plan.slices();
        (slices > 0).then(|| (self.plan.times(0).start, self.plan.times(slices - 1).end - 1))
    }

    fn total_size(&self) -> u64 {
        self.inputs.iter().map(MergeInput::size).sum()
    }

    /// Sorts inputs whose blocks belong to so many slices that each block would be read again and again.
    fn sort_unordered_inputs(&mut self) -> io::Result<()> {
        let slices = 0..self.plan.slices();
        let starts: Vec<u64> = slices.map(|slice| self.plan.times(slice).start).chain([u64::MAX]).collect();
        let mut sorted = None;
        for number in 0..self.inputs.len() {
            let input = &self.inputs[number];
            if input.index.ordered || input.size() <= self.limits.slice_max / 2 {
                continue;
            }
            let blocks = &input.index.blocks;
            let visits: usize = blocks.iter().map(|block| slices_of(&starts, Some((block.min, block.max))).len()).sum();
            if visits as u64 * self.limits.block <= 4 * input.size() + self.limits.reread_max {
                continue;
            }
            let sorted = match &mut sorted {
                Some(sorted) => sorted,
                none => none.insert(TemporaryText::new()?),
            };
            sorted.push_sorted(&input.text, 0..input.index.end, self.limits.sorted_run, self.diagnostics)?;
            self.inputs[number] = self.temporary_input(sorted.end_text()?);
        }
        if sorted.is_some() {
            self.plan_slices();
        }
        Ok(())
    }

    /// Merges groups of inputs if each of many slices would have to be read from each of many inputs.
    fn merge_groups(&mut self) -> io::Result<()> {
        let total = self.total_size();
        let slices = 0..self.plan.slices();
        let visits: usize = slices.clone().map(|slice| self.plan.inputs(slice).len()).sum();
        if slices.len() <= 2 || visits as u64 * self.limits.visit_cost <= 4 * total + self.limits.reread_max {
            return Ok(());
        }
        info!("{} files are too many for each of {} slices", self.inputs.len(), slices.len());
        let count = self.inputs.len();
        let mut merged = TemporaryText::new()?;
        let phase = self.diagnostics.start_phase("merging groups of files", Amount::Bytes(total));
        let mut texts = Vec::new();
        self.makes_input = true;
        let mut inputs = std::mem::take(&mut self.inputs).into_iter().peekable();
        while inputs.peek().is_some() {
            let (mut group, mut size) = (Vec::new(), 0);
            while let Some(input) =
                inputs.next_if(|input| group.len() < 2 || size + input.size() <= self.limits.slice_max)
            {
                size += input.size();
                group.push(input);
            }
            self.inputs = group;
            self.plan_slices();
            self.run(0..u64::MAX, None, &mut |lines| {
                phase.advance(lines.len() as u64);
                merged.push(lines).map(|()| true)
            })?;
            texts.push(merged.end_text()?);
        }
        drop(phase);
        self.makes_input = false;
        let is_worth_repeating = texts.len() <= count / 2;
        self.inputs = texts.into_iter().map(|text| self.temporary_input(text)).collect();
        self.plan_slices();
        if is_worth_repeating { self.merge_groups() } else { Ok(()) }
    }

    fn temporary_input(&self, text: Arc<RecordText>) -> MergeInput {
        let index = scan(std::slice::from_ref(&text), scan_limits(&self.limits), self.diagnostics).pop();
        MergeInput::new(text, index.unwrap_or_default())
    }

    /// Merges the records of `times` and gives the output to `take`, in order, many lines at a time.
    pub fn run(&self, times: Range<u64>, transform: BatchTransform, take: &mut LineConsumer) -> io::Result<()> {
        self.run_phase("merging", times, transform, take)
    }

    /// As [`run`](Merge::run), with the phase that progress shows.
    pub fn run_phase(
        &self,
        phase: &'static str,
        times: Range<u64>,
        transform: BatchTransform,
        take: &mut LineConsumer,
    ) -> io::Result<()> {
        let slices = self.plan.find(&times);
        let (phase, slice_size) = self.start_phase(phase, slices.len());
        let next = AtomicUsize::new(slices.start);
        let output = OrderedOutput::new(slices.start, self.limits.waiting_max, take);
        let sections = OrderedSections::new(slices.start);
        let transformer = BatchTransformer { transform, sections: Some(&sections) };
        let worker = || {
            let mut memory = WorkerMemory::default();
            let mut out = LineBuffer::default();
            while !output.is_over() {
                let slice = next.fetch_add(1, Ordering::Relaxed);
                if slice >= slices.end {
                    break;
                }
                let mut push = |out: &mut LineBuffer| output.push(slice, out);
                self.merge_slice(slice, &times, &mut memory, transformer, &mut out, &mut push);
                sections.leave(slice);
                out = output.finish(slice, std::mem::take(&mut out));
                phase.advance(slice_size);
            }
        };
        run_on_threads(self.limits.threads.min(slices.len()), worker);
        output.into_result()
    }

    /// Finds the last `wanted` records of the output of `times`: the start of the slice that they begin in or after, and how
    /// many records of the output of that slice and the later ones are before them. Stacks do not count.
    pub fn find_last_lines(&self, times: Range<u64>, transform: BatchTransform, wanted: u64) -> (u64, u64) {
        let mut memory = WorkerMemory::default();
        let mut out = LineBuffer::default();
        let mut lines = 0;
        let mut start = times.start;
        let slices = self.plan.find(&times);
        let (phase, slice_size) = self.start_phase("finding the last records", slices.len());
        for slice in slices.rev() {
            let mut count = |out: &mut LineBuffer| {
                lines += count_records(out.filled());
                out.clear();
            };
            let transformer = BatchTransformer { transform, sections: None };
            self.merge_slice(slice, &times, &mut memory, transformer, &mut out, &mut count);
            count(&mut out);
            phase.advance(slice_size);
            if lines >= wanted {
                start = start.max(self.plan.times(slice).start);
                break;
            }
        }
        (start, lines.saturating_sub(wanted))
    }

    /// Starts a phase of `slices` slices; returns it with the size of a slice, which is about the same for all.
    fn start_phase(&self, name: &'static str, slices: usize) -> (Phase<'_>, u64) {
        let slice_size = self.total_size() / self.plan.slices().max(1) as u64;
        (self.diagnostics.start_phase(name, Amount::Bytes(slice_size * slices as u64)), slice_size)
    }

    /// Merges what a slice has of `times` and appends the output to `out`. Calls `push`, which empties `out`, when there is
    /// much.
    fn merge_slice(
        &self,
        slice: usize,
        times: &Range<u64>,
        memory: &mut WorkerMemory,
        transformer: BatchTransformer,
        out: &mut LineBuffer,
        push: &mut dyn FnMut(&mut LineBuffer),
    ) {
        let slice_times = self.plan.times(slice);
        let times = slice_times.start.max(times.start)..slice_times.end.min(times.end);
        let numbers = self.plan.inputs(slice);
        // The times that are still to be merged, the earliest last.
        let mut pending = vec![times];
        while let Some(times) = pending.pop() {
            if times.is_empty() {
                continue;
            }
            if memory.records.load(&self.inputs, numbers, &times, self.limits.slice_max, self.diagnostics).is_ok() {
                if self.makes_input {
                    self.report_changed(memory.records.remove_invalid_lines());
                }
                self.merge_loaded(&times, memory, transformer.transform.is_some(), out);
                transformer.transform(&mut memory.merged, slice, pending.is_empty(), out);
            } else if times.end - times.start > 1 {
                let middle = times.start + (times.end - times.start) / 2;
                pending.extend([middle..times.end, times.start..middle]);
            } else {
                let mut push_batch = |batch: &mut LineBuffer| {
                    transformer.transform(batch, slice, false, out);
                    push(out);
                };
                equal_times::stream(
                    &self.inputs,
                    numbers,
                    times.start,
                    &self.stamps,
                    &mut memory.merged,
                    &mut push_batch,
                    self.diagnostics,
                );
            }
            if out.filled().len() as u64 > self.limits.slice_max {
                push(out);
            }
        }
    }

    /// Merges the loaded records into `memory.merged` if they are transformed, else into `out`.
    fn merge_loaded(&self, times: &Range<u64>, memory: &mut WorkerMemory, is_transformed: bool, out: &mut LineBuffer) {
        let WorkerMemory { records, merged } = memory;
        let merged = if is_transformed { merged } else { out };
        let invalid_lines = loser_tree::merge(&records.bytes, &records.streams, times.clone(), &self.stamps, merged);
        if invalid_lines > 0 {
            self.report_changed(records.invalid_inputs(times));
        }
    }

    fn report_changed(&self, inputs: impl IntoIterator<Item = u32>) {
        for number in inputs {
            self.inputs[number as usize].fail(&io::Error::other("changed while being read"), self.diagnostics);
        }
    }
}

fn scan_limits(limits: &MergeLimits) -> ScanLimits {
    let MergeLimits { threads, scan_chunk, block, collects_names, .. } = *limits;
    ScanLimits { threads, chunk: scan_chunk, buffer: 256 << 10, block, collects_names }
}

/// Makes the output of merged lines.
#[derive(Clone, Copy)]
struct BatchTransformer<'a> {
    transform: BatchTransform<'a>,
    sections: Option<&'a OrderedSections>,
}

impl BatchTransformer<'_> {
    /// Appends the output of `merged`, lines of a slice, to `out` and empties `merged`. `is_last`: the slice has no lines after
    /// these.
    fn transform(self, merged: &mut LineBuffer, slice: usize, is_last: bool, out: &mut LineBuffer) {
        let section =
            self.sections.map_or(OrderedSection::UNORDERED, |sections| OrderedSection::new(sections, slice, is_last));
        match self.transform {
            Some(transform) => out.append(|out| transform(merged.filled(), section, out)),
            None => out.push(merged.filled()),
        }
        merged.clear();
    }
}

#[derive(Default)]
struct WorkerMemory {
    records: SliceRecords,
    /// Merged lines that are not transformed yet.
    merged: LineBuffer,
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
pub mod tests;
