//! Measurements, and the figures that stand for several of them.

/// One run of a workload in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// In the workload's unit: nanoseconds a turn, seconds, or KiB.
    pub figure: f64,
    /// CPU seconds of every process that took part, daemons included, from the start of the program until its trace is
    /// complete.
    pub cpu: f64,
    /// Length of the files that the way left behind.
    pub written: u64,
    /// Records in them, where they can be counted.
    pub records: Option<u64>,
    /// Records that the way reports as lost: discarded or overwritten.
    pub lost: u64,
    /// The most memory in use, in KiB.
    pub peak: u64,
}

/// Median, least and most of several figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Summary {
    /// Of any number of figures but none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median =
            if figures.len() % 2 == 1 { figures[middle] } else { (figures[middle - 1] + figures[middle]) / 2.0 };
        Some(Summary { median, min, max })
    }
}

/// All runs of a workload in one way.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// At least one.
    Measured(Vec<Sample>),
    /// It could not be measured, and why.
    Not(String),
}

impl Cell {
    /// One column of the runs; None if there were none.
    pub fn summary(&self, column: impl Fn(&Sample) -> f64) -> Option<Summary> {
        match self {
            Cell::Measured(samples) => Summary::of(samples.iter().map(column)),
            Cell::Not(_) => None,
        }
    }

    /// The median of the workload's own figure.
    pub fn figure(&self) -> Option<f64> {
        self.summary(|sample| sample.figure).map(|summary| summary.median)
    }

    /// The median of the CPU seconds.
    pub fn cpu(&self) -> Option<f64> {
        self.summary(|sample| sample.cpu).map(|summary| summary.median)
    }

    /// Adds the result of one more run. A way that failed once has no figures, whatever it did before.
    pub fn add(&mut self, run: Result<Sample, String>) {
        match (self, run) {
            (Cell::Measured(samples), Ok(sample)) => samples.push(sample),
            (cell @ Cell::Measured(_), Err(reason)) => *cell = Cell::Not(reason),
            (Cell::Not(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_odd_and_an_even_number() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([3.0]), Some(Summary { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(Summary::of([9.0, 1.0, 2.0]), Some(Summary { median: 2.0, min: 1.0, max: 9.0 }));
        assert_eq!(Summary::of([10.0, 1.0, 2.0, 4.0]), Some(Summary { median: 3.0, min: 1.0, max: 10.0 }));
    }

    #[test]
    fn a_way_that_failed_once_is_not_measured() {
        let sample = |figure| Sample { figure, ..Sample::default() };
        let mut cell = Cell::Measured(Vec::new());
        assert_eq!(cell.figure(), None);
        cell.add(Ok(sample(5.0)));
        cell.add(Ok(sample(7.0)));
        assert_eq!(cell.figure(), Some(6.0));
        cell.add(Err("died".to_owned()));
        cell.add(Ok(sample(5.0)));
        assert_eq!(cell, Cell::Not("died".to_owned()));
    }
}
