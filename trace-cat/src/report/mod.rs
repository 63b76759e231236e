//! The processes and runs of a trace, and counts of its records.
//!
//! ```text
//! process_info   the processes of directories, from the names of their files and from trinfo
//! runs           which processes belong together
//! stat           --stat: counts of processes, events and objects
//! ```

pub mod process_info;
pub mod runs;
pub mod stat;
