//! The thread_trace format, which the recorder and its readers share.
//!
//! The crate is `no_std` and allocates nothing, because the recorder runs inside the process that it traces. Decoders are
//! total: for any input they return a value or an error, and never panic. `thread_trace(5)` describes the format for its
//! users.
//!
//! # Layers
//!
//! - `buffer`: the trbuf file: its layout, its structures, and what a dead process left in it
//! - `encode`: records, written into a buffer
//! - `arguments`: the columns a1 to a5 of a record, written
//! - `record`, `set`, `info`, `names`: one record decoded; lists of events; trinfo and trclock; names of files
//! - `tables`, `futex_locks`, `digits`, `size`: the rows of `events.tsv` and `functions.tsv`; digits of numbers; `64K`, `10M`, `1G`
//! - `file_systems`: which of them can be trusted with leases, and how much of them stays free

#![cfg_attr(not(test), no_std)]

mod arguments;
pub mod buffer;
mod digits;
pub mod encode;
pub mod file_systems;
pub mod futex_locks;
pub mod info;
pub mod names;
pub mod record;
pub mod set;
pub mod size;
pub mod tables;

pub use digits::hex_digit;
pub use record::{Argument, Record, RecordError};
pub use set::EventSet;
pub use tables::{
    Base, Column, EVENTS, Event, EventId, FUNCTIONS, Function, Level, LockEffect, RecordKind, Stamp, event_numbers, id,
};
