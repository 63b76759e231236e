//! Sets of locks that a thread held at the same time, each kept once.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The bit of a lock in a set that is held for reading.
const SHARED: u32 = 1 << 31;

/// A lock as a member of a set.
pub fn member(node: u32, is_shared: bool) -> u32 {
    node | if is_shared { SHARED } else { 0 }
}

/// Whether two threads that hold these sets keep each other out: a lock is in both, and one of them does not share it.
pub fn exclude_each_other(one: &[u32], other: &[u32]) -> bool {
    let conflict = |a: u32, b: u32| (a | SHARED) == (b | SHARED) && a & b & SHARED == 0;
    one.iter().any(|a| other.iter().any(|b| conflict(*a, *b)))
}

/// The sets by number.
#[derive(Debug, Default)]
pub struct HeldSets {
    sets: Vec<Box<[u32]>>,
    numbers: HashMap<Box<[u32]>, u32, RandomState>,
}

impl HeldSets {
    /// The number of the set with these members, which are in order.
    pub fn intern(&mut self, members: &[u32]) -> u32 {
        if let Some(&number) = self.numbers.get(members) {
            return number;
        }
        let number = self.sets.len() as u32;
        self.sets.push(members.into());
        self.numbers.insert(members.into(), number);
        number
    }

    /// The members of a set.
    pub fn members(&self, number: u32) -> &[u32] {
        &self.sets[number as usize]
    }
}
