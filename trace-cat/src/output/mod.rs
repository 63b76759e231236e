//! The output formats, one short file for each, and where output goes.

mod csv;
mod ctf;
pub mod destination;
mod format_choice;
mod formatter;
mod frame_names;
mod json;
mod json_calls;
mod limited;
mod pager;
mod terminal_style;
mod text;

pub use ctf::CtfWriter;
pub use format_choice::{file_groups, formatter_for, shared_text_format};
pub use formatter::{Formatter, RecordFormatter, TimelineFormatter};
pub use limited::LimitedFormat;
pub use text::{TextFormat, is_frame_line};
