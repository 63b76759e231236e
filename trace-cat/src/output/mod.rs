//! How the records are shown: one short file for each form of output.
//!
//! ```text
//! text    for people          csv, json   for programs
//! fields  a record cut up     event       what the table says of it     style   colours
//! cuts    where it is cut
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
