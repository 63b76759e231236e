//! The report: a page of text, or a JSON document. `view` sorts and labels what both show.

mod document;
mod object_names;
mod tables;
mod text;
mod view;

pub use document::append_document;
pub use text::{PageOptions, append_page};
pub use view::ReportView;
