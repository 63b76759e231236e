//! Percentiles of durations in little memory.

use std::borrow::Cow;

use super::small_vectors::insert;

/// How many buckets there are from a power of two to the next: the fewest whose durations are at most 3 % off.
const BUCKETS_PER_OCTAVE: u64 = 17;
/// Durations below this power of two have a bucket each.
const SINGLE_LOG: u32 = 6;

/// Counts of durations in buckets whose width grows with the duration. Only buckets that are not empty take memory.
#[derive(Clone, Debug, Default)]
pub struct DurationHistogram {
    /// In ascending order, but for the last ones.
    buckets: Vec<Bucket>,
    /// How many at the end are durations that have not been counted in their buckets yet.
    recent: u32,
    count: u64,
    sum: u64,
    max: u64,
}

/// The most durations that are not counted in their buckets yet, and with how many buckets there may be some. To find the buckets of
/// several durations one after the other costs little more than to find one, because memory is what takes time.
const RECENT_MAX: u32 = 8;
const RECENT_FROM: usize = 32;

/// The number of a bucket in the upper bits, and how many durations it has. What does not fit stands in further elements of the same
/// bucket. There are a hundred of these in each of two histograms of an object: numbers and counts of 16 bytes took a third of a
/// report's memory.
#[derive(Clone, Copy, Debug)]
struct Bucket(u32);

/// How many bits the count of a bucket takes. 11 are left: there are 1,050 buckets.
const COUNT_BITS: u32 = 21;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;

impl Bucket {
    fn new(number: u16, count: u64) -> Bucket {
        Bucket((u32::from(number) << COUNT_BITS) | count as u32)
    }

    fn number(self) -> u16 {
        (self.0 >> COUNT_BITS) as u16
    }

    fn count(self) -> u64 {
        u64::from(self.0) & COUNT_MAX
    }
}

/// What is shown of a histogram, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationSummary {
    pub mean: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

impl DurationHistogram {
    /// Adds a duration in nanoseconds to all but the percentiles, of which there are none if each was added so.
    pub fn add_to_sum(&mut self, duration: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(duration);
        self.max = self.max.max(duration);
    }

    /// Adds a duration in nanoseconds.
    pub fn add(&mut self, duration: u64) {
        self.add_to_sum(duration);
        let number = bucket(duration);
        if self.buckets.len() < RECENT_FROM {
            return self.count_in(number, 1);
        }
        let end = self.buckets.len();
        insert(&mut self.buckets, end, Bucket::new(number, 1));
        self.recent += 1;
        if self.recent == RECENT_MAX {
            self.count_recent();
        }
    }

    /// Counts all durations in their buckets.
    fn count_recent(&mut self) {
        while self.recent > 0 {
            self.recent -= 1;
            if let Some(bucket) = self.buckets.pop() {
                self.count_in(bucket.number(), bucket.count());
            }
        }
    }

    /// The buckets in ascending order.
    fn counted(&self) -> Cow<'_, [Bucket]> {
        if self.recent == 0 {
            return Cow::Borrowed(&self.buckets);
        }
        let mut counted = self.clone();
        counted.count_recent();
        Cow::Owned(counted.buckets)
    }

    /// Adds durations to a bucket.
    fn count_in(&mut self, number: u16, mut count: u64) {
        let in_order = &self.buckets[..self.buckets.len() - self.recent as usize];
        let end = in_order.partition_point(|bucket| bucket.number() <= number);
        if let Some(last) = end.checked_sub(1).map(|index| &mut self.buckets[index]).filter(|it| it.number() == number)
        {
            let added = count.min(COUNT_MAX - last.count());
            *last = Bucket::new(number, last.count() + added);
            count -= added;
        }
        while count > 0 {
            let added = count.min(COUNT_MAX);
            insert(&mut self.buckets, end, Bucket::new(number, added));
            count -= added;
        }
    }

    /// How many durations were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all durations.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Adds all durations of another one.
    pub fn merge(&mut self, other: &DurationHistogram) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
        for bucket in &other.buckets {
            self.count_in(bucket.number(), bucket.count());
        }
    }

    /// The duration in the middle of each bucket that is not empty, and its count; of a bucket with millions several times.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = self.counted().into_owned();
        buckets.into_iter().map(|bucket| (middle(bucket.number()), bucket.count()))
    }

    /// How many durations there are from each power of two to the next, as the exponent and the count. 0 counts as 1.
    pub fn powers_of_two(&self) -> Vec<(u32, u64)> {
        let mut powers: Vec<(u32, u64)> = Vec::new();
        for (middle, count) in self.buckets() {
            let power = (middle | 1).ilog2();
            match powers.last_mut() {
                Some((last, sum)) if *last == power => *sum += count,
                _ => powers.push((power, count)),
            }
        }
        powers
    }

    /// The mean, percentiles (nearest rank, at most 3 % off) and the longest; `None` without a duration, or if they were added to
    /// the sum alone.
    pub fn summary(&self) -> Option<DurationSummary> {
        let mean = self.sum.checked_div(self.count)?;
        let buckets = Some(self.counted()).filter(|buckets| !buckets.is_empty())?;
        let percentile = |percent: u64| {
            let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100) as u64;
            let mut below = 0;
            let bucket = buckets.iter().find(|bucket| {
                below += bucket.count();
                below >= rank
            });
            bucket.map_or(0, |bucket| middle(bucket.number())).min(self.max)
        };
        Some(DurationSummary { mean, p50: percentile(50), p90: percentile(90), p99: percentile(99), max: self.max })
    }
}

