//! The report as a page of text, 100 columns wide.

use super::findings_text;
use super::lock_like_futexes::append_lock_like;
use super::missing_records::missing_records;
use super::object_rows::ObjectRow;
use super::path_summary::append_paragraph;
use super::tables::{self, percent};
use super::view::ReportView;
use crate::options::ReportTable;
use crate::report::contention::ImageEnd;
use crate::support::counted::counted;
use crate::support::duration::duration_text;
use crate::support::local_time::DateTime;

/// The most programs that the first paragraph tells.
const PROGRAMS_MAX: usize = 5;

/// What the page shows.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// The most rows of a table.
    pub top: usize,
    /// Only this table.
    pub by: Option<ReportTable>,
    /// The paths of the trace, as they were given, behind the option that selects runs, if one does.
    pub paths: String,
}

/// Appends the page.
pub fn append_page(view: &ReportView, options: &PageOptions, out: &mut Vec<u8>) {
    let mut text = String::new();
    match options.by {
        Some(ReportTable::Object) => tables::objects(view, &view.separate_rows(), options.top, &mut text),
        Some(ReportTable::Thread) => tables::threads(view, options.top, &mut text),
        Some(ReportTable::Site) => tables::sites(view, options.top, &mut text),
        Some(ReportTable::Pair) => tables::pairs(view, options.top, &mut text),
        None => overview(view, options, &mut text),
    }
    out.extend_from_slice(text.as_bytes());
}

fn overview(view: &ReportView, options: &PageOptions, text: &mut String) {
    recorded(view, text);
    // What shows only when names are looked up is missing, too.
    let mut body = String::new();
    figures(view, options, &mut body);
    missing(view, text);
    *text += &body;
}

fn figures(view: &ReportView, options: &PageOptions, text: &mut String) {
    if view.analysis.span.is_none() {
        return;
    }
    let [lives, contention, idleness] = view.thread_sums();
    let count = view.threads.len();
    *text += &format!("threads     {count} lived for {} together\n", duration_text(lives));
    *text += &format!(
        "contention  {}, {} of that: waiting for locks\n",
        duration_text(contention),
        percent(contention, lives)
    );
    if !view.analysis.selection.only_contention {
        *text += &format!(
            "idleness    {}, {}: waiting for work, or for other threads\n",
            duration_text(idleness),
            percent(idleness, lives)
        );
    }
    append_lock_like(view, &options.paths, text);
    findings_text::append_findings(view, options.top, text);
    let rows = view.rows_of_lives();
    tables::objects(view, &rows, options.top, text);
    append_paragraph(view, options.top, text);
    next_command(view, &rows, options, text);
}

fn recorded(view: &ReportView, text: &mut String) {
    let analysis = view.analysis;
    let records: u64 = analysis.processes.iter().map(|process| process.records).sum();
    let Some((start, end)) = analysis.span else {
        *text += "recorded    nothing\n";
        return;
    };
    let (processes, threads) = (analysis.processes.len(), analysis.threads.len());
    *text += &format!("recorded    from {} on, {}\n", DateTime(start), duration_text(end - start));
    let records = counted(records, "record", "records");
    *text += &format!("            {records}, programs {processes}, threads {threads}\n");
    if analysis.selection.has_times() {
        let [since, until] = [analysis.selection.times.start, analysis.selection.times.end]
            .map(|time| duration_text(time.clamp(start, end) - start));
        *text += &format!("only        from {since} to {until} after the first record\n");
    }
    for process in analysis.processes.iter().take(PROGRAMS_MAX) {
        let how = match process.end {
            ImageEnd::Exit => "exited",
            ImageEnd::Exec => "executed another program",
            ImageEnd::Running => "runs",
            ImageEnd::Unknown => "has no recorded end",
        };
        let command = view.command(process);
        let colon = if command.is_empty() { "" } else { ": " };
        let line = format!("            {} {how}{colon}{command}", process.pid);
        *text += &line.chars().take(100).collect::<String>();
        text.push('\n');
    }
    let others = analysis.processes.len().saturating_sub(PROGRAMS_MAX);
    if others > 0 {
        let programs = if others == 1 { "program" } else { "programs" };
        *text += &format!("            and {others} more {programs}\n");
    }
}

/// Appends what the records leave out.
fn missing(view: &ReportView, text: &mut String) {
    let lines = [missing_records(view), view.missing_names()].concat();
    for (index, line) in lines.iter().enumerate() {
        *text += if index == 0 { "missing     " } else { "            " };
        *text += line;
        text.push('\n');
    }
}

/// Appends the command that shows more.
fn next_command(view: &ReportView, rows: &[ObjectRow], options: &PageOptions, text: &mut String) {
    let Some(worst) = rows.first() else { return };
    if worst.objects.iter().any(|index| view.object(*index).figures.wait.count() > 0) {
        let (paths, object) = (&options.paths, view.object_option(worst.first()));
        *text += "\nThe waits for the first object, one by one:\n";
        *text += &format!("  trace-cat -F text --blocked {object} {paths}\n");
        *text += "Who waited for whom:\n";
        *text += &format!("  trace-cat report --by pair {paths}\n");
    }
}
