//! The files that a recorded program has left.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spec::names::FileName;
use spec::{Record, info, record};

use super::purpose_sizes::PurposeSizes;
use crate::options::Recording;
use crate::support::diagnostics::Diagnostics;
use crate::trace::file_handle::{DescriptorBudget, read_info};
use crate::trace::file_names::{ProcessFiles, owner_of_records, split_name, with_subdirectories};
use crate::trace::inputs;
use crate::trace::record_text::RecordText;

/// The files of a trace directory, those of other users (`u*`) and PID namespaces (`ns*`) included, each with inode and length.
#[derive(Debug, Default)]
pub struct TraceFiles(HashMap<PathBuf, (u64, u64)>);

impl TraceFiles {
    /// The files that are there now, without renamed ones (`old.*`).
    pub fn of(directory: &Path) -> TraceFiles {
        let mut files = TraceFiles::default();
        with_subdirectories(directory).iter().for_each(|directory| files.add(directory));
        files
    }

    fn add(&mut self, directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if let (b"", Some(_)) = split_name(&entry.path())
                && let Ok(metadata) = entry.metadata()
            {
                self.0.insert(entry.path(), (metadata.ino(), metadata.size()));
            }
        }
    }

    /// The files that are new or have changed.
    pub fn changed_since<'a>(&'a self, before: &'a TraceFiles) -> impl Iterator<Item = &'a PathBuf> {
        self.0.iter().filter(|(path, now)| before.0.get(*path) != Some(*now)).map(|(path, _)| path)
    }

    /// Whether there is a trace among them.
    pub fn has_trace(&self) -> bool {
        self.0.keys().any(|path| !matches!(split_name(path).1, None | Some(FileName::Clock | FileName::Control)))
    }
}

/// Summary of the files that are new in a trace directory, completed with what the buffers hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NewFiles {
    /// Processes that recorded something.
    pub processes: usize,
    /// Threads' texts, each of which has a record file, or will have one.
    pub files: usize,
    /// Bytes of records in them.
    pub bytes: u64,
    /// Records that are missing, by the last loss records or by the trinfos.
    pub lost: u64,
    /// Processes that still run.
    pub running: usize,
    /// Processes that were killed and left records in their buffers.
    pub killed: usize,
    /// Processes that ended by themselves and could not write what their buffers had.
    pub hindered: usize,
    /// How much each value of `--for` would have written; `None` if it is not printed.
    pub by_purpose: Option<PurposeSizes>,
}

impl NewFiles {
    /// Summarises the files that changed between `before` and `after`, when this was recorded.
    pub fn since(before: &TraceFiles, after: &TraceFiles, recording: &Recording) -> NewFiles {
        let changed = after.changed_since(before);
        let (infos, paths): (Vec<&PathBuf>, Vec<&PathBuf>) =
            changed.partition(|path| matches!(split_name(path).1, Some(FileName::Info(_))));
        let is_text = |path: &PathBuf| {
            let name = split_name(path).1;
            matches!(name, Some(FileName::Records { .. } | FileName::Buffers(_) | FileName::Spare { .. }))
        };
        let paths: Vec<PathBuf> = paths.into_iter().filter(|path| is_text(path)).cloned().collect();
        // Damage is reported to those who read the trace.
        let inputs = inputs::collect_if_any(&paths, &DescriptorBudget::new(64), &Diagnostics::new(drop));
        let mut new = NewFiles::default();
        let mut processes = HashSet::new();
        let mut lost: HashMap<Option<ProcessFiles>, u64> = HashMap::new();
        for text in &inputs.texts {
            let owner = owner_of_records(&text.path).map(|(process, _)| process.of_all_users());
            let bytes = text.size(0..text.end());
            if bytes > 0 {
                new.files += 1;
                new.bytes += bytes;
                *lost.entry(owner.clone()).or_default() += last_loss(text);
                processes.insert(owner);
            }
        }
        let (mut killed, mut hindered) = (HashSet::new(), HashSet::new());
        for (process, leftovers) in &inputs.dead {
            let process = process.clone().of_all_users();
            let by_records = lost.entry(Some(process.clone())).or_default();
            *by_records = (*by_records + leftovers.lost).max(leftovers.lost_in_all);
            if !leftovers.files.is_empty() {
                let whose = if leftovers.has_ended { &mut hindered } else { &mut killed };
                whose.insert(process);
            }
        }
        (new.killed, new.hindered) = (killed.len(), hindered.len());
        for path in infos {
            let Some(FileName::Info(number)) = split_name(path).1 else { continue };
            // What was lost before the last records, or could not be counted in any record.
            let by_info = read_info(path).ok().and_then(|text| info::number(&text, "lost")).unwrap_or(0);
            let by_records = lost.entry(Some(ProcessFiles::of_file(path, number).of_all_users())).or_default();
            *by_records = (*by_records).max(by_info.try_into().unwrap_or(0));
        }
        new.lost = lost.into_values().sum();
        // To find them out, much of the trace is read.
        new.by_purpose = PurposeSizes::are_printed(recording, new.bytes).then(|| PurposeSizes::of(&inputs.texts));
        let running = inputs.running.iter().map(|(process, _)| process.clone().of_all_users());
        new.running = running.collect::<HashSet<_>>().len();
        new.processes = processes.len();
        new
    }
}

