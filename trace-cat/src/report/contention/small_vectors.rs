//! Vectors of which there are several in each object. Most stay empty or have one element, for which they take no more room than
//! it needs; the library's rule would be room for four.

use std::collections::VecDeque;

/// Appends an element.
pub fn push<T>(vector: &mut Vec<T>, element: T) {
    if vector.capacity() == 0 {
        vector.reserve_exact(1);
    }
    vector.push(element);
}

/// Appends an element.
pub fn push_back<T>(queue: &mut VecDeque<T>, element: T) {
    if queue.capacity() == 0 {
        queue.reserve_exact(1);
    }
    queue.push_back(element);
}

/// Adds to the sum of a key in a sorted vector: for few keys it takes a third of a hash map's memory.
pub fn add_sum<K: Ord>(sums: &mut Vec<(K, u64)>, key: K, value: u64) {
    match sums.binary_search_by(|(known, _)| known.cmp(&key)) {
        Ok(index) => sums[index].1 += value,
        Err(index) => insert(sums, index, (key, value)),
    }
}

/// Brings sums in the order of their keys, and makes one of those that have the same.
pub fn sum_in_order<K: Ord + Copy>(sums: &mut Vec<(K, u64)>) {
    sums.sort_unstable_by_key(|(key, _)| *key);
    sums.dedup_by(|later, sum| {
        let is_same = later.0 == sum.0;
        sum.1 += if is_same { later.1 } else { 0 };
        is_same
    });
}

/// Inserts an element at an index.
pub fn insert<T>(vector: &mut Vec<T>, index: usize, element: T) {
    if vector.len() == vector.capacity() {
        // Most need no more than one; those that need many waste at most a quarter.
        vector.reserve_exact(vector.len() / 4 + 1);
    }
    vector.insert(index, element);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_in_the_order_of_their_keys() {
        let mut sums = Vec::new();
        for (key, value) in [(5, 1), (3, 10), (5, 2), (9, 4), (3, 20)] {
            add_sum(&mut sums, key, value);
        }
        assert_eq!(sums, [(3, 30), (5, 3), (9, 4)]);
    }
}
