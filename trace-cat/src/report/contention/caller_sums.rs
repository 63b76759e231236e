//! Sums by caller: of most objects a few, of some hundreds of thousands.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

use super::small_vectors::{add_sum, sum_in_order};

/// The most sums that are kept in order all the time. With many more, most of a report's time was the moving of later ones.
const ORDERED_MAX: usize = 64;

/// A sum for each caller that has one.
#[derive(Debug)]
pub struct CallerSums<K> {
    /// In the order of callers, unless there are more of them.
    ordered: Vec<(K, u64)>,
    /// All of them, if there are more than [`ORDERED_MAX`].
    #[expect(clippy::box_collection, reason = "most objects have none, and there are a hundred thousand")]
    hashed: Option<Box<HashMap<K, u64, RandomState>>>,
}

impl<K> Default for CallerSums<K> {
    fn default() -> Self {
        CallerSums { ordered: Vec::new(), hashed: None }
    }
}

impl<K: Ord + Hash + Copy> CallerSums<K> {
    /// Adds to the sum of a caller.
    pub fn add(&mut self, caller: K, value: u64) {
        if let Some(hashed) = &mut self.hashed {
            *hashed.entry(caller).or_default() += value;
            return;
        }
        add_sum(&mut self.ordered, caller, value);
        if self.ordered.len() > ORDERED_MAX {
            self.hashed = Some(Box::new(std::mem::take(&mut self.ordered).into_iter().collect()));
        }
    }

    /// How many callers have a sum.
    pub fn len(&self) -> usize {
        self.hashed.as_ref().map_or(self.ordered.len(), |hashed| hashed.len())
    }

    /// Whether a caller has a sum.
    pub fn contains(&self, caller: &K) -> bool {
        match &self.hashed {
            Some(hashed) => hashed.contains_key(caller),
            None => self.ordered.binary_search_by(|(known, _)| known.cmp(caller)).is_ok(),
        }
    }

    /// Adds all sums of another one. Those that are in order stay so.
    pub fn merge(&mut self, other: &CallerSums<K>) {
        if other.len() == 0 {
            return;
        }
        if self.hashed.is_none() && other.hashed.is_none() {
            self.ordered.extend_from_slice(&other.ordered);
            sum_in_order(&mut self.ordered);
            return;
        }
        let hashed = other.hashed.iter().flat_map(|hashed| hashed.iter()).map(|(caller, value)| (*caller, *value));
        other.ordered.iter().copied().chain(hashed).for_each(|(caller, value)| self.add(caller, value));
    }

    /// Puts all sums in order, after the last one was added.
    pub fn put_in_order(&mut self) {
        if let Some(hashed) = self.hashed.take() {
            self.ordered = hashed.into_iter().collect();
            self.ordered.sort_unstable_by_key(|(caller, _)| *caller);
        }
    }

    /// The sums in the order of callers, once they have been put in order.
    pub fn in_order(&self) -> &[(K, u64)] {
        debug_assert!(self.hashed.is_none(), "the sums have been put in order");
        &self.ordered
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn sums_of_few_and_of_many_callers_are_those_of_an_ordered_map() {
        let mut random = SeededRandom::seeded("caller sums", 1);
        for callers in [1, ORDERED_MAX, ORDERED_MAX + 1, 5000] {
            let mut expected = BTreeMap::new();
            let (mut sums, mut merged) = (CallerSums::default(), CallerSums::default());
            for _ in 0..4 * callers {
                let (caller, value) = ((random.below(7), random.below(callers)), random.below(1 << 30) as u64);
                assert_eq!(sums.contains(&caller), expected.contains_key(&caller));
                *expected.entry(caller).or_default() += value;
                sums.add(caller, value);
                assert_eq!(sums.len(), expected.len());
            }
            merged.merge(&sums);
            merged.merge(&sums);
            sums.put_in_order();
            merged.merge(&sums);
            merged.put_in_order();
            let mut doubled = CallerSums::default();
            // The rows of the page are sums of objects after the analysis.
            doubled.merge(&sums);
            doubled.merge(&sums);
            let expected_doubles: Vec<_> = expected.iter().map(|(caller, sum)| (*caller, 2 * sum)).collect();
            assert_eq!(doubled.in_order(), expected_doubles);
            assert_eq!(
                sums.in_order().to_vec(),
                expected.iter().map(|(caller, sum)| (*caller, *sum)).collect::<Vec<_>>()
            );
            let tripled: Vec<_> = expected.iter().map(|(caller, sum)| (*caller, 3 * sum)).collect();
            assert_eq!(merged.in_order().to_vec(), tripled);
        }
    }
}
