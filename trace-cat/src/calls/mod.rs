//! Calls: pairs of entry and return records.
//!
//! ```text
//! call_assembler   calls from records in order
//! call             a call and its duration, object and result
//! wait_rules       which calls waited
//! pairing          the entry record that a return record belongs to
//! object_columns   which columns are objects
//! ```

pub mod call;
pub mod call_assembler;
pub mod object_columns;
pub mod pairing;
pub mod wait_rules;
