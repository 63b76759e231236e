//! Records in another order than that of time, or in several files.

mod sort;
mod split;

pub use sort::Sorter;
pub use split::Splitter;
