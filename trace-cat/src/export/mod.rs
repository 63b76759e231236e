//! Timelines for viewers: one short folder or file for each format.
//!
//! ```text
//! merge ──► report::contention ──► TimelineEvent ──► selection ──► TimelineSink
//! records   waits, holds, wakers   what is drawn                   perfetto, chrome, …
//! ```
//!
//! All formats get the same stream, [`TimelineExport`], which is what the report's analysis accounts: for each object the number
//! of waits and the sum of `to - from` are those of `trace-cat report` with the same selection, and so are holds. A format
//! implements [`TimelineSink`] and appends bytes to `out`, which are written in the order in which they are appended; it keeps no more than it
//! needs of threads, objects and sites.
//!
//! The order of the calls:
//!
//! 1. `begin`, with the time of the trace's first record.
//! 2. For each record, in the order of time, `program_event` and `event` for what the record leads to. Intervals (waits and
//!    holds) are given when they are accounted: in the order of their ends, the inner of nested ones first, but for waits that timed out and
//!    holds that ended with another process image, which may be given later. A format whose readers need the order of beginnings
//!    sorts its lines by `support::external_sort`.
//! 3. At the end: what is still open, as intervals with `is_open` or an edge; the ends of threads and processes; the counters,
//!    in the order of time; `end`.
//!
//! `thread`, `object`, `site` and `process` are indexes of the analysis. [`TimelineScene`] has their names and states. A thread's
//! name may be known only after its first event ([`TimelineEvent::ThreadEnd`] comes when all names are known); names of objects and sites do
//! not change.

mod chrome;
mod event_selection;
mod format_sink;
mod hold_lanes;
mod open_spans;
mod paje;
mod parquet;
mod perfetto;
mod program_event;
mod program_events;
mod scene;
mod sink;
mod text_cache;
mod thread_flow;
mod timeline_export;
mod waiting_counts;
mod wake_flows;

pub use event_selection::EventSelection;
pub use format_sink::timeline_sink;
pub use parquet::{ProcessOrigin, TableExport, TablePlace, Target};
pub use timeline_export::{NameSources, TimelineExport};

#[cfg(test)]
mod tests;
