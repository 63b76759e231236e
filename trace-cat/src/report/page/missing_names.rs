//! Why code has no names in a report, and what to do about it.

use std::path::PathBuf;

use super::view::ReportView;
use crate::support::visible_text::visible_bytes;
use crate::symbols::NameLack;

/// The most files that a line lists.
const LISTED_MAX: usize = 3;

impl ReportView<'_> {
    /// A line for each reason, of those for which names have been looked up so far.
    pub fn missing_names(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.missing_trinfo().into_iter().collect();
        let files = self.symbols.nameless_files();
        let of = |lack: NameLack| files.iter().filter(move |file| file.1 == lack).map(|file| &file.0);
        for path in of(NameLack::Changed) {
            let path = visible_bytes(path.as_os_str().as_encoded_bytes());
            lines.push(format!("names from {path}: it has changed since (other build ID)"));
        }
        for (lack, why) in [
            (NameLack::Absent, "not found here"),
            (NameLack::Stripped, "no debug information (build with -g, or install it: package -dbgsym)"),
        ] {
            let files: Vec<&PathBuf> = of(lack).collect();
            if !files.is_empty() {
                lines.push(format!("names from {}: {why}", listed(&files)));
            }
        }
        lines
    }

    /// Only trinfo has where programs were in memory. It is not beside the records of a merged trace (`-o FILE`).
    fn missing_trinfo(&self) -> Option<String> {
        let is_described = |pid: &u32| self.recorded.get(pid).is_some_and(|process| !process.programs.is_empty());
        let mut pids: Vec<u32> = self.analysis.processes.iter().map(|process| process.pid).collect();
        pids.dedup();
        pids.retain(|pid| !is_described(pid));
        let what = match pids[..] {
            [] => return None,
            [pid] => format!("process {pid}: no names: its trinfo is not beside its records"),
            [..] => format!("{} processes: no names: their trinfos are not beside their records", pids.len()),
        };
        Some(format!("{what}; name their directory"))
    }
}

/// The last components of the first paths, and how many more there are.
fn listed(paths: &[&PathBuf]) -> String {
    let names = paths.iter().take(LISTED_MAX).map(|path| path.file_name().unwrap_or_default());
    let names: Vec<String> = names.map(|name| visible_bytes(name.as_encoded_bytes())).collect();
    let more = paths.len().saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}
