//! One record: where its fields stand, what they consist of, and their values.
//!
//! ```text
//! 1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n
//! time1      time2     lwpid   pid     tid            ┊  ┊  ┊ a1             a2 … a5
//! 0          11        21      29      37             52 55 58 60
//!                                                     event1, event2, which
//! ```
//!
//! [`FIELDS`] is the one list of the fields. The widths, the offsets and [`FIXED_PART`] follow from it, for readers that
//! do not decode a complete record. [`Record::parse`] decodes it.

mod columns;
mod decode;

pub use columns::{
    A1_OFFSET, ARGUMENT_WIDTH_MAX, ByteRanges, DECIMAL_DIGITS_SAFE, EVENT_TEXT_WIDTH, EVENT_WIDTH, EVENT1_OFFSET,
    EVENT1_OFFSET_MAX, EVENT2_OFFSET, FIELDS, FIXED_PART, Field, FieldFormat, HEX_DIGITS_MAX, LWPID_OFFSET,
    LWPID_WIDTH, NANOS_PER_SECOND, PID_OFFSET, PID_WIDTH, RECORD_LEN_MAX, RECORD_LEN_MIN, TID_OFFSET, TID_WIDTH,
    TID_WIDTH_MAX, TIME_WIDTH, TIME1_WIDTH, TIME2_OFFSET, TIME2_WIDTH, WHICH_OFFSET, is_argument_byte,
};
pub use decode::{Argument, Record, RecordError};
