//! The objects by their numbers. Of those that have ended, and that nobody waited for, the later ones of a site are summed up, so
//! that memory does not grow with mutexes that live on a stack for one call each.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use foldhash::fast::RandomState;

use super::object_state::{ObjectKind, ObjectState};

/// How many objects that have ended and that nobody waited for are kept as they are.
pub const ENDED_MAX: usize = 1 << 16;
/// Objects with more calls are always kept.
const CALLS_MAX: u64 = 1024;

/// What objects have in common that are summed up: process, kind, site, whether that initialised them, and whether they are selected.
type SumKey = (u32, ObjectKind, u32, bool, bool);

/// The objects, each with a number that stays.
#[derive(Debug, Default)]
pub struct ObjectTable {
    /// By number: the index of the state, which the objects of a sum share.
    indexes: Vec<u32>,
    states: Vec<ObjectState>,
    /// Indexes of states that no object has.
    unused: Vec<u32>,
    /// How many ended objects are kept as they are.
    ended: usize,
    /// The number of the first object of each sum.
    sums: HashMap<SumKey, u32, RandomState>,
}

impl ObjectTable {
    /// Adds an object; returns its number.
    pub fn push(&mut self, state: ObjectState) -> u32 {
        let number = self.indexes.len() as u32;
        let state = ObjectState { first: number, ..state };
        let index = match self.unused.pop() {
            Some(index) => {
                self.states[index as usize] = state;
                index
            }
            None => {
                if self.states.len() == self.states.capacity() {
                    // Twice the room would be the most memory of a report with many objects.
                    self.states.reserve_exact(self.states.len() / 8 + 16);
                }
                self.states.push(state);
                self.states.len() as u32 - 1
            }
        };
        self.indexes.push(index);
        number
    }

    /// How many objects there have been.
    pub fn len(&self) -> u32 {
        self.indexes.len() as u32
    }

    /// The numbers of all objects, and of the first one of each sum.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..self.len()).filter(|number| self.first(*number) == *number)
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &ObjectState> {
        self.numbers().map(|number| &self[number as usize])
    }

    /// The number of the first object of the sum that an object belongs to, or its own.
    pub fn first(&self, number: u32) -> u32 {
        self[number as usize].first
    }

    /// Takes the end of an object, to whose state nothing will be added but what its sum may get.
    pub fn end(&mut self, number: u32, is_selected: bool) {
        let state = &self[number as usize];
        if state.first != number || state.others > 0 || !state.may_be_summed_up() || state.figures.calls > CALLS_MAX {
            return;
        }
        if self.ended < ENDED_MAX {
            self.ended += 1;
            return;
        }
        let group = (state.process, state.kind, state.site, state.is_initialised, is_selected);
        let first = *self.sums.entry(group).or_insert(number);
        if first != number {
            let shared = self.indexes[first as usize];
            let index = std::mem::replace(&mut self.indexes[number as usize], shared);
            let figures = std::mem::take(&mut self.states[index as usize].figures);
            let sum = &mut self[first as usize];
            sum.figures.add(&figures);
            sum.others += 1;
            self.unused.push(index);
        }
    }
}

impl Index<usize> for ObjectTable {
    type Output = ObjectState;

    fn index(&self, number: usize) -> &ObjectState {
        &self.states[self.indexes[number] as usize]
    }
}

impl IndexMut<usize> for ObjectTable {
    fn index_mut(&mut self, number: usize) -> &mut ObjectState {
        &mut self.states[self.indexes[number] as usize]
    }
}
