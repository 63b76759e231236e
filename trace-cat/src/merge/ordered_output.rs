//! Outputs what threads make of slices in the order of the slices.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::loser_tree::LineBuffer;

/// Takes lines in order; returns `false` if it needs no more.
pub type LineConsumer<'a> = dyn FnMut(&[u8]) -> io::Result<bool> + Send + 'a;

/// Gives the output of slices to a consumer, in order.
pub struct OrderedOutput<'a> {
    state: Mutex<OutputState>,
    changed: Condvar,
    take: Mutex<&'a mut LineConsumer<'a>>,
    /// Bytes of memory that may wait for earlier slices.
    waiting_max: usize,
}

struct OutputState {
    /// The slice whose output is taken.
    next: usize,
    /// The finished output of later slices, and the bytes of memory that it takes.
    waiting: BTreeMap<usize, LineBuffer>,
    waiting_bytes: usize,
    /// Buffers to use again, and the bytes of memory that they take.
    spare: Vec<LineBuffer>,
    spare_bytes: usize,
    /// The consumer needs no more, or failed.
    is_over: bool,
    result: io::Result<()>,
}

impl<'a> OrderedOutput<'a> {
    /// An output whose first slice is `first`, and in which `waiting_max` bytes of memory may wait for earlier slices.
    pub fn new(first: usize, waiting_max: usize, take: &'a mut LineConsumer<'a>) -> OrderedOutput<'a> {
        let state = OutputState {
            next: first,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            spare: Vec::new(),
            spare_bytes: 0,
            is_over: false,
            result: Ok(()),
        };
        OrderedOutput { state: Mutex::new(state), changed: Condvar::new(), take: Mutex::new(take), waiting_max }
    }

    /// True if no more output is needed.
    pub fn is_over(&self) -> bool {
        self.state().is_over
    }

    pub fn into_result(self) -> io::Result<()> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).result
    }

    /// Outputs and clears some lines of `slice`, which is not finished, after waiting for all earlier slices.
    pub fn push(&self, slice: usize, lines: &mut LineBuffer) {
        let mut state = self.state();
        while state.next != slice && !state.is_over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.put(lines);
    }

    /// Finishes `slice` with its last lines, which may wait in memory for earlier slices. Returns an empty buffer.
    pub fn finish(&self, slice: usize, mut lines: LineBuffer) -> LineBuffer {
        let mut state = self.state();
        // The thread with the next slice does not wait here, so this loop ends.
        while state.next != slice && state.waiting_bytes + lines.memory() > self.waiting_max && !state.is_over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.next != slice && !state.is_over {
            state.waiting_bytes += lines.memory();
            state.waiting.insert(slice, lines);
            let spare = state.spare.pop().unwrap_or_default();
            state.spare_bytes -= spare.memory();
            return spare;
        }
        loop {
            drop(state);
            self.put(&mut lines);
            state = self.state();
            state.next += 1;
            let next = state.next;
            let Some(waiting) = state.waiting.remove(&next) else { break };
            state.waiting_bytes -= waiting.memory();
            let taken = std::mem::replace(&mut lines, waiting);
            if state.waiting_bytes + state.spare_bytes + taken.memory() <= self.waiting_max {
                state.spare_bytes += taken.memory();
                state.spare.push(taken);
            }
            self.changed.notify_all();
        }
        drop(state);
        self.changed.notify_all();
        lines
    }

    fn state(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, lines: &mut LineBuffer) {
        if !lines.filled().is_empty() && !self.is_over() {
            let mut take = self.take.lock().unwrap_or_else(PoisonError::into_inner);
            let result = take(lines.filled());
            if !matches!(result, Ok(true)) {
                let mut state = self.state();
                (state.is_over, state.result) = (true, result.map(|_| ()));
            }
        }
        lines.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn output_is_in_order_whatever_the_order_of_the_work() {
        let mut random = SeededRandom::seeded("output", 9);
        for round in 0..100 {
            let mut out = Vec::new();
            let mut take = |bytes: &[u8]| {
                out.extend_from_slice(bytes);
                Ok(true)
            };
            let output = OrderedOutput::new(5, [1, 20, 1000][round % 3], &mut take);
            let next = AtomicUsize::new(5);
            let lengths: Vec<usize> = (0..60).map(|_| random.below(20)).collect();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let mut lines = LineBuffer::default();
                        loop {
                            let slice = next.fetch_add(1, Ordering::Relaxed);
                            let Some(&length) = lengths.get(slice - 5) else { break };
                            for byte in 0..length {
                                lines.push(&[slice as u8]);
                                if byte % 7 == 6 {
                                    output.push(slice, &mut lines);
                                }
                            }
                            lines = output.finish(slice, lines);
                        }
                    });
                }
            });
            output.into_result().unwrap();
            let expected: Vec<u8> = (0..60).flat_map(|index| vec![index as u8 + 5; lengths[index]]).collect();
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn a_consumer_that_needs_no_more_is_not_called_again() {
        let mut taken = 0;
        let mut take = |bytes: &[u8]| {
            taken += bytes.len();
            Ok(taken < 2)
        };
        let output = OrderedOutput::new(0, 100, &mut take);
        let mut lines = LineBuffer::default();
        for slice in 0..4 {
            lines.push(b"x");
            lines = output.finish(slice, lines);
        }
        assert!(output.is_over());
        output.into_result().unwrap();
        assert_eq!(taken, 2);
    }
}
