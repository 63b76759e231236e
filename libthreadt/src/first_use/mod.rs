//! The first use of the library: it is initialised at the first call of a hook in each process, and makes the process's
//! files at the first record.

mod files;
mod initialise;
pub mod process_info;

pub use files::prepare_files;
pub use initialise::{after_fork_in_child, initialise, is_recording, records, switch};
