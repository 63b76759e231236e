//! From paths to texts whose records can be read in order.
//!
//! ```text
//! process  whose a file is, by its name
//! inputs   which files, each once, with the rest of dead processes
//! alive    whether a trbuf's process still runs
//! slots    the slots of a trbuf, one after the other
//! trbuf    what a dead process left in its buffers
//! text     one file's bytes, put together from the file and the trbuf
//! handle   a file that need not stay open
//! records  the records of a text, and what is none
//! check    whether a line is a record; columns: its fixed columns
//! runs     where a text's times descend, and what is damaged
//! ```

pub mod alive;
pub mod check;
pub mod columns;
pub mod handle;
pub mod inputs;
pub mod process;
pub mod records;
pub mod runs;
pub mod slots;
pub mod text;
pub mod trbuf;

#[cfg(test)]
mod tests;
