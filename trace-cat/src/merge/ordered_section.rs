//! Lets threads do in the order of the slices what has to be done in that order, in the middle of their work.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Whose turn it is.
pub struct OrderedSections {
    state: Mutex<SectionState>,
    moved: Condvar,
}

struct SectionState {
    next: usize,
    /// Slices behind the next one that will not come any more.
    left: BTreeSet<usize>,
}

impl OrderedSections {
    /// The first turn is slice number `first`'s.
    pub fn new(first: usize) -> OrderedSections {
        OrderedSections {
            state: Mutex::new(SectionState { next: first, left: BTreeSet::new() }),
            moved: Condvar::new(),
        }
    }

    /// Says that a slice will not come again, or not at all. Never waits.
    pub fn leave(&self, slice: usize) {
        let mut state = self.state();
        if slice > state.next {
            state.left.insert(slice);
        } else if slice == state.next {
            state.next += 1;
            while state.left.first() == Some(&state.next) {
                state.left.pop_first();
                state.next += 1;
            }
            drop(state);
            self.moved.notify_all();
        }
    }

    fn wait(&self, slice: usize) {
        let mut state = self.state();
        while state.next != slice {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, SectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slice's turn, for some of its lines.
pub struct OrderedSection<'a> {
    gate: Option<&'a OrderedSections>,
    slice: usize,
    last: bool,
}

impl<'a> OrderedSection<'a> {
    /// One that need not wait.
    pub const UNORDERED: OrderedSection<'static> = OrderedSection { gate: None, slice: 0, last: false };

    /// One of a slice, the last of it or not.
    pub fn new(gate: &'a OrderedSections, slice: usize, last: bool) -> OrderedSection<'a> {
        OrderedSection { gate: Some(gate), slice, last }
    }

    /// Waits until all lines that come before had their turn, and does something that those behind wait for.
    pub fn enter<T>(self, act: impl FnOnce() -> T) -> T {
        let Some(gate) = self.gate else { return act() };
        gate.wait(self.slice);
        let result = act();
        if self.last {
            gate.leave(self.slice);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn turns_are_taken_in_order_by_slices_that_come_often_once_or_never() {
        let mut random = SeededRandom::seeded("gate", 21);
        for _ in 0..100 {
            let times: Vec<usize> = (0..60).map(|_| random.below(4)).collect();
            let (gate, next, taken) = (OrderedSections::new(3), AtomicUsize::new(3), Mutex::new(Vec::new()));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        loop {
                            let slice = next.fetch_add(1, Ordering::Relaxed);
                            let Some(&times) = times.get(slice - 3) else { break };
                            if slice % 4 == 0 {
                                std::thread::sleep(Duration::from_micros(50));
                            }
                            for time in 0..times {
                                // Whether the last is known to be the last makes no difference to the order.
                                let last = time + 1 == times && slice % 2 == 0;
                                OrderedSection::new(&gate, slice, last)
                                    .enter(|| taken.lock().unwrap().push((slice, time)));
                            }
                            gate.leave(slice);
                        }
                    });
                }
            });
            let expected: Vec<_> =
                times.iter().enumerate().flat_map(|(at, &times)| (0..times).map(move |time| (at + 3, time))).collect();
            assert_eq!(taken.into_inner().unwrap(), expected);
        }
    }
}
