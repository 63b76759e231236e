//! The files that a recorded program has left.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt};
use std::path::{Path, PathBuf};

use spec::names::FileName;
use spec::{Record, record};

use crate::trace::file_handle::open_regular;
use crate::trace::file_names::split_name;

/// The files of a trace directory, those of other PID namespaces (`ns*`) included, each with inode and length.
#[derive(Debug, Default)]
pub struct TraceFiles(HashMap<PathBuf, (u64, u64)>);

impl TraceFiles {
    /// The files that are there now, without renamed ones (`old.*`).
    pub fn of(directory: &Path) -> TraceFiles {
        let mut files = TraceFiles::default();
        files.add(directory);
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b"ns") {
                files.add(&entry.path());
            }
        }
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

    /// Whether there is a trace among them.
    pub fn has_trace(&self) -> bool {
        self.0.keys().any(|path| !matches!(split_name(path).1, None | Some(FileName::Clock)))
    }
}

/// Summary of the files that are new in a trace directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NewFiles {
    /// Processes that recorded something.
    pub processes: usize,
    /// Record files, one a thread in most cases.
    pub files: usize,
    /// Bytes of records in them.
    pub bytes: u64,
    /// Records that are missing, by the last record of each file.
    pub lost: u64,
    /// Processes whose buffers are there: they were killed or still run.
    pub buffers: usize,
}

impl NewFiles {
    /// Summarises the files that changed between `before` and `after`.
    pub fn since(before: &TraceFiles, after: &TraceFiles) -> NewFiles {
        let mut new = NewFiles::default();
        let mut processes: Vec<(&Path, u32)> = Vec::new();
        for (path, now) in after.0.iter().filter(|(path, now)| before.0.get(*path) != Some(*now)) {
            let directory = path.parent().unwrap_or(Path::new(""));
            match split_name(path).1 {
                Some(FileName::Records { process, .. }) if now.1 > 0 => {
                    new.files += 1;
                    new.bytes += now.1;
                    new.lost += lost(path, now.1);
                    processes.push((directory, process));
                }
                Some(FileName::Buffers(process)) => {
                    new.buffers += 1;
                    processes.push((directory, process));
                }
                _ => {}
            }
        }
        processes.sort_unstable();
        processes.dedup();
        new.processes = processes.len();
        new
    }
}

/// How many records are missing according to a file's last record, if that is a `trace_lost`.
fn lost(path: &Path, length: u64) -> u64 {
    let from = length.saturating_sub(record::RECORD_LEN_MAX as u64 + 1);
    let mut tail = vec![0; (length - from) as usize];
    let read = open_regular(path).and_then(|file| file.read_exact_at(&mut tail, from));
    let Some(text) = read.ok().and_then(|()| tail.strip_suffix(b"\n")) else { return 0 };
    let line = text.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    match Record::parse(line) {
        Ok(record) if record.event().is_some_and(|event| event.name == "trace_lost") => record.arguments[0].bits(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    #[test]
    fn only_new_files_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let line = record(1, 2, "02:04:0", 0);
        fs::write(path("tr.0000001.001"), &line).unwrap();
        fs::write(path("trclock"), "").unwrap();
        let before = TraceFiles::of(directory.path());
        assert!(before.has_trace());
        assert_eq!(NewFiles::since(&before, &TraceFiles::of(directory.path())), NewFiles::default());
        let lost = record(2, 2, "00:01:0", 7).replace(":7:0:0:0:0", ":7:28:0:0:0");
        fs::write(path("tr.0000001.001"), format!("{line}{lost}")).unwrap();
        fs::write(path("tr.0000002.003"), "").unwrap();
        fs::write(path("trinfo.0000002"), "pid 2\n").unwrap();
        fs::write(path("trbuf.0000002"), "").unwrap();
        fs::write(path("old.1.tr.0000002.003"), &line).unwrap();
        fs::create_dir(path("ns12")).unwrap();
        fs::write(path("ns12/tr.0000001.001"), &line).unwrap();
        let new = NewFiles::since(&before, &TraceFiles::of(directory.path()));
        let bytes = (2 * line.len() + lost.len()) as u64;
        assert_eq!(new, NewFiles { processes: 3, files: 2, bytes, lost: 7, buffers: 1 });
    }

    #[test]
    fn a_directory_with_only_a_clock_has_no_trace() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("trclock"), "").unwrap();
        assert!(!TraceFiles::of(directory.path()).has_trace());
    }
}
