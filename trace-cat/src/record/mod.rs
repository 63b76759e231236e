//! A record as it stands in its line.
//!
//! `spec::Record::parse` defines what a record is, and `spec::record::FIELDS` where its fields are. `validation`,
//! `plain_records` and `plain_numbers` are fast for records of the usual kind, and leave all others to the decoder.

pub mod call_stack;
pub mod columns;
pub mod errno_names;
pub mod event_table;
pub mod fields;
pub mod futex_operations;
pub mod plain_numbers;
pub mod plain_records;
pub mod record_kinds;
pub mod signal_names;
pub mod validation;
