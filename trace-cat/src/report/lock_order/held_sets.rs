//! Sets of locks that a thread held at the same time, each kept once.

use std::collections::HashMap;
use std::sync::Arc;

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

/// The most sets that are kept.
const SETS_MAX: usize = 1 << 19;

/// The sets by number.
#[derive(Debug, Default)]
pub struct HeldSets {
    sets: Vec<Arc<[u32]>>,
    numbers: HashMap<Arc<[u32]>, u32, RandomState>,
}

impl HeldSets {
    /// The number of the set with these members, which are in order; `None` if it is one too many.
    pub fn intern(&mut self, members: &[u32]) -> Option<u32> {
        if let Some(&number) = self.numbers.get(members) {
            return Some(number);
        }
        if self.sets.len() >= SETS_MAX {
            return None;
        }
        let (number, set) = (self.sets.len() as u32, Arc::<[u32]>::from(members));
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        Some(number)
    }

    /// The members of a set.
    pub fn members(&self, number: u32) -> &[u32] {
        &self.sets[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_kept_once_up_to_a_limit() {
        let mut sets = HeldSets::default();
        let count = SETS_MAX as u32;
        (0..count).for_each(|lock| assert_eq!(sets.intern(&[lock, count]), Some(lock)));
        assert_eq!([sets.intern(&[count]), sets.intern(&[7, count])], [None, Some(7)]);
        assert_eq!(sets.members(7), [7, count]);
    }
}
