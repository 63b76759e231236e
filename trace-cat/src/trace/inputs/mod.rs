//! From the paths on the command line to the texts that are to be merged.
//!
//! ```text
//! path_search      the record files and the processes that the paths stand for, by their names
//! text_collector   a text of each record file and of what its process has in its buffers
//! spooled_file     a temporary file with what a pipe gave, since texts are read twice
//! ```

mod path_search;
mod spooled_file;
mod text_collector;

pub use text_collector::{TraceInputs, collect, collect_if_any};
