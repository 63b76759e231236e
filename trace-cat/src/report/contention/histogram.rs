//! Percentiles of durations in little memory.

use super::bucket_counts::BucketCounts;

/// How many buckets there are from a power of two to the next: the fewest whose durations are at most 3 % off.
const BUCKETS_PER_OCTAVE: u64 = 17;
/// Durations below this power of two have a bucket each.
const SINGLE_LOG: u32 = 6;

/// Counts of durations in buckets whose width grows with the duration. There are 1,050 buckets.
#[derive(Clone, Debug, Default)]
pub struct DurationHistogram {
    counts: BucketCounts,
    count: u64,
    sum: u64,
    max: u64,
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
        self.counts.add(bucket(duration), 1);
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
        if self.counts.is_empty() {
            self.counts = other.counts.clone();
            return;
        }
        other.counts.buckets().into_iter().for_each(|(bucket, count)| self.counts.add(bucket, count));
    }

    /// The duration in the middle of each bucket that is not empty, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.buckets().into_iter().map(|(bucket, count)| (middle(bucket), count))
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
        let buckets = Some(self.counts.buckets()).filter(|buckets| !buckets.is_empty())?;
        let percentile = |percent: u64| {
            let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100) as u64;
            let mut below = 0;
            let bucket = buckets.iter().find(|(_, count)| {
                below += count;
                below >= rank
            });
            bucket.map_or(0, |(bucket, _)| middle(*bucket)).min(self.max)
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
    fn a_bucket_may_have_millions_of_durations() {
        const MANY: u64 = 1 << 21;
        let mut histogram = DurationHistogram::default();
        (0..MANY + 5).for_each(|_| histogram.add(1000));
        histogram.add(7);
        histogram.add(1 << 40);
        let mut sum = histogram.clone();
        sum.merge(&histogram);
        sum.merge(&histogram);
        for (histogram, times) in [(&histogram, 1), (&sum, 3)] {
            let of_1000: u64 =
                histogram.buckets().filter(|(middle, _)| (900..1100).contains(middle)).map(|it| it.1).sum();
            assert_eq!((of_1000, histogram.count()), (times * (MANY + 5), times * (MANY + 7)));
            assert_eq!(histogram.powers_of_two(), [(2, times), (9, times * (MANY + 5)), (40, times)]);
            assert!(
                histogram
                    .summary()
                    .is_some_and(|summary| summary.p50 == summary.p99 && summary.p50 == middle(bucket(1000)))
            );
        }
    }

    #[test]
    fn the_number_of_the_last_bucket_fits_into_a_list() {
        assert!(bucket(u64::MAX) < 1 << 11);
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
