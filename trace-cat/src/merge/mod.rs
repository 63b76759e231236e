//! Merges the inputs by printed time, whatever their number and whatever the order within them.
//!
//! ```text
//! trace::scan ──► slice_plan ──► slice_loader ──► loser_tree ──► ordered_output
//! index           slices         a slice          its records    the slices in order
//! ```
//!
//! `ordered_section` is for what has to be done in order before that.
//!
//! Every text is read once from end to end, to find which times are where and what is damaged: only then is the first record
//! known. The index divides time into slices that fit the processor's cache. Threads take slices one after the other, load
//! what the inputs have of them, sort what is not in order, merge, and give the result to `ordered_output`.
//!
//! Three cases do not fit that, and are handled before or within it: a text in no order at all, of which each slice would have
//! to read all (it is sorted into a `temporary_text`), many inputs that all have something in each slice (they are merged into
//! fewer), and more records of one and the same time than there is memory (`equal_times`).

mod equal_times;
pub mod input;
mod limits;
mod loser_tree;
mod ordered_output;
mod ordered_section;
mod slice_loader;
mod slice_plan;
pub mod sort_keys;
mod temporary_text;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use log::info;

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

/// What is to be merged, and how.
pub struct Merge<'a> {
    inputs: Vec<MergeInput>,
    plan: SlicePlan,
    limits: MergeLimits,
    stamps: StampTable,
    diagnostics: &'a Diagnostics,
}

/// What becomes of the merged lines of a slice before they are handed over, in any thread. `None`: nothing. What depends
/// on the lines before is done in a [`OrderedSection`].
pub type BatchTransform<'a> = Option<&'a (dyn Fn(&[u8], OrderedSection, &mut Vec<u8>) + Sync)>;

