//! From paths to texts whose records can be read in order.
//!
//! `inputs` lists the paths by the `file_names` in them, and makes a `record_text` of each record file: its bytes, overlaid
//! with and followed by what `buffers` finds in the trbuf of its process; how a trbuf is read depends on `process_liveness`.
//! A `record_reader` reads such a text. `scan` does so once for every text, reports damage, and makes a `time_index`: which
//! times are where. If the directories are of several `hosts`, texts are read through a `host_view`. `copied_directories` are left out first.

pub mod buffers;
pub mod copied_directories;
pub mod counted_losses;
pub mod file_handle;
pub mod file_names;
pub mod host_clock;
pub mod host_directories;
mod host_groups;
pub mod host_view;
pub mod hosts;
pub mod inputs;
pub mod interned_names;
pub mod known_files;
pub mod process_liveness;
pub mod record_reader;
pub mod record_text;
pub mod scan;
pub mod thread_completeness;
pub mod time_index;

#[cfg(test)]
mod directory_tests;
#[cfg(test)]
mod ring_tests;
