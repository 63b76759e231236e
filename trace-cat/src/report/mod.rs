//! Reports: who waits for whom (`contention`, `critical_path`, `page`), the processes and runs of a trace, and counts of its records.

pub mod contention;
pub mod critical_path;
pub mod page;
pub mod process_info;
pub mod recorded_process;
pub mod runs;
pub mod stat;
