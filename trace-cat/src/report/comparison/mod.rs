//! What became better or worse from one trace to another: waits of objects and sites that have the same name in both.

mod compared_row;
mod matching;
mod t_distribution;
mod trace_comparison;
mod variation;

pub use compared_row::{ComparedRow, WaitChange, WaitFigures, compare};
pub use matching::NamedWaits;
pub use trace_comparison::TraceComparison;
