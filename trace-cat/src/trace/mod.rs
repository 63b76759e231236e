//! From paths to texts whose records can be read in order.
//!
//! ```text
//! process  whose a file is, by its name
//! inputs   which files, each once, with the rest of dead processes
//! alive    whether a trbuf's process still runs
//! slots    the slots of a trbuf, one after the other; region: the text of one
//! trbuf    what a dead process left in its buffers
//! running  what a running process has in its buffers, copied
//!   buffers  where text may go to a file meanwhile
//!   rings    where records may be overwritten meanwhile; survivors: what of a copy is good
//! whole    from what moment on each thread is complete
//! text     one file's bytes, put together from the file and the trbuf
//! handle   a file that need not stay open
//! records  the records of a text, and what is none
//! check    whether a line is a record; columns: its fixed columns; plain: many of the usual kind, fast
//! scan     reads texts once: what is damaged, and the index
//! index    where in a text which times are
//! ```

pub mod buffers;
pub mod completeness;
pub mod file_handle;
pub mod file_names;
pub mod inputs;
pub mod liveness;
pub mod record_reader;
pub mod record_text;
pub mod scan;
pub mod time_index;

#[cfg(test)]
mod ring_tests;
#[cfg(test)]
mod tests;
