//! What every layer uses.

pub mod diagnostics;
pub mod duration;
pub mod error;
pub mod external_sort;
pub mod inherited_state;
pub mod local_time;
pub mod progress;
pub mod temporary_files;
pub mod threads;
