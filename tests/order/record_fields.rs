//! Arguments of records.

use spec::{Argument, Record};

/// A process and an LWP of it.
pub type Thread = (u32, u32);
/// A process and an address in it, or a `pthread_t`.
pub type Object = (u32, u64);

/// An argument, or 0 if the record has not so many.
pub fn bits(record: &Record, argument: usize) -> u64 {
    record.arguments.get(argument).copied().map_or(0, Argument::bits)
}

/// The object that an argument names.
pub fn object(record: &Record, argument: usize) -> Object {
    (record.pid, bits(record, argument))
}

/// Whether the result in an argument is that of success.
pub fn succeeded(record: &Record, rval: usize) -> bool {
    bits(record, rval) == 0
}
