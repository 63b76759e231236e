//! A record as it stands in its line.
//!
//! ```text
//! columns          the values of columns at fixed places
//! fields           all fields as texts; field_offsets: where they are in the line
//! validation       whether a line is a record; plain_records: many of the usual kind, fast
//! record_kinds     what the table of events says of a record
//! errno_names, signal_names
//! ```

pub mod columns;
pub mod errno_names;
pub mod field_offsets;
pub mod fields;
pub mod plain_records;
pub mod record_kinds;
pub mod signal_names;
pub mod validation;
