//! Chooses the parts of an analysis.

use super::analysis::Analysis;
use super::analysis_parts::AnalysisParts;
use crate::report::lock_order::LockOrder;

impl Analysis {
    /// Makes the analysis, before its first record, one of these parts alone.
    pub fn limit_to(&mut self, parts: AnalysisParts) {
        self.parts = parts;
        self.order = parts.lock_order.then(LockOrder::default);
        self.activities.is_off = !parts.critical_paths;
    }
}
