//! Student's t distribution.

use std::f64::consts::FRAC_PI_2;

/// In how many steps the density is added up. With sixty degrees of freedom its peak is ten steps wide.
const STEPS: usize = 128;

/// The probability that chance alone makes a value as far from 0 as `t`, on either side. There is one degree of freedom at least.
pub fn two_sided_probability(t: f64, freedom: f64) -> f64 {
    // With t = √freedom tan a, the density of the angle a is a power of its cosine.
    tail((t.abs() / freedom.sqrt()).atan(), freedom) / tail(0.0, freedom)
}

/// The value that chance alone exceeds, on either side, with a probability.
pub fn two_sided_limit(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    let all = tail(0.0, freedom) * probability;
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if tail(middle, freedom) > all {
            low = middle;
        } else {
            high = middle;
        }
    }
    freedom.sqrt() * low.tan()
}

/// The area below a power of the cosine, from an angle on, by Simpson's rule.
fn tail(from: f64, freedom: f64) -> f64 {
    let step = (FRAC_PI_2 - from) / STEPS as f64;
    let height = |index: usize| (from + step * index as f64).cos().max(0.0).powf(freedom - 1.0);
    let weighted = |index: usize| height(index) * if index.is_multiple_of(2) { 2.0 } else { 4.0 };
    (height(0) + (1..STEPS).map(weighted).sum::<f64>() + height(STEPS)) * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_tables() {
        for (probability, freedom, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 5.0, 2.571),
            (0.01, 10.0, 3.169),
            (0.001, 30.0, 3.646),
            (0.05, 60.0, 2.000),
        ] {
            let limit = two_sided_limit(probability, freedom);
            assert!((limit / expected - 1.0).abs() < 0.001, "{probability} {freedom}: {limit}");
            assert!((two_sided_probability(-limit, freedom) / probability - 1.0).abs() < 1e-6);
        }
        assert_eq!(two_sided_probability(0.0, 7.5), 1.0);
    }
}
