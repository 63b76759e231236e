//! Misuse of pthread objects, each kind once for each site.
//!
//! What the analysis observes is only kept if no missing record could explain it.

mod error_columns;
mod misuse_table;

pub use error_columns::ErrorColumns;
pub use misuse_table::{Misuse, MisuseKind, MisuseTable, SuspectedMisuse};
