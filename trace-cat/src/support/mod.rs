//! What every layer uses: diagnostics, progress, errors, threads, temporary files, durations, local time,
//! the monotonic clock, words of commands, text of others, counts, directories of outputs.

pub mod counted;
pub mod diagnostics;
pub mod duration;
pub mod error;
pub mod external_sort;
pub mod inherited_state;
pub mod local_time;
pub mod monotonic_clock;
pub mod output_directory;
pub mod progress;
pub mod shell;
pub mod temporary_files;
pub mod threads;
pub mod visible_text;
