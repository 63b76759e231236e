//! How much figures of waits vary by chance: intervals for the ratios of the means and of the times waited per second.
//!
//! This is the Poisson bootstrap: in a resample, each bucket of the histogram has a Poisson number of waits whose mean is its count.
//! For a large count that is a normal distribution. So the cost depends on the number of buckets, not of waits. The seed is fixed:
//! the same traces have the same intervals.

use fastrand::Rng;

use crate::report::contention::DurationHistogram;

const RESAMPLES: usize = 1000;
/// How many of the resamples are below the interval, and how many above it: together 5 %.
const OUTSIDE: usize = RESAMPLES / 40;
const SEED: u64 = 1;
/// With fewer waits there is no interval of the mean.
const WAITS_MIN: u64 = 20;
/// From this count on, a Poisson number is taken from a normal distribution.
const NORMAL_FROM: u64 = 16;

/// Where a ratio of NEW to OLD is in 95 of 100 resamples.
pub type RatioInterval = [f64; 2];

/// The waits of a trace and its duration in nanoseconds.
#[derive(Clone, Copy)]
pub struct TimedWaits<'a> {
    pub wait: &'a DurationHistogram,
    pub span: u64,
}

/// The intervals for the ratio of the means, which needs enough waits in both, and for that of the times waited per second, which needs
/// enough in one: in the other one, waits as in the first are added until there are enough, so that a few cannot make the ratio
/// as large as one likes.
pub fn ratio_intervals(old: TimedWaits, new: TimedWaits) -> [Option<RatioInterval>; 2] {
    let has_enough = |waits: TimedWaits| waits.wait.count() >= WAITS_MIN;
    if !has_enough(old) && !has_enough(new) {
        return [None, None];
    }
    let mut random = Rng::with_seed(SEED);
    let resampled = [old, new].map(|waits| resamples(waits.wait, &mut random));
    let mean = |(count, sum): (f64, f64)| sum / count;
    let means = interval(&resampled, [mean, mean]);
    let rate = |waits: TimedWaits, other: TimedWaits| {
        let missing = WAITS_MIN.saturating_sub(waits.wait.count()) as f64;
        let added = missing * other.wait.sum() as f64 / other.wait.count().max(1) as f64;
        move |(_, sum): (f64, f64)| (sum + added) / waits.span as f64
    };
    let rates = interval(&resampled, [rate(old, new), rate(new, old)]);
    let has_both = has_enough(old) && has_enough(new);
    [Some(means).filter(|_| has_both), Some(rates).filter(|_| old.span > 0 && new.span > 0)]
}

/// The number and the sum of the waits in each resample.
fn resamples(wait: &DurationHistogram, random: &mut Rng) -> Vec<(f64, f64)> {
    let middles: f64 = wait.buckets().map(|(middle, count)| middle as f64 * count as f64).sum();
    let scale = if middles > 0.0 { wait.sum() as f64 / middles } else { 1.0 };
    let mut resample = |_| {
        let add = |(all, sum): (f64, f64), (middle, count): (u64, u64)| {
            let drawn = poisson(count, random);
            (all + drawn, sum + drawn * middle as f64 * scale)
        };
        wait.buckets().fold((0.0, 0.0), add)
    };
    (0..RESAMPLES).map(&mut resample).collect()
}

/// The interval for the ratio of a figure of OLD and NEW.
fn interval(resampled: &[Vec<(f64, f64)>; 2], figures: [impl Fn((f64, f64)) -> f64; 2]) -> RatioInterval {
    let [old, new] = resampled;
    let ratio = |(old, new): (&(f64, f64), &(f64, f64))| {
        let ratio = figures[1](*new) / figures[0](*old);
        // Neither has waited.
        if ratio.is_nan() { 1.0 } else { ratio }
    };
    let mut ratios: Vec<f64> = old.iter().zip(new).map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    [ratios[OUTSIDE], ratios[RESAMPLES - 1 - OUTSIDE]]
}

fn poisson(mean: u64, random: &mut Rng) -> f64 {
    let mut uniform = || 1.0 - random.f64();
    if mean >= NORMAL_FROM {
        let normal = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let mean = mean as f64;
        return (mean + mean.sqrt() * normal).round().max(0.0);
    }
    // The events that happen in a time of `mean`, one a time on average.
    let limit = (-(mean as f64)).exp();
    let (mut product, mut events) = (uniform(), 0.0);
    while product > limit {
        product *= uniform();
        events += 1.0;
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn poisson_numbers_have_their_mean_and_variance() {
        let mut random = Rng::with_seed(2);
        for mean in [1, 3, 15, 16, 1000] {
            let numbers: Vec<f64> = (0..20_000).map(|_| poisson(mean, &mut random)).collect();
            let mean = mean as f64;
            let average = numbers.iter().sum::<f64>() / 20_000.0;
            let variance = numbers.iter().map(|number| (number - average).powi(2)).sum::<f64>() / 20_000.0;
            assert!((average / mean - 1.0).abs() < 0.05 && (variance / mean - 1.0).abs() < 0.1, "{mean} {average}");
        }
    }

    #[test]
    fn halves_of_the_same_waits_differ_by_chance_alone() {
        let mut random = SeededRandom::seeded("halves", 3);
        let mut misses = 0;
        for _ in 0..100 {
            let mut halves = [DurationHistogram::default(), DurationHistogram::default()];
            for index in 0..400 {
                halves[index % 2].add(1000 + (random.next() >> (44 + random.below(10))));
            }
            let [old, new] = halves.each_ref().map(|wait| TimedWaits { wait, span: 1_000_000 });
            let [mean, _] = ratio_intervals(old, new);
            let [low, high] = mean.unwrap();
            misses += usize::from(!(low..=high).contains(&1.0));
        }
        assert!(misses <= 12, "{misses}");
    }
}
