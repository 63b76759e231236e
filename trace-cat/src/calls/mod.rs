//! Calls: pairs of entry and return records.

pub mod call;
pub mod call_assembler;
pub mod object_columns;
pub mod pairing;
pub mod process_ends;
pub mod wait_rules;
