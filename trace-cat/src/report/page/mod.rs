//! The report: a page of text, a JSON document, and files for other programs. `view` sorts and labels what all show.

mod against;
mod chain_end;
mod csv;
mod document;
mod document_sink;
mod doubts;
mod findings;
mod findings_text;
mod html;
mod limits;
mod lock_like_futexes;
mod missing_names;
mod missing_records;
mod misuse_text;
mod object_entry;
mod object_rows;
mod path_summary;
mod place_sums;
mod pprof;
mod report_output;
mod stacks;
mod tables;
mod text;
mod thread_groups;
mod view;

pub use report_output::write_report;
pub use view::ReportView;

#[cfg(test)]
mod against_tests;
#[cfg(test)]
mod object_name_tests;
#[cfg(test)]
mod parts_tests;
#[cfg(test)]
mod sample_view;
#[cfg(test)]
mod view_tests;
