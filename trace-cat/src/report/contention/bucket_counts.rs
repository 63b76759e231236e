//! Counts by the number of a bucket, in as little memory as they need: of few buckets the number and the count of each, of many the
//! counts alone, from the first bucket to the last one, each as wide as the largest.

use super::small_vectors::insert;

/// Counts by bucket. There are two hundred thousand of these in a large report, with a hundred buckets each.
#[derive(Clone, Debug)]
pub enum BucketCounts {
    /// The buckets that are not empty, in ascending order.
    Listed(Vec<ListedBucket>),
    Bytes(CountRange<u8>),
    Words(CountRange<u16>),
    Wide(CountRange<u64>),
}

/// The number of a bucket in the upper bits, and its count.
#[derive(Clone, Copy, Debug)]
pub struct ListedBucket(u32);

/// How many bits a count takes. 11 are left for numbers.
const COUNT_BITS: u32 = 21;
/// The largest count of a bucket in a list.
const LISTED_MAX: u64 = (1 << COUNT_BITS) - 1;
/// When a list has so many buckets, and at each multiple of it, it is asked whether a range takes less.
const LIST_STEP: usize = 8;

impl ListedBucket {
    fn new(number: u16, count: u64) -> ListedBucket {
        ListedBucket((u32::from(number) << COUNT_BITS) | count as u32)
    }

    fn number(self) -> u16 {
        (self.0 >> COUNT_BITS) as u16
    }

    fn count(self) -> u64 {
        u64::from(self.0) & LISTED_MAX
    }
}

/// The counts of the buckets from `first` on.
#[derive(Clone, Debug)]
pub struct CountRange<C> {
    first: u16,
    counts: Vec<C>,
}

impl<C: Copy + Default + TryFrom<u64> + Into<u64>> CountRange<C> {
    /// The counts of these buckets, of which there is one at least. All fit.
    fn new(buckets: &[(u16, u64)]) -> CountRange<C> {
        let (first, last) = (buckets[0].0, buckets[buckets.len() - 1].0);
        let mut range = CountRange { first, counts: vec![C::default(); usize::from(last - first) + 1] };
        buckets.iter().for_each(|(number, count)| _ = range.add(*number, *count));
        range
    }

    /// Adds to a count; returns whether the range has the bucket, and the sum fits.
    #[inline]
    fn add(&mut self, number: u16, count: u64) -> bool {
        let Some(place) = self.counts.get_mut(usize::from(number.wrapping_sub(self.first))) else { return false };
        let sum = C::try_from((*place).into() + count);
        sum.is_ok_and(|sum| {
            *place = sum;
            true
        })
    }

    fn append_to(&self, buckets: &mut Vec<(u16, u64)>) {
        let counts = (self.first..).zip(&self.counts).map(|(number, count)| (number, (*count).into()));
        buckets.extend(counts.filter(|(_, count)| *count > 0));
    }
}

impl Default for BucketCounts {
    fn default() -> BucketCounts {
        BucketCounts::Listed(Vec::new())
    }
}

impl BucketCounts {
    /// Adds to the count of a bucket.
    #[inline]
    pub fn add(&mut self, number: u16, count: u64) {
        let is_added = match self {
            BucketCounts::Listed(buckets) => add_to_list(buckets, number, count),
            BucketCounts::Bytes(range) => range.add(number, count),
            BucketCounts::Words(range) => range.add(number, count),
            BucketCounts::Wide(range) => range.add(number, count),
        };
        if !is_added {
            self.add_anew(number, count);
        }
    }

    /// Adds to a count for which there is no room, or too much.
    #[cold]
    fn add_anew(&mut self, number: u16, count: u64) {
        let mut buckets = self.buckets();
        match buckets.binary_search_by_key(&number, |(known, _)| *known) {
            Ok(index) => buckets[index].1 += count,
            Err(index) => buckets.insert(index, (number, count)),
        }
        *self = BucketCounts::of(&buckets);
    }

