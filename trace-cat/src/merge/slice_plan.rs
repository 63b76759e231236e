//! Divides the time of a trace into slices, each of which is merged independently of the others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::input::MergeInput;
use super::limits::MergeLimits;

/// The slices, and which inputs have records in which.
#[derive(Debug)]
pub struct SlicePlan {
    /// The time at which each slice begins, and the time at which the last one ends.
    bounds: Vec<u64>,
    /// The inputs of slice `n` are `inputs[starts[n]..starts[n + 1]]`.
    starts: Vec<usize>,
    inputs: Vec<u32>,
}

impl SlicePlan {
    /// The plan of slices with these `bounds`.
    pub fn new(inputs: &[MergeInput], bounds: Vec<u64>) -> SlicePlan {
        let slices = bounds.len().saturating_sub(1);
        let mut starts = vec![0; slices + 1];
        let ranges: Vec<Range<usize>> = inputs.iter().map(|input| slices_of(&bounds, input.index.span())).collect();
        for range in &ranges {
            for slice in range.clone() {
                starts[slice + 1] += 1;
            }
        }
        for slice in 0..slices {
            starts[slice + 1] += starts[slice];
        }
        let mut next = starts.clone();
        let mut numbers = vec![0; starts[slices]];
        for (number, range) in ranges.into_iter().enumerate() {
            for slice in range {
                numbers[next[slice]] = number as u32;
                next[slice] += 1;
            }
        }
        SlicePlan { bounds, starts, inputs: numbers }
    }

    pub fn slices(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// The slices that overlap `times`.
    pub fn find(&self, times: &Range<u64>) -> Range<usize> {
        let first = self.bounds.partition_point(|&bound| bound <= times.start).saturating_sub(1);
        let last = self.bounds.partition_point(|&bound| bound < times.end).min(self.slices());
        first..last.max(first)
    }

    pub fn times(&self, slice: usize) -> Range<u64> {
        self.bounds[slice]..self.bounds[slice + 1]
    }

    /// The inputs that may have records in a slice, in their order.
    pub fn inputs(&self, slice: usize) -> &[u32] {
        &self.inputs[self.starts[slice]..self.starts[slice + 1]]
    }
}

/// The slices that the times from the first to the last of `span` belong to.
pub fn slices_of(bounds: &[u64], span: Option<(u64, u64)>) -> Range<usize> {
    let Some((min, max)) = span else { return 0..0 };
    let first = bounds.partition_point(|&bound| bound <= min).saturating_sub(1);
    first..bounds.partition_point(|&bound| bound <= max).min(bounds.len().saturating_sub(1)).max(first)
}

/// The time at which each slice begins, and the time at which the last one ends. Slices are large enough to be worth the
/// reads that they cost, and small enough for the memory where the records of one time allow it.
pub fn bounds(inputs: &[MergeInput], limits: &MergeLimits) -> Vec<u64> {
    let spans = inputs.iter().filter_map(|input| input.index.span());
    let (mut least, mut greatest) = (u64::MAX, 0);
    for (min, max) in spans {
        (least, greatest) = (least.min(min), greatest.max(max));
    }
    if least > greatest {
        return Vec::new();
    }
    // Taking several blocks at a time is precise enough for the size of a slice. What it lacks may not be too much for a slice: that
    // would be read again, in two parts.
    let stride = (limits.slice_per_input / limits.block / 16).max(1) as usize;
    let most = limits.slice_max - limits.slice_max / 8;
    let mut heap = BinaryHeap::new();
    for (number, input) in inputs.iter().enumerate() {
        for run in input.index.runs() {
            heap.push(Reverse((input.index.blocks[run.start].min, number, run.start, run.end)));
        }
    }
    let mut bounds = vec![least];
    let (mut bytes, mut inputs_in_slice) = (0, 0);
    // The number of the latest slice that each input has blocks in, counted from 1.
    let mut latest_slice = vec![0; inputs.len()];
    while let Some(Reverse((min, number, block, end))) = heap.pop() {
        let index = &inputs[number].index;
        let target = (inputs_in_slice * limits.slice_per_input).clamp(limits.slice_min.min(most), most);
        if bytes >= target && bounds.last().is_some_and(|&last| last < min) {
            bounds.push(min);
            (bytes, inputs_in_slice) = (0, 0);
        }
        if latest_slice[number] != bounds.len() {
            latest_slice[number] = bounds.len();
            inputs_in_slice += 1;
        }
        let next = (block + stride).min(end);
        let place = index.place(&(block..next));
        bytes += place.end - place.start;
        if next < end {
            heap.push(Reverse((index.blocks[next].min, number, next, end)));
        }
    }
    // Printed times are so small that this does not overflow.
    bounds.push(greatest + 1);
    bounds
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use crate::trace::record_text::RecordText;
    use crate::trace::time_index::{IndexBlock, TimeIndex};

    #[test]
    fn many_inputs_have_no_more_in_a_slice_than_it_may_have() {
        const BLOCK: u64 = 100;
        let mut random = SeededRandom::seeded("slices", 4);
        let text = Arc::new(RecordText::new("tr".into(), None, 0, false));
        let input = |_| {
            let times = (0..200).map(|number| 1000 * number + random.below(900) as u64);
            let block = |(number, min)| IndexBlock { at: number * BLOCK, min, max: min + 50 };
            MergeInput::new(
                text.clone(),
                TimeIndex::new((0..).zip(times).map(block).collect(), 200 * BLOCK, true, true),
            )
        };
        let inputs: Vec<MergeInput> = (0..64).map(input).collect();
        let (slice_max, slice_min, slice_per_input) = (64 * BLOCK, BLOCK, 16 * BLOCK);
        let limits = MergeLimits { block: BLOCK, slice_max, slice_min, slice_per_input, ..MergeLimits::default() };
        let bounds = bounds(&inputs, &limits);
        let mut sizes = vec![0; bounds.len() - 1];
        for block in inputs.iter().flat_map(|input| &input.index.blocks) {
            sizes[bounds.partition_point(|bound| *bound <= block.min) - 1] += BLOCK;
        }
        assert!(sizes.iter().all(|size| *size <= slice_max) && sizes.len() < 64 * 200 / 48, "{sizes:?}");
    }
}
