//! The processes and runs of a trace, and counts of its records.

pub mod process_info;
pub mod runs;
pub mod stat;
