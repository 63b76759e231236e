//! How much is kept of holders and wakers.

use std::hash::Hash;

use super::caller_sums::CallerSums;

/// How many holders and wakers are kept of all objects together; when there are so many, an object gets no more than a few.
const CALLERS_MAX: usize = 1 << 20;
/// A few.
const CALLERS_OF_FULL: usize = 16;

/// How much was left out of the tables.
#[derive(Debug, Default)]
pub struct BlameLimits {
    /// How many holders and wakers are kept.
    callers: usize,
    /// Shares of waits of holders that are not kept.
    pub blamed_left_out: u64,
    /// Waits whose wakers are not kept.
    pub wakers_left_out: u64,
    /// Shares of waits of pairs that are not kept.
    pub pairs_left_out: u64,
}

impl BlameLimits {
    /// Whether so many callers more are kept, so that their order does not matter.
    pub fn has_room(&self, callers: usize) -> bool {
        self.callers + callers < CALLERS_MAX
    }

    /// Adds to the sum of a caller; returns whether it is kept.
    pub fn add<K: Ord + Hash + Copy>(&mut self, sums: &mut CallerSums<K>, key: K, value: u64) -> bool {
        let count = sums.len();
        let is_full = self.callers >= CALLERS_MAX && count >= CALLERS_OF_FULL;
        if is_full && !sums.contains(&key) {
            return false;
        }
        sums.add(key, value);
        self.callers += sums.len() - count;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_tables_go_on_with_whom_they_have() {
        let mut limits = BlameLimits { callers: CALLERS_MAX - 1, ..BlameLimits::default() };
        let mut sums = CallerSums::default();
        for key in 0..40 {
            assert_eq!(limits.add(&mut sums, key, 1), key < CALLERS_OF_FULL);
        }
        assert!(limits.add(&mut sums, 3, 5));
        assert_eq!((sums.len(), sums.in_order()[3]), (CALLERS_OF_FULL, (3, 6)));
    }
}
