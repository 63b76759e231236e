//! The report in the format that its options ask for.

use std::io;

use super::against::append_comparison;
use super::csv::append_csv;
use super::document::write_document;
use super::html::append_html;
use super::pprof::append_profile;
use super::stacks::append_folded;
use super::text::{PageOptions, append_page};
use super::view::ReportView;
use crate::options::{ReportFormat, ReportOptions, ReportTable};
use crate::support::shell::quoted_path;

/// How many rows the tables of the page have.
const TOP: usize = 10;

/// Writes the report in the format that the options ask for. A document may be so large that it is written while it is made.
///
/// # Errors
/// Those of `write`.
pub fn write_report(
    view: &ReportView,
    options: &ReportOptions,
    write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let text = &mut Vec::new();
    match options.format {
        ReportFormat::Json => return write_document(view, write),
        ReportFormat::Csv => {
            let top = options.top.unwrap_or(usize::MAX);
            append_csv(view, options.by.unwrap_or(ReportTable::Object), top, text)
        }
        ReportFormat::Folded => append_folded(view, text),
        ReportFormat::Pprof => append_profile(view, text),
        ReportFormat::Html => append_html(view, options.top, text),
        ReportFormat::Text => {
            let by = options.by;
            let top = options.top.unwrap_or(if by.is_some() { usize::MAX } else { TOP });
            let paths: Vec<String> = options.paths.iter().map(|path| quoted_path(path)).collect();
            let page = PageOptions { top, by, paths: options.runs.option() + &paths.join(" ") };
            match &view.comparison {
                Some(comparison) => append_comparison(view, comparison, &page, text),
                None => append_page(view, &page, text),
            }
        }
    }
    write(text)
}
