//! From the paths on the command line to the texts that are to be merged.

mod path_search;
mod spooled_file;
mod text_collector;

pub use text_collector::{TraceInputs, collect, collect_if_any, collect_processes};
