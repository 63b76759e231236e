//! `-F parquet`: the records as a table, with what the analysis of the report knows of each.
//!
//! ```text
//! merge ──► report::contention ──► TableExport ──► Partitions ──► TableFiles
//! records   waits, holds, wakers   rows            one file, or   a thread: columns, compression
//!                                                  host and hour
//! ```
//!
//! A record is a row. What a record ended (a call, a wait, a hold) stands in its row, so rows are written as soon as their record
//! has been read, in the order of time, and nothing waits for the end of anything. What ended without a record of its own gets a
//! row of another kind, when the analysis accounts it: what was open when its process ended, the wait for the mutex in a wait for a
//! condition, the hold that such a wait ends, and waits that timed out where it showed only later who held the lock. A wait whose
//! blame several threads share, or a thread that acquired the object at several sites, has a row for each share but the first. So sums and counts over all rows are those of the report.

mod columns;
mod interval_rows;
mod partitions;
mod row;
mod row_group;
mod row_texts;
mod table_export;
mod table_files;
mod texts;

pub use partitions::TablePlace;
pub use row_texts::ProcessOrigin;
pub use table_export::TableExport;
pub use table_files::Target;
