//! What there is to know of a trace beside its records.
//!
//! ```text
//! process_info   the processes of directories, as their trinfo files tell
//! runs           which of them belong together
//! stat           counts of what the records are
//! ```

pub mod process_info;
pub mod runs;
pub mod stat;
