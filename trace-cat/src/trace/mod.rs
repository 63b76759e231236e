//! From paths to texts whose records can be read in order.
//!
//! ```text
//! file_names      whose a file is, by its name
//! inputs          which files, each once, completed with what dead processes left
//! liveness        whether a trbuf's process still runs
//! buffers         what processes have in their trbufs
//! completeness    from when on each thread is complete
//! record_text     one file's bytes, put together from the file and the trbuf
//! file_handle     a file that need not stay open
//! record_reader   the records of a text, and what is none
//! scan            reads texts once: what is damaged, and the index
//! time_index      where in a text which times are
//! ```

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
