//! Lets threads, in the middle of their work on slices, do one step in the order of the slices.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Admits slices to their ordered sections, one after the other.
pub struct OrderedSections {
    state: Mutex<SectionState>,
    admitted: Condvar,
}

struct SectionState {
    /// The slice that is admitted.
    next: usize,
    /// Later slices that have no more ordered sections.
    finished: BTreeSet<usize>,
}

impl OrderedSections {
    /// Admits the slice `first`.
    pub fn new(first: usize) -> OrderedSections {
        OrderedSections {
            state: Mutex::new(SectionState { next: first, finished: BTreeSet::new() }),
            admitted: Condvar::new(),
        }
    }

    /// Notes that a slice has no more ordered sections. Does not wait.
    pub fn leave(&self, slice: usize) {
        let mut state = self.state();
        if slice > state.next {
            state.finished.insert(slice);
        } else if slice == state.next {
            state.next += 1;
            while state.finished.first() == Some(&state.next) {
                state.finished.pop_first();
                state.next += 1;
            }
            drop(state);
            self.admitted.notify_all();
        }
    }

    fn wait(&self, slice: usize) {
        let mut state = self.state();
        while state.next != slice {
            state = self.admitted.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, SectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ordered section of some lines of a slice.
pub struct OrderedSection<'a> {
    sections: Option<&'a OrderedSections>,
    slice: usize,
    is_last: bool,
}

impl<'a> OrderedSection<'a> {
    /// A section that does not wait.
    pub const UNORDERED: OrderedSection<'static> = OrderedSection { sections: None, slice: 0, is_last: false };

    /// A section of a slice. `is_last`: the slice has no section after it.
    pub fn new(sections: &'a OrderedSections, slice: usize, is_last: bool) -> OrderedSection<'a> {
        OrderedSection { sections: Some(sections), slice, is_last }
    }

    /// Waits until the sections of all earlier lines are over, and calls `act`, for which the sections of later lines wait.
    pub fn enter<T>(self, act: impl FnOnce() -> T) -> T {
        let Some(sections) = self.sections else { return act() };
        sections.wait(self.slice);
        let result = act();
        if self.is_last {
            sections.leave(self.slice);
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
    fn slices_enter_in_order_with_any_number_of_sections() {
        let mut random = SeededRandom::seeded("sections", 21);
        for _ in 0..100 {
            let counts: Vec<usize> = (0..60).map(|_| random.below(4)).collect();
            let (sections, next, entered) = (OrderedSections::new(3), AtomicUsize::new(3), Mutex::new(Vec::new()));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        loop {
                            let slice = next.fetch_add(1, Ordering::Relaxed);
                            let Some(&count) = counts.get(slice - 3) else { break };
                            if slice % 4 == 0 {
                                std::thread::sleep(Duration::from_micros(50));
                            }
                            for number in 0..count {
                                // The order is the same if the last section is not known to be the last.
                                let is_last = number + 1 == count && slice % 2 == 0;
                                OrderedSection::new(&sections, slice, is_last)
                                    .enter(|| entered.lock().unwrap().push((slice, number)));
                            }
                            sections.leave(slice);
                        }
                    });
                }
            });
            let slices = counts.iter().enumerate();
            let expected: Vec<_> =
                slices.flat_map(|(slice, &count)| (0..count).map(move |number| (slice + 3, number))).collect();
            assert_eq!(entered.into_inner().unwrap(), expected);
        }
    }
}
