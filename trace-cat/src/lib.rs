//! Reads the records that libthreadt.so writes.
//!
//! # Layers
//!
//! Each module imports only from modules in lines below its own.
//!
//! - `cli`: the command line: dispatch, messages, exit statuses, printing
//! - `launch`: `trace-cat run`
//! - `follow`, `recover`: `--follow` and `--recover`
//! - `report`: runs, and counts of what is in a trace
//! - `output`: the output formats, and where output goes
//! - `filter`, `arrange`: which records, and other orders than that of time
//! - `calls`: pairs of entry and return records, and which calls waited
//! - `merge`: one timeline of many files
//! - `trace`: directories, files, buffers, liveness, completeness, the index of times
//! - `record`: the columns of a record's line
//! - `options`: the table of command-line options and what they mean
//! - `support`: diagnostics, progress, errors, threads, temporary files, local time

mod arrange;
mod calls;
pub mod cli;
mod filter;
mod follow;
mod launch;
mod merge;
mod options;
mod output;
mod record;
mod recover;
mod report;
mod support;
#[cfg(test)]
mod testing;
mod trace;
