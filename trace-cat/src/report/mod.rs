//! Reports: who waits for whom (`contention`, `critical_path`, `page`), what changed from one trace to another
//! (`comparison`), the processes and runs of a trace, and counts of its records.

pub mod comparison;
pub mod contention;
pub mod critical_path;
pub mod host_list;
pub mod lock_order;
pub mod misuse;
pub mod object_names;
pub mod page;
pub mod process_info;
pub mod recorded_process;
pub mod runs;
pub mod stat;
pub mod trace_names;
