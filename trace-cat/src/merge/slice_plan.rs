//! Cuts the time of a trace into slices that are merged each for itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::input::MergeInput;
use super::limits::MergeLimits;

/// The slices, and which inputs have records in which.
#[derive(Debug)]
pub struct SlicePlan {
    /// Where each slice begins, and where the last one ends.
    bounds: Vec<u64>,
    /// The inputs of slice `n` are those between places `n` and `n + 1`.
    places: Vec<usize>,
    inputs: Vec<u32>,
}

impl SlicePlan {
    /// Slices of `inputs` that are worth the reads they cost, and small enough to be in memory where that can be.
    pub fn new(inputs: &[MergeInput], bounds: Vec<u64>) -> SlicePlan {
        let slices = bounds.len().saturating_sub(1);
        let mut places = vec![0; slices + 1];
        let touched: Vec<Range<usize>> = inputs.iter().map(|input| slices_of(&bounds, input.index.span())).collect();
        for range in &touched {
            for slice in range.clone() {
                places[slice + 1] += 1;
            }
        }
        for slice in 0..slices {
            places[slice + 1] += places[slice];
        }
        let mut next = places.clone();
        let mut numbers = vec![0; places[slices]];
        for (number, range) in touched.into_iter().enumerate() {
            for slice in range {
                numbers[next[slice]] = number as u32;
                next[slice] += 1;
            }
        }
        SlicePlan { bounds, places, inputs: numbers }
    }

    /// How many slices there are.
    pub fn slices(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// The slices that have a part in `times`.
    pub fn find(&self, times: &Range<u64>) -> Range<usize> {
        let first = self.bounds.partition_point(|&bound| bound <= times.start).saturating_sub(1);
        let last = self.bounds.partition_point(|&bound| bound < times.end).min(self.slices());
        first..last.max(first)
    }

    /// The times of a slice.
    pub fn times(&self, slice: usize) -> Range<u64> {
        self.bounds[slice]..self.bounds[slice + 1]
    }

    /// The inputs that may have records in a slice, in their order.
    pub fn inputs(&self, slice: usize) -> &[u32] {
        &self.inputs[self.places[slice]..self.places[slice + 1]]
    }
}

/// The slices into which times from the least to the greatest of `span` fall.
pub fn slices_of(bounds: &[u64], span: Option<(u64, u64)>) -> Range<usize> {
    let Some((min, max)) = span else { return 0..0 };
    let first = bounds.partition_point(|&bound| bound <= min).saturating_sub(1);
    first..bounds.partition_point(|&bound| bound <= max).min(bounds.len().saturating_sub(1)).max(first)
}

/// Where slices begin, and where the last one ends.
pub fn bounds(inputs: &[MergeInput], limits: &MergeLimits) -> Vec<u64> {
    let spans = inputs.iter().filter_map(|input| input.index.span());
    let (mut least, mut greatest) = (u64::MAX, 0);
    for (min, max) in spans {
        (least, greatest) = (least.min(min), greatest.max(max));
    }
    if least > greatest {
        return Vec::new();
    }
    // Several blocks at a time: they need not be told apart to see where so many bytes are.
    let stride = (limits.part / limits.block / 4).max(1) as usize;
    let mut heap = BinaryHeap::new();
    for (number, input) in inputs.iter().enumerate() {
        for run in input.index.runs() {
            heap.push(Reverse((input.index.blocks()[run.start].min, number, run.start, run.end)));
        }
    }
    let mut bounds = vec![least];
    let (mut bytes, mut streams) = (0, 0);
    let mut seen = vec![0; inputs.len()];
    while let Some(Reverse((min, number, block, end))) = heap.pop() {
        let index = &inputs[number].index;
        let target = (streams * limits.part).clamp(limits.least.min(limits.slice), limits.slice);
        if bytes >= target && bounds.last().is_some_and(|&last| last < min) {
            bounds.push(min);
            (bytes, streams) = (0, 0);
        }
        if seen[number] != bounds.len() {
            seen[number] = bounds.len();
            streams += 1;
        }
        let next = (block + stride).min(end);
        let place = index.place(&(block..next));
        bytes += place.end - place.start;
        if next < end {
            heap.push(Reverse((index.blocks()[next].min, number, next, end)));
        }
    }
    // No printed time is so large that one more is too many.
    bounds.push(greatest + 1);
    bounds
}
