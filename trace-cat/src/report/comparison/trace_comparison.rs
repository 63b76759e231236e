//! What changed from one trace to another.

use super::compared_row::{ComparedRow, regression};

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
    /// By how many percent something certainly became worse; `None` if there is nothing to compare.
    pub fn regression(&self) -> Option<f64> {
        self.spans.iter().all(Option::is_some).then(|| regression(self.objects.iter().chain(&self.sites)))
    }
}
