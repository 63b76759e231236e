//! Reads the traces that libthreadt.so records: opens a directory, merges its files into one timeline, and pairs entry
//! and return records into calls. The program trace-cat is a user of this library.
//!
//! Damage in a trace is no error: it goes to a sink as a [`Diagnostic`], and what can be read is read.
//! [`Diagnostics::has_damage`] returns whether anything is missing. Nothing here prints, and nothing exits. To ask whether a
//! process runs, SIGIO is set to be ignored.
//!
//! # Examples
//!
//! All records of a directory in order:
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! # let line = |time, lwp, event| format!("1795174740:{time:09}:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:0x5570:0:0:0:0\n");
//! # std::fs::write(directory.path().join("tr.0000001.002"), line(1, 2, "02:02:1") + &line(3, 2, "02:02:2"))?;
//! # std::fs::write(directory.path().join("tr.0000001.003"), line(2, 3, "02:04:0"))?;
//! use std::ops::ControlFlow;
//! use trace_cat::{Diagnostics, Trace};
//!
//! let diagnostics = Diagnostics::new(|diagnostic| eprintln!("{diagnostic}"));
//! let trace = Trace::open([directory.path()], &diagnostics)?;
//! let mut names = Vec::new();
//! trace.for_each_record(|record| {
//!     names.extend(record.event().map(|event| (record.lwpid, event.name)));
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(names, [(2, "mutex_lock"), (3, "mutex_unlock"), (2, "mutex_lock")]);
//! assert!(!diagnostics.has_damage());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All calls that waited for longer than 10 ms:
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! # let lines = [(1, "02:02:1", "0x10:0"), (50_000_000, "02:02:2", "0:1"), (50_000_001, "02:02:1", "0x20:0"),
//! #     (50_000_002, "02:02:2", "0:0")];
//! # let lines = lines.map(|(time, event, arguments)| {
//! #     format!("1795174740:{time:09}:0000002:0000001:0x7fc5de3f86c0:{event}:{arguments}:0:0:0\n")
//! # });
//! # std::fs::write(directory.path().join("tr.0000001.002"), lines.concat())?;
//! use std::ops::ControlFlow;
//! use std::time::Duration;
//! use trace_cat::{Diagnostics, Trace};
//!
//! let diagnostics = Diagnostics::new(|diagnostic| eprintln!("{diagnostic}"));
//! let trace = Trace::open([directory.path()], &diagnostics)?;
//! let limit = Duration::from_millis(10);
//! let mut slow = Vec::new();
//! trace.for_each_call(|call| {
//!     if call.waited() && call.duration().is_some_and(|duration| duration > limit) {
//!         slow.push((call.event.name, call.lwp, call.object()));
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(slow, [("mutex_lock", 2, Some(0x10))]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! Each module imports only from modules in lines below its own.
//!
//! - `cli`: the command line: dispatch, messages, exit statuses, printing
//! - `launch`: `trace-cat run`
//! - `control`: `trace-cat set` and `trace-cat status`
//! - `follow`, `recover`: `--follow` and `--recover`
//! - `export`: timelines for viewers
//! - `report`: `trace-cat report`, the runs of a directory, and counts of processes, calls and objects
//! - `output`: the output formats, and where output goes
//! - `filter`, `arrange`: which records, and other orders than that of time
//! - `timeline`: the library's interface: records and calls of a trace, in order
//! - `calls`: pairs of entry and return records, and which calls waited
//! - `merge`: one timeline of many files
//! - `trace`: directories, files, buffers, liveness, completeness, the index of times
//! - `symbols`: functions, lines and variables of addresses: maps, ELF, DWARF, demangling
//! - `record`: the columns of a record's line
//! - `options`: the table of command-line options and what they mean
//! - `support`: diagnostics, progress, errors, threads, external sort, temporary files, local time

mod arrange;
mod calls;
#[doc(hidden)]
pub mod cli;
mod control;
mod export;
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
mod symbols;
#[cfg(test)]
mod testing;
mod timeline;
mod trace;

pub use calls::call::Call;
pub use spec::{Argument, Event, Record};
pub use support::diagnostics::{Diagnostic, Diagnostics, Severity};
pub use support::error::Error;
pub use timeline::Trace;
