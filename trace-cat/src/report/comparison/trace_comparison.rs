//! What changed from one trace to another.

use super::compared_row::{ComparedRow, regression};

/// Of the changes that are called certain, how many may be chance.
const FALSE_SHARE: f64 = 0.05;

/// What became of the waits of a trace, OLD, in another one, NEW.
pub struct TraceComparison {
    pub objects: Vec<ComparedRow>,
    pub sites: Vec<ComparedRow>,
    /// How long the traces are as far as they are selected, in nanoseconds; `None` without records.
    pub spans: [Option<u64>; 2],
    /// How many objects for which threads waited have no name.
    pub unnamed: usize,
}

impl TraceComparison {
    /// Decides which of the rows, of objects and of sites, have changed.
    pub fn new([objects, sites]: [Vec<ComparedRow>; 2], spans: [Option<u64>; 2], unnamed: usize) -> TraceComparison {
        let mut comparison = TraceComparison { objects, sites, spans, unnamed };
        let rows = || comparison.objects.iter().chain(&comparison.sites);
        let limit = chance_limit(rows().filter_map(ComparedRow::chance).collect());
        let rows = comparison.objects.iter_mut().chain(&mut comparison.sites);
        rows.for_each(|row| row.decide(limit));
        comparison
    }

    /// By how many percent something certainly became worse; `None` if there is nothing to compare.
    pub fn regression(&self) -> Option<f64> {
        self.spans.iter().all(Option::is_some).then(|| regression(self.objects.iter().chain(&self.sites)))
    }
}

/// How unlikely by chance alone a change has to be among changes as likely as these (Benjamini and Hochberg): of many, some are
/// unlikely by chance.
fn chance_limit(mut chances: Vec<f64>) -> f64 {
    chances.sort_by(f64::total_cmp);
    let count = chances.len() as f64;
    let limits = (1..).zip(&chances).map(|(rank, chance)| (*chance, FALSE_SHARE * f64::from(rank) / count));
    limits.filter(|(chance, limit)| chance <= limit).map(|(_, limit)| limit).fold(0.0, f64::max)
}
