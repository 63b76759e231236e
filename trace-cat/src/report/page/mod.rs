//! The report: a page of text, a JSON document, and files for other programs. `view` sorts and labels what all show.

mod against;
mod chain_end;
mod csv;
mod document;
mod document_sink;
mod findings;
mod findings_text;
mod html;
mod limits;
mod missing_names;
mod missing_records;
mod misuse_text;
mod object_entry;
mod object_rows;
mod path_summary;
mod place_sums;
mod pprof;
mod stacks;
mod tables;
mod text;
mod thread_groups;
mod view;

pub use against::append_comparison;
pub use csv::append_csv;
pub use document::write_document;
pub use html::append_html;
pub use pprof::append_profile;
pub use stacks::append_folded;
pub use text::{PageOptions, append_page};
pub use view::ReportView;

#[cfg(test)]
mod object_name_tests;
#[cfg(test)]
mod sample_view;
