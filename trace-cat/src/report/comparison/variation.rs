//! How much figures of waits vary by chance: intervals for the ratios of the means and of the times waited per second.
//!
//! Waits are not independent: those behind the same long hold come together, and one that is late makes others late. So the waits of
//! a block of time count as one observation. How much these vary is found from the differences of neighbours, since the phases of a
//! program, which differ in both traces alike, are no chance. Blocks of two lengths are tried, and the one that shows more
//! variation counts: in too short blocks, neighbours are alike. Where few blocks have most of the time, little is known of the
//! variation, and the interval is as much wider.

use super::t_distribution::{two_sided_limit, two_sided_probability};
use crate::report::contention::{WaitBlock, WaitBlocks};

/// How likely it is that an interval leaves out the ratio.
const OUTSIDE: f64 = 0.05;
/// With fewer waits there is no interval of the mean.
const WAITS_MIN: u64 = 20;
/// A block is at least as long as so many mean waits: those that wait at the same time are in one, or in two.
const WAITS_IN_BLOCK: u64 = 2;
/// Longer blocks are tried as long as there are so many.
const BLOCKS_MIN: usize = 10;

/// Where a ratio of NEW to OLD is, with a probability of 95 %.
pub type RatioInterval = [f64; 2];

/// What is known of a ratio of NEW to OLD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    pub interval: RatioInterval,
    /// How likely it is that chance alone makes a ratio as far from 1.
    pub chance: f64,
    pub is_increase: bool,
}

/// The waits of a trace and its duration in nanoseconds.
#[derive(Clone, Copy)]
pub struct TimedWaits<'a> {
    pub blocks: &'a WaitBlocks,
    pub span: u64,
}

/// A sum or a mean, the variance of its logarithm, and of how many degrees of freedom that is.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    value: f64,
    variance: f64,
    freedom: f64,
}

/// The ratio of the means, which needs enough waits in both, and that of the times waited per second, which needs enough in one: in
/// the other one, waits as in the first are added until there are enough, so that a few cannot make the ratio as large as one
/// likes.
pub fn ratios(old: TimedWaits, new: TimedWaits) -> [Option<RatioEstimate>; 2] {
    let sides = [old, new];
    let totals = sides.map(|side| side.blocks.total());
    let has_enough = totals.map(|total| total.waits >= WAITS_MIN);
    if has_enough == [false; 2] {
        return [None, None];
    }
    let [means, sums] = [mean_residuals, sum_residuals].map(|residuals| {
        let estimate = |index: usize| has_enough[index].then(|| spread(sides[index].blocks, residuals)).flatten();
        [estimate(0), estimate(1)]
    });
    let per_wait = |index: usize| {
        let total = totals[index];
        means[index].map(|mean: Estimate| Estimate { value: mean.value / total.waits as f64, ..mean })
    };
    let per_second = |index: usize| {
        let sum = if has_enough[index] {
            sums[index]
        } else {
            Some(completed(sides[index].blocks, totals[1 - index], sums[1 - index]?))
        };
        sum.map(|sum: Estimate| Estimate { value: sum.value / sides[index].span as f64, ..sum })
    };
    let rate = || ratio(per_second(0)?, per_second(1)?);
    [
        per_wait(0).zip(per_wait(1)).and_then(|(old, new)| ratio(old, new)),
        rate().filter(|_| old.span > 0 && new.span > 0),
    ]
}

/// What of each block's time is not that of so many waits: it varies as the mean does.
fn mean_residuals(blocks: &[WaitBlock], total: WaitBlock) -> Vec<f64> {
    let mean = total.waited as f64 / total.waits as f64;
    blocks.iter().map(|block| block.waited as f64 - mean * block.waits as f64).collect()
}

/// Each block's time.
fn sum_residuals(blocks: &[WaitBlock], _: WaitBlock) -> Vec<f64> {
    blocks.iter().map(|block| block.waited as f64).collect()
}

/// The time waited, and how much it varies as far as the residuals show; `None` if waits are too long for two blocks.
fn spread(blocks: &WaitBlocks, residuals: fn(&[WaitBlock], WaitBlock) -> Vec<f64>) -> Option<Estimate> {
    let total = blocks.total();
    // A clock may be too coarse for any of the waits.
    let value = total.waited.max(1) as f64;
    let estimate = |blocks: &[WaitBlock]| {
        let count = blocks.len() as f64;
        let residuals = residuals(blocks, total);
        let differences: f64 = residuals.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
        let variance = differences * count / (2.0 * (count - 1.0)) / (value * value);
        // As many blocks as would have all of the time if they had as much as each other.
        let squares: f64 = blocks.iter().map(|block| (block.waited as f64).powi(2)).sum();
        let effective = if squares > 0.0 { value * value / squares } else { count };
        Estimate { value, variance, freedom: effective.min(count) - 1.0 }
    };
    let length_min = WAITS_IN_BLOCK * total.waited / total.waits.max(1);
    let levels: Vec<_> = blocks.levels().into_iter().skip_while(|(length, _)| *length < length_min).collect();
    let tried = levels.iter().enumerate().filter(|(index, (_, level))| *index == 0 || level.len() >= BLOCKS_MIN);
    tried.map(|(_, (_, level))| estimate(level)).max_by(|a, b| a.variance.total_cmp(&b.variance))
}

/// The time of few waits and of as many of the other trace as are missing. Each block is an event that might as well not have been.
fn completed(blocks: &WaitBlocks, other: WaitBlock, other_sum: Estimate) -> Estimate {
    let total = blocks.total();
    let share = WAITS_MIN.saturating_sub(total.waits) as f64 / other.waits as f64;
    let value = total.waited as f64 + share * other_sum.value;
    let own: f64 = sum_residuals(blocks.blocks(), total).iter().map(|waited| waited.powi(2)).sum();
    let added = share * other_sum.variance * other_sum.value.powi(2);
    Estimate { value, variance: (own + added) / (value * value), freedom: other_sum.freedom }
}

/// `None` if too little is known of the variation.
fn ratio(old: Estimate, new: Estimate) -> Option<RatioEstimate> {
    let logarithm = (new.value / old.value).ln();
    let variance = old.variance + new.variance;
    let parts = [old, new].map(|side| side.variance.powi(2) / side.freedom);
    // Welch and Satterthwaite. What does not vary is certain.
    let freedom =
        if variance > 0.0 { variance.powi(2) / parts.iter().filter(|part| !part.is_nan()).sum::<f64>() } else { 1.0 };
    if freedom.is_nan() || freedom < 1.0 {
        return None;
    }
    let error = variance.sqrt();
    let reach = error * two_sided_limit(OUTSIDE, freedom);
    let chance = match () {
        () if logarithm == 0.0 => 1.0,
        () if error == 0.0 => 0.0,
        () => two_sided_probability(logarithm / error, freedom),
    };
    let interval = [(logarithm - reach).exp(), (logarithm + reach).exp()];
    Some(RatioEstimate { interval, chance, is_increase: logarithm > 0.0 })
}
