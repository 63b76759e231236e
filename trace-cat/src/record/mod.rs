//! A record as it stands in its line.

pub mod columns;
pub mod errno_names;
pub mod field_offsets;
pub mod fields;
pub mod plain_records;
pub mod record_kinds;
pub mod signal_names;
pub mod validation;
