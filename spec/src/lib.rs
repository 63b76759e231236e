//! The thread_trace format, decided in one place and shared by the recorder and its readers.
//!
//! ```text
//! events.tsv, functions.tsv ──► event      what can be recorded, and with which columns
//!                               record     one line: its widths, its fields, decoded
//!                               encode     lines, written into a buffer; digits: its numbers
//!                               set        which events are wanted (THR_TRACE_EVENTS, trace-cat -e)
//!                               buffer     trbuf: slots and regions, and what of them is still to be written
//!                               info       trinfo and trclock: `key value` lines
//!                               names      the file names of a trace directory
//!                               size       64K, 10M, 1G
//! ```
//!
//! The crate is `no_std` and allocates nothing, because half of it runs inside a stranger's process. Decoders are
//! total: whatever the bytes, they answer with a value or a fault and never panic. The format itself is described
//! for people in `thread_trace(5)`.

#![cfg_attr(not(test), no_std)]

pub mod buffer;
mod digits;
pub mod encode;
pub mod info;
pub mod names;
pub mod record;
pub mod set;
pub mod size;
pub mod tables;

pub use record::{Argument, Record, RecordError};
pub use set::EventSet;
pub use tables::{Base, Column, EVENTS, Event, EventId, FUNCTIONS, Function, Level, LockEffect, RecordKind, Stamp, id};
