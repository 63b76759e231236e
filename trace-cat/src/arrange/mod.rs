//! Records in another order than that of time, or in several files.
//!
//! ```text
//! sort    --sort: by thread or by event
//! split   --split: a file for each process, LWP, object or category
//! ```

mod sort;
mod split;

pub use sort::Sorter;
pub use split::Splitter;