/// How many records are missing according to a text's last record, if that is a `trace_lost`.
fn last_loss(text: &RecordText) -> u64 {
    let mut place = text.end().saturating_sub(record::RECORD_LEN_MAX as u64 + 1);
    let mut tail = Vec::new();
    while place < text.end() {
        let mut buffer = [0; record::RECORD_LEN_MAX + 1];
        match text.read_at(&mut buffer, place) {
            Ok(length) if length > 0 => {
                tail.extend_from_slice(&buffer[..length]);
                place += length as u64;
            }
            // A gap begins a line.
            _ => match text.stretch(place) {
                Some(stretch) if stretch.start > place => {
                    tail.clear();
                    place = stretch.start;
                }
                _ => return 0,
            },
        }
    }
    let Some(lines) = tail.strip_suffix(b"\n") else { return 0 };
    let line = lines.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    match Record::parse(line) {
        Ok(record) if record.event().is_some_and(|event| event.name == "trace_lost") => record.arguments[0].bits(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Purpose;
    use crate::testing::test_trace::record;
    use crate::testing::trbuf_image::TrbufImage;

    #[test]
    fn only_new_files_count() {
        let (directory, recording) = (tempfile::tempdir().unwrap(), Recording::default());
        let path = |name: &str| directory.path().join(name);
        let line = record(1, 2, "02:04:0", 0);
        fs::write(path("tr.0000001.001"), &line).unwrap();
        fs::write(path("trclock"), "").unwrap();
        let before = TraceFiles::of(directory.path());
        assert!(before.has_trace());
        assert_eq!(NewFiles::since(&before, &TraceFiles::of(directory.path()), &recording), NewFiles::default());
        let lost = record(2, 2, "00:01:0", 7).replace(":7:0:0:0:0", ":7:28:0:0:0");
        fs::write(path("tr.0000001.001"), format!("{line}{lost}")).unwrap();
        fs::write(path("tr.0000002.003"), "").unwrap();
        fs::write(path("trinfo.0000002"), "pid 2\n").unwrap();
        fs::write(path("trbuf.0000002"), "").unwrap();
        fs::write(path("old.1.tr.0000002.003"), &line).unwrap();
        fs::create_dir(path("ns12")).unwrap();
        fs::write(path("ns12/tr.0000001.001"), &line).unwrap();
        let new = NewFiles::since(&before, &TraceFiles::of(directory.path()), &recording);
        let bytes = (2 * line.len() + lost.len()) as u64;
        // Process 2 recorded nothing. For so small a trace the sizes by --for are not printed.
        assert_eq!(new, NewFiles { processes: 2, files: 2, bytes, lost: 7, ..NewFiles::default() });
        let everything = Recording { purpose: Some(Purpose::Everything), ..Recording::default() };
        let after = TraceFiles::of(directory.path());
        assert!(NewFiles::since(&before, &after, &everything).by_purpose.is_some());
        // Process 1 has become another user.
        fs::create_dir_all(path("u65534/ns7")).unwrap();
        fs::write(path("u65534/tr.0000001.001"), &line).unwrap();
        let new = NewFiles::since(&before, &TraceFiles::of(directory.path()), &recording);
        assert_eq!((new.processes, new.files, new.lost), (2, 3, 7));
        fs::write(path("u65534/ns7/tr.0000004.001"), &line).unwrap();
        let new = NewFiles::since(&before, &TraceFiles::of(directory.path()), &recording);
        assert_eq!((new.processes, new.files, new.lost), (3, 4, 7));
        // A trinfo has its process's losses, also those that were recorded.
        for number in [1, 2] {
            fs::write(path(&format!("trinfo.000000{number}")), "lost 9\n").unwrap();
        }
        let new = NewFiles::since(&before, &TraceFiles::of(directory.path()), &recording);
        assert_eq!(new.lost, 9 + 9);
    }

    #[test]
    fn what_a_killed_process_left_in_its_buffers_counts() {
        let (directory, recording) = (tempfile::tempdir().unwrap(), Recording::default());
        let text = record(1, 1, "02:04:0", 0);
        let mut image = TrbufImage::with_text(1, &text);
        image.set_lost(0, 8, 28);
        image.write(&directory.path().join("trbuf.0000001"));
        let new = NewFiles::since(&TraceFiles::default(), &TraceFiles::of(directory.path()), &recording);
        let bytes = text.len() as u64;
        let expected = NewFiles { processes: 1, files: 1, bytes, lost: 8, killed: 1, ..NewFiles::default() };
        assert_eq!(new, expected);
    }

    #[test]
    fn a_directory_with_only_a_clock_has_no_trace() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("trclock"), "").unwrap();
        assert!(!TraceFiles::of(directory.path()).has_trace());
    }
}
