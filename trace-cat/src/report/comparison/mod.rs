//! What became better or worse from one trace to another: waits of objects and sites that have the same name in both.

mod bootstrap;
mod compared_row;
mod matching;
mod trace_comparison;

pub use compared_row::{ComparedRow, WaitChange, WaitFigures, compare};
pub use matching::NamedWaits;
pub use trace_comparison::TraceComparison;
