//! From paths to texts whose records can be read in order.
//!
//! The way of a directory, by files:
//!
//! 1. `file_names` parses a file's name: whose file it is, and what kind.
//! 2. `inputs` lists the paths, and makes a text of each record file and of what its process has in its buffers.
//! 3. `buffers` finds what a process has in its trbuf and in no record file. `process_liveness` decides whether the
//!    process still runs, which decides how its trbuf is read.
//! 4. `record_text` is such a text: the bytes of a record file, overlaid with and followed by bytes of the trbuf.
//! 5. `thread_completeness` reports which threads overwrote records, and from when on each is complete.
//! 6. `record_reader` reads a text record by record; `scan` does so once for every text, reports damage, and makes a
//!    `time_index`: which times are where.
//!
//! `file_handle` is a file that does not need to stay open.

pub mod buffers;
pub mod file_handle;
pub mod file_names;
pub mod inputs;
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
