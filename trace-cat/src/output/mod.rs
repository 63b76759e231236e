//! The output formats, one short file for each, and where output goes.
//!
//! ```text
//! formatter        what a format does
//! text             -F text, for people
//! csv, json        -F csv, -F json, for programs
//! format_choice    the format that the options ask for
//! terminal_style   colours
//! destination      the standard output or a file
//! ```

mod csv;
pub mod destination;
mod format_choice;
mod formatter;
mod json;
mod terminal_style;
mod text;

pub use format_choice::{directories, open, shared};
pub use formatter::{Formatter, RecordFormatter, TimelineFormatter};
pub use text::TextFormat;