/// The bucket of a duration.
fn bucket(duration: u64) -> u16 {
    let octave = (duration | 1).ilog2();
    let Some(octaves) = octave.checked_sub(SINGLE_LOG) else { return duration as u16 };
    let within = (u128::from(duration - (1 << octave)) * u128::from(BUCKETS_PER_OCTAVE)) >> octave;
    ((1 << SINGLE_LOG) + u64::from(octaves) * BUCKETS_PER_OCTAVE + within as u64) as u16
}

/// The duration in the middle of a bucket: both ends are off by the same share of themselves.
fn middle(bucket: u16) -> u64 {
    let Some(from_first) = u64::from(bucket).checked_sub(1 << SINGLE_LOG) else { return bucket.into() };
    let (octaves, within) = (from_first / BUCKETS_PER_OCTAVE, from_first % BUCKETS_PER_OCTAVE);
    let octave = 1u128 << (octaves + u64::from(SINGLE_LOG));
    let begin = |within: u64| octave + (u128::from(within) * octave).div_ceil(BUCKETS_PER_OCTAVE.into());
    let (low, high) = (begin(within), begin(within + 1) - 1);
    (low + low * (high - low) / (low + high)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn a_duration_is_near_the_middle_of_its_bucket() {
        let is_near = |value: u64| {
            let middle = middle(bucket(value));
            assert!(u128::from(middle.abs_diff(value)) * 100 <= u128::from(value) * 3, "{value} {middle}");
            assert_eq!(bucket(middle), bucket(value), "{value} {middle}");
        };
        (0..1 << 14).for_each(is_near);
        for (octave, within) in (14..64).flat_map(|octave| (0..BUCKETS_PER_OCTAVE).map(move |within| (octave, within)))
        {
            let begin = (1u128 << octave) + (u128::from(within) << octave).div_ceil(BUCKETS_PER_OCTAVE.into());
            is_near(begin as u64 - 1);
            is_near(begin as u64);
            assert_eq!(bucket(begin as u64 - 1) + 1, bucket(begin as u64));
        }
        is_near(u64::MAX);
        (0..64).for_each(|value| assert_eq!(middle(bucket(value)), value));
    }

    #[test]
    fn durations_are_counted_by_powers_of_two() {
        let mut histogram = DurationHistogram::default();
        [0, 1, 2, 3, 4, 1023, 1024, 2047, 2048, u64::MAX].into_iter().for_each(|value| histogram.add(value));
        assert_eq!(histogram.powers_of_two(), [(0, 2), (1, 2), (2, 1), (9, 1), (10, 2), (11, 1), (63, 1)]);
    }

    #[test]
    fn a_bucket_has_more_durations_than_an_element_counts() {
        let mut histogram = DurationHistogram::default();
        (0..COUNT_MAX + 5).for_each(|_| histogram.add(1000));
        histogram.add(7);
        histogram.add(1 << 40);
        let mut sum = histogram.clone();
        sum.merge(&histogram);
        sum.merge(&histogram);
        for (histogram, times) in [(&histogram, 1), (&sum, 3)] {
            let of_1000: u64 =
                histogram.buckets().filter(|(middle, _)| (900..1100).contains(middle)).map(|it| it.1).sum();
            assert_eq!((of_1000, histogram.count()), (times * (COUNT_MAX + 5), times * (COUNT_MAX + 7)));
            assert_eq!(histogram.powers_of_two(), [(2, times), (9, times * (COUNT_MAX + 5)), (40, times)]);
            assert!(
                histogram
                    .summary()
                    .is_some_and(|summary| summary.p50 == summary.p99 && summary.p50 == middle(bucket(1000)))
            );
        }
    }

    #[test]
    fn the_number_of_the_last_bucket_fits() {
        assert_eq!(Bucket::new(bucket(u64::MAX), COUNT_MAX).number(), bucket(u64::MAX));
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let mut random = SeededRandom::seeded("histogram", 7);
        for count in [1usize, 2, 3, 10, 99, 100, 101, 5000] {
            let mut values: Vec<u64> = (0..count).map(|_| random.next() >> random.below(64)).collect();
            let mut histogram = DurationHistogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_unstable();
            let summary = histogram.summary().unwrap();
            for (percent, got) in [(50, summary.p50), (90, summary.p90), (99, summary.p99)] {
                let exact = values[(count * percent).div_ceil(100) - 1];
                assert!(got.abs_diff(exact) <= exact / 33, "{percent} of {count}: {got} {exact}");
            }
            assert_eq!((summary.max, histogram.count()), (values[count - 1], count as u64));
        }
        assert_eq!(DurationHistogram::default().summary(), None);
    }
}
