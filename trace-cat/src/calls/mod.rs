//! Calls: pairs of entry and return records.

pub mod object_columns;
pub mod pairing;
pub mod wait_rules;