impl<'a> Merge<'a> {
    /// Reads every text once and tells its damages.
    ///
    /// # Errors
    /// What a temporary file says. Whatever is wrong with a text is told, and what can be read of it is merged.
    pub fn prepare(
        texts: &[Arc<RecordText>],
        limits: MergeLimits,
        diagnostics: &'a Diagnostics,
    ) -> io::Result<Merge<'a>> {
        let mut merge = Merge::planned(texts, limits, diagnostics);
        merge.sort_the_unsorted()?;
        merge.put_together()?;
        Ok(merge)
    }

    fn planned(texts: &[Arc<RecordText>], mut limits: MergeLimits, diagnostics: &'a Diagnostics) -> Merge<'a> {
        let total: u64 = texts.iter().map(|text| text.size(0..text.end())).sum();
        limits.block = limits.block.max((total / limits.blocks).next_multiple_of(4096));
        limits.part = limits.part.max(8 * limits.block);
        let pace = ScanLimits { threads: limits.threads, chunk: limits.chunk, buffer: 256 << 10, block: limits.block };
        let indexes = scan(texts, pace, diagnostics);
        let inputs = texts.iter().cloned().zip(indexes).filter(|(_, index)| index.span().is_some());
        let inputs = inputs.map(|(text, index)| MergeInput::new(text, index));
        let mut merge = Merge {
            inputs: inputs.collect(),
            plan: SlicePlan::new(&[], Vec::new()),
            limits,
            stamps: StampTable::new(),
            diagnostics,
        };
        merge.plan();
        merge
    }

    fn plan(&mut self) {
        let bounds = bounds(&self.inputs, &self.limits);
        self.plan = SlicePlan::new(&self.inputs, bounds);
    }

    /// The times of the first and of the last record.
    pub fn span(&self) -> Option<(u64, u64)> {
        let slices = self.plan.slices();
        (slices > 0).then(|| (self.plan.times(0).start, self.plan.times(slices - 1).end - 1))
    }

    /// Sorts texts whose blocks belong to so many slices that each of them would be read again and again.
    fn sort_the_unsorted(&mut self) -> io::Result<()> {
        let slices = 0..self.plan.slices();
        let starts: Vec<u64> = slices.map(|slice| self.plan.times(slice).start).chain([u64::MAX]).collect();
        let mut spill = None;
        for number in 0..self.inputs.len() {
            let input = &self.inputs[number];
            if input.index.ordered() || input.size() <= self.limits.slice / 2 {
                continue;
            }
            let blocks = input.index.blocks();
            let visits: usize = blocks.iter().map(|block| slices_of(&starts, Some((block.min, block.max))).len()).sum();
            if visits as u64 * self.limits.block <= 4 * input.size() + self.limits.patience {
                continue;
            }
            let spill = match &mut spill {
                Some(spill) => spill,
                none => none.insert(TemporaryText::new()?),
            };
            spill.push_sorted(&input.text, 0..input.index.end(), self.limits.sort, self.diagnostics)?;
            self.inputs[number] = self.written(spill.end_text()?);
        }
        if spill.is_some() {
            self.plan();
        }
        Ok(())
    }

    /// Merges inputs in groups, if each of many slices had to be read from each of many inputs.
    fn put_together(&mut self) -> io::Result<()> {
        let total: u64 = self.inputs.iter().map(MergeInput::size).sum();
        let slices = 0..self.plan.slices();
        let visits: usize = slices.clone().map(|slice| self.plan.inputs(slice).len()).sum();
        if slices.len() <= 2 || visits as u64 * self.limits.visit <= 4 * total + self.limits.patience {
            return Ok(());
        }
        info!("{} files are too many for each of {} slices", self.inputs.len(), slices.len());
        let before = self.inputs.len();
        let mut spill = TemporaryText::new()?;
        let phase = self.diagnostics.start_phase("merging groups of files", Amount::Bytes(total));
        let mut groups = Vec::new();
        let mut rest = std::mem::take(&mut self.inputs).into_iter().peekable();
        while rest.peek().is_some() {
            let (mut group, mut bytes) = (Vec::new(), 0);
            while let Some(input) = rest.next_if(|input| group.len() < 2 || bytes + input.size() <= self.limits.slice) {
                bytes += input.size();
                group.push(input);
            }
            self.inputs = group;
            self.plan();
            self.run(0..u64::MAX, None, &mut |lines| {
                phase.advance(lines.len() as u64);
                spill.push(lines).map(|()| true)
            })?;
            groups.push(spill.end_text()?);
        }
        drop(phase);
        let fewer = groups.len() <= before / 2;
        self.inputs = groups.into_iter().map(|text| self.written(text)).collect();
        self.plan();
        if fewer { self.put_together() } else { Ok(()) }
    }

    /// A text that was just written, as an input.
    fn written(&self, text: Arc<RecordText>) -> MergeInput {
        let MergeLimits { threads, chunk, block, .. } = self.limits;
        let index = scan(
            std::slice::from_ref(&text),
            ScanLimits { threads, chunk, buffer: 256 << 10, block },
            self.diagnostics,
        )
        .pop();
        MergeInput::new(text, index.unwrap_or_default())
    }

    /// Merges the records of `times` and gives them to `take`, in order, many lines at a time.
    ///
    /// # Errors
    /// What `take` says.
    pub fn run(&self, times: Range<u64>, shape: BatchTransform, take: &mut LineConsumer) -> io::Result<()> {
        self.run_phase("merging", times, shape, take)
    }

    /// As [`run`](Merge::run), for a purpose that is told to whoever waits for it.
    ///
    /// # Errors
    /// What `take` says.
    pub fn run_phase(
        &self,
        what: &'static str,
        times: Range<u64>,
        shape: BatchTransform,
        take: &mut LineConsumer,
    ) -> io::Result<()> {
        let slices = self.plan.find(&times);
        let (phase, bytes) = self.phase(what, slices.len());
        let next = AtomicUsize::new(slices.start);
        let turns = OrderedOutput::new(slices.start, self.limits.waiting, take);
        let gate = OrderedSections::new(slices.start);
        let shaper = BatchTransformer { shape, gate: Some(&gate) };
        let worker = || {
            let mut work = WorkerMemory::default();
            let mut out = LineBuffer::default();
            while !turns.over() {
                let slice = next.fetch_add(1, Ordering::Relaxed);
                if slice >= slices.end {
                    break;
                }
                let mut parts = |piece: &mut LineBuffer| turns.part(slice, piece);
                self.slice(slice, &times, &mut work, shaper, &mut out, &mut parts);
                gate.leave(slice);
                out = turns.whole(slice, std::mem::take(&mut out));
                phase.advance(bytes);
            }
        };
        run_on_threads(self.limits.threads.min(slices.len()), worker);
        turns.into_result()
    }

    /// How many slices back from the end of `times` there are `wanted` lines, and how many lines these slices have before.
    pub fn back(&self, times: Range<u64>, shape: BatchTransform, wanted: u64) -> (u64, u64) {
        let mut work = WorkerMemory::default();
        let mut out = LineBuffer::default();
        let mut lines = 0;
        let mut start = times.start;
        let slices = self.plan.find(&times);
        let (phase, bytes) = self.phase("looking for the last ones", slices.len());
        for slice in slices.rev() {
            let mut count = |piece: &mut LineBuffer| {
                lines += memchr::memchr_iter(b'\n', piece.filled()).count() as u64;
                piece.clear();
            };
            self.slice(slice, &times, &mut work, BatchTransformer { shape, gate: None }, &mut out, &mut count);
            count(&mut out);
            phase.advance(bytes);
            if lines >= wanted {
                start = start.max(self.plan.times(slice).start);
                break;
            }
        }
        (start, lines.saturating_sub(wanted))
    }

    /// Begins a phase of so many slices, and tells how many bytes one has. They have about as much each.
    fn phase(&self, what: &'static str, slices: usize) -> (Phase<'_>, u64) {
        let total: u64 = self.inputs.iter().map(MergeInput::size).sum();
        let bytes = total / self.plan.slices().max(1) as u64;
        (self.diagnostics.start_phase(what, Amount::Bytes(bytes * slices as u64)), bytes)
    }

    /// Merges what a slice has of `times` into `out`, and gives a part to `parts` when there is much.
    fn slice(
        &self,
        slice: usize,
        times: &Range<u64>,
        work: &mut WorkerMemory,
        shaper: BatchTransformer,
        out: &mut LineBuffer,
        parts: &mut dyn FnMut(&mut LineBuffer),
    ) {
        let whole = self.plan.times(slice);
        let times = whole.start.max(times.start)..whole.end.min(times.end);
        let numbers = self.plan.inputs(slice);
        // Times that are still to be merged, the earliest last.
        let mut rest = vec![times];
        while let Some(times) = rest.pop() {
            if times.is_empty() {
                continue;
            }
            if work.arena.load(&self.inputs, numbers, &times, self.limits.slice, self.diagnostics).is_ok() {
                self.merge(&times, work, shaper.shape.is_some(), out);
                shaper.shape(&mut work.plain, slice, rest.is_empty(), out);
            } else if times.end - times.start > 1 {
                let middle = times.start + (times.end - times.start) / 2;
                rest.extend([middle..times.end, times.start..middle]);
            } else {
                let WorkerMemory { plain, .. } = work;
                let mut full = |piece: &mut LineBuffer| {
                    shaper.shape(piece, slice, false, out);
                    parts(out);
                };
                equal_times::stream(
                    &self.inputs,
                    numbers,
                    times.start,
                    &self.stamps,
                    plain,
                    &mut full,
                    self.diagnostics,
                );
            }
            if out.filled().len() as u64 > self.limits.slice {
                parts(out);
            }
        }
    }

    /// Merges what is loaded.
    fn merge(&self, times: &Range<u64>, work: &mut WorkerMemory, is_shaped: bool, out: &mut LineBuffer) {
        let WorkerMemory { arena, plain } = work;
        let merged = if is_shaped { plain } else { out };
        let broken = loser_tree::merge(arena.bytes(), arena.streams(), times.clone(), &self.stamps, merged);
        if broken > 0 {
            for number in arena.broken(times) {
                self.inputs[number as usize].fail(&io::Error::other("changed while being read"), self.diagnostics);
            }
        }
    }
}

/// What becomes of lines between merging and handing over.
#[derive(Clone, Copy)]
struct BatchTransformer<'a> {
    shape: BatchTransform<'a>,
    gate: Option<&'a OrderedSections>,
}

impl BatchTransformer<'_> {
    /// Shapes lines of a slice, the last of it or not, from `plain` to `out`.
    fn shape(self, plain: &mut LineBuffer, slice: usize, last: bool, out: &mut LineBuffer) {
        let turn = self.gate.map_or(OrderedSection::UNORDERED, |gate| OrderedSection::new(gate, slice, last));
        match self.shape {
            Some(shape) => out.append(|out| shape(plain.filled(), turn, out)),
            None => out.push(plain.filled()),
        }
        plain.clear();
    }
}

/// A thread's memory.
#[derive(Default)]
struct WorkerMemory {
    arena: SliceRecords,
    /// What is merged and not yet shaped.
    plain: LineBuffer,
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
pub mod tests;
