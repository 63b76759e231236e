//! Lets threads hand over what they made of slices, so that it comes out in the order of the slices.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::loser_tree::LineBuffer;

/// Takes bytes in order; `false` when it has enough.
pub type LineConsumer<'a> = dyn FnMut(&[u8]) -> io::Result<bool> + Send + 'a;

/// Whose turn it is.
pub struct OrderedOutput<'a> {
    state: Mutex<OutputState>,
    turned: Condvar,
    take: Mutex<&'a mut LineConsumer<'a>>,
    /// How many bytes of memory may wait for their turn.
    limit: usize,
}

struct OutputState {
    next: usize,
    waiting: BTreeMap<usize, LineBuffer>,
    bytes: usize,
    spare: Vec<LineBuffer>,
    over: bool,
    result: io::Result<()>,
}

impl<'a> OrderedOutput<'a> {
    /// The first turn is number `first`'s.
    pub fn new(first: usize, limit: usize, take: &'a mut LineConsumer<'a>) -> OrderedOutput<'a> {
        let state = OutputState {
            next: first,
            waiting: BTreeMap::new(),
            bytes: 0,
            spare: Vec::new(),
            over: false,
            result: Ok(()),
        };
        OrderedOutput { state: Mutex::new(state), turned: Condvar::new(), take: Mutex::new(take), limit }
    }

    /// Whether nothing more is wanted.
    pub fn over(&self) -> bool {
        self.state().over
    }

    /// What became of it.
    pub fn into_result(self) -> io::Result<()> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).result
    }

    /// Hands over a part of what `number` has, in its turn, for which it waits.
    pub fn part(&self, number: usize, piece: &mut LineBuffer) {
        let mut state = self.state();
        while state.next != number && !state.over {
            state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.put(piece);
    }

    /// Hands over all that `number` has, or the rest; returns an empty piece.
    pub fn whole(&self, number: usize, mut piece: LineBuffer) -> LineBuffer {
        let mut state = self.state();
        // Whoever's turn it is never waits here, so it will go on.
        while state.next != number && state.bytes + piece.memory() > self.limit && !state.over {
            state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.next != number && !state.over {
            state.bytes += piece.memory();
            state.waiting.insert(number, piece);
            return state.spare.pop().unwrap_or_default();
        }
        loop {
            drop(state);
            self.put(&mut piece);
            state = self.state();
            state.next += 1;
            let next = state.next;
            let Some(waiting) = state.waiting.remove(&next) else { break };
            state.bytes -= waiting.memory();
            state.spare.push(std::mem::replace(&mut piece, waiting));
            self.turned.notify_all();
        }
        drop(state);
        self.turned.notify_all();
        piece
    }

    fn state(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, piece: &mut LineBuffer) {
        if !piece.filled().is_empty() && !self.over() {
            let mut take = self.take.lock().unwrap_or_else(PoisonError::into_inner);
            let result = take(piece.filled());
            if !matches!(result, Ok(true)) {
                let mut state = self.state();
                (state.over, state.result) = (true, result.map(|_| ()));
            }
        }
        piece.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn whatever_the_order_of_the_work_the_output_is_in_order() {
        let mut random = SeededRandom::seeded("turns", 9);
        for round in 0..100 {
            let mut out = Vec::new();
            let mut take = |bytes: &[u8]| {
                out.extend_from_slice(bytes);
                Ok(true)
            };
            let turns = OrderedOutput::new(5, [1, 20, 1000][round % 3], &mut take);
            let next = AtomicUsize::new(5);
            let lengths: Vec<usize> = (0..60).map(|_| random.below(20)).collect();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let mut piece = LineBuffer::default();
                        loop {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            let Some(&length) = lengths.get(number - 5) else { break };
                            for byte in 0..length {
                                piece.push(&[number as u8]);
                                if byte % 7 == 6 {
                                    turns.part(number, &mut piece);
                                }
                            }
                            piece = turns.whole(number, piece);
                        }
                    });
                }
            });
            turns.into_result().unwrap();
            let expected: Vec<u8> = (0..60).flat_map(|place| vec![place as u8 + 5; lengths[place]]).collect();
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn whoever_has_enough_gets_no_more() {
        let mut taken = 0;
        let mut take = |bytes: &[u8]| {
            taken += bytes.len();
            Ok(taken < 2)
        };
        let turns = OrderedOutput::new(0, 100, &mut take);
        let mut piece = LineBuffer::default();
        for number in 0..4 {
            piece.push(b"x");
            piece = turns.whole(number, piece);
        }
        assert!(turns.over());
        turns.into_result().unwrap();
        assert_eq!(taken, 2);
    }
}