    /// The smallest kind for these buckets, of which there is one at least.
    fn of(buckets: &[(u16, u64)]) -> BucketCounts {
        let largest = buckets.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let width = match largest {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            _ => 8,
        };
        let range = usize::from(buckets[buckets.len() - 1].0 - buckets[0].0) + 1;
        let list = buckets.len() * size_of::<ListedBucket>();
        match width {
            _ if largest <= LISTED_MAX && list <= range * width => {
                let mut listed = Vec::with_capacity(buckets.len() + 1);
                listed.extend(buckets.iter().map(|(number, count)| ListedBucket::new(*number, *count)));
                BucketCounts::Listed(listed)
            }
            1 => BucketCounts::Bytes(CountRange::new(buckets)),
            2 => BucketCounts::Words(CountRange::new(buckets)),
            _ => BucketCounts::Wide(CountRange::new(buckets)),
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, BucketCounts::Listed(buckets) if buckets.is_empty())
    }

    /// The buckets that are not empty, in ascending order, with their counts.
    pub fn buckets(&self) -> Vec<(u16, u64)> {
        let mut all = Vec::new();
        match self {
            BucketCounts::Listed(buckets) => all.extend(buckets.iter().map(|bucket| (bucket.number(), bucket.count()))),
            BucketCounts::Bytes(range) => range.append_to(&mut all),
            BucketCounts::Words(range) => range.append_to(&mut all),
            BucketCounts::Wide(range) => range.append_to(&mut all),
        }
        all
    }
}

/// Adds to the count of a bucket, unless that does not fit, or the list has become so long that a range may be smaller.
fn add_to_list(buckets: &mut Vec<ListedBucket>, number: u16, count: u64) -> bool {
    let index = buckets.partition_point(|bucket| bucket.number() < number);
    let is_at_step = (buckets.len() + 1).is_multiple_of(LIST_STEP);
    match buckets.get_mut(index).filter(|bucket| bucket.number() == number) {
        Some(bucket) if bucket.count() + count <= LISTED_MAX => {
            *bucket = ListedBucket::new(number, bucket.count() + count);
            true
        }
        Some(_) => false,
        None if count > LISTED_MAX || is_at_step => false,
        None => {
            insert(buckets, index, ListedBucket::new(number, count));
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    /// What the counts take besides their own size.
    fn memory(counts: &BucketCounts) -> usize {
        match counts {
            BucketCounts::Listed(buckets) => buckets.capacity() * size_of::<ListedBucket>(),
            BucketCounts::Bytes(range) => range.counts.capacity(),
            BucketCounts::Words(range) => range.counts.capacity() * 2,
            BucketCounts::Wide(range) => range.counts.capacity() * 8,
        }
    }

    #[test]
    fn counts_are_those_of_an_ordered_map_in_no_more_memory_than_a_list_takes() {
        let mut random = SeededRandom::seeded("bucket counts", 3);
        for round in 0..300 {
            let (begin, range) = (random.below(1000) as u16, 1 + random.below(200));
            let count_max = [1, 4, 1 << 10, 1 << 24][round % 4];
            let mut expected = BTreeMap::new();
            let mut counts = BucketCounts::default();
            assert!(counts.is_empty());
            for _ in 0..random.below(3000) {
                let number = begin + random.below(range).min(random.below(range)) as u16;
                let count = 1 + random.below(count_max) as u64;
                *expected.entry(number).or_insert(0) += count;
                counts.add(number, count);
            }
            let buckets: Vec<(u16, u64)> = expected.into_iter().collect();
            assert_eq!(counts.buckets(), buckets, "round {round}");
            // A list has a quarter of its room for later buckets. Counts beyond a list's have room for all.
            let list = (buckets.len() + buckets.len() / 4 + 2) * size_of::<ListedBucket>();
            let has_large = buckets.iter().any(|(_, count)| *count > LISTED_MAX);
            assert!(has_large || memory(&counts) <= list, "round {round}: {} of {list}, {counts:?}", memory(&counts));
        }
    }

    #[test]
    fn many_buckets_side_by_side_take_a_byte_each() {
        let mut counts = BucketCounts::default();
        (0..3u64).for_each(|_| (100..228).for_each(|number| counts.add(number, 1)));
        assert!((128..136).contains(&memory(&counts)), "{counts:?}");
        (0..400u64).for_each(|_| counts.add(150, 1));
        assert_eq!(memory(&counts), 256, "{counts:?}");
    }
}
