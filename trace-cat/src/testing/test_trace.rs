//! Trace directories for tests, and records to fill them with.

use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::filter::LineLimit;
use crate::merge::{BatchTransform, Merge, MergeLimits};
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::trbuf_image::wait_for_writers;
use crate::trace::file_handle::{DescriptorBudget, FileHandle, open};
use crate::trace::inputs;
use crate::trace::record_text::RecordText;

/// The name of the trbuf of process 1.
pub const TRBUF: &str = "trbuf.0000001";

/// A record of process 1 and LWP `lwp` at `time` nanoseconds. `event` has the record's three event columns, as in `02:04:0`.
pub fn record(time: u64, lwp: u32, event: &str, a1: u64) -> String {
    format!(
        "{:010}:{:09}:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:{a1}:0:0:0:0\n",
        time / 1_000_000_000,
        time % 1_000_000_000
    )
}

/// Records of LWP `lwp`, one for each of `times`, with the time as first argument.
pub fn record_lines(times: Range<u64>, lwp: u32) -> String {
    times.map(|time| record(time, lwp, "02:04:0", time)).collect()
}

/// A file with these bytes, in a trace of its own, and its text, whose path is `tr`.
pub fn text_of(bytes: &[u8]) -> (TestTrace, Arc<RecordText>) {
    let trace = TestTrace::new();
    let handle = trace.file("tr", bytes).handle("tr", 1);
    (trace, Arc::new(RecordText::new("tr".into(), Some(handle), bytes.len() as u64, false)))
}

/// Adds to `out` the lines of a merge of `times` that the limits of `--head` and `--tail`, in this order, let through.
pub fn merge_limited(
    merge: &Merge,
    mut times: Range<u64>,
    transform: BatchTransform,
    [head, tail]: [Option<u64>; 2],
    out: &mut Vec<u8>,
) {
    let mut limit = LineLimit::choose(merge, &mut times, transform, head, tail).unwrap();
    let mut take = |lines: &[u8]| {
        let (lines, more) = limit.apply(lines);
        out.extend_from_slice(&lines);
        Ok(more)
    };
    merge.run(times, transform, &mut take).unwrap();
}

/// A trace directory, removed when it goes out of scope.
pub struct TestTrace {
    directory: tempfile::TempDir,
    /// The process of the trbuf runs.
    has_owner: AtomicBool,
}

impl TestTrace {
    pub fn new() -> TestTrace {
        TestTrace { directory: tempfile::tempdir().unwrap(), has_owner: AtomicBool::new(false) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &TestTrace {
        fs::write(self.path(name), bytes).unwrap();
        if name.starts_with("trbuf") && !self.has_owner.load(Relaxed) {
            wait_for_writers(&self.path(name));
        }
        self
    }

    /// Opens a file, with a budget of `descriptors` kept files.
    pub fn handle(&self, name: &str, descriptors: usize) -> Arc<FileHandle> {
        let path = self.path(name);
        let file = open(&path).unwrap();
        Arc::new(FileHandle::new(path, file, &DescriptorBudget::new(descriptors)).unwrap())
    }

    /// Opens the trbuf for writing, as only its process does: until the file is dropped, the process counts as running.
    pub fn open_trbuf_as_owner(&self) -> File {
        self.has_owner.store(true, Relaxed);
        OpenOptions::new().read(true).write(true).open(self.path(TRBUF)).unwrap()
    }

    /// The process that has opened the trbuf ends.
    pub fn end_owner(&self, owner: File) {
        drop(owner);
        self.has_owner.store(false, Relaxed);
        wait_for_writers(&self.path(TRBUF));
    }

    /// Merges these files, or the complete directory if `names` is empty; returns output and messages, from which the
    /// directory's path is removed.
    pub fn cat_with(&self, names: &[&str], limits: MergeLimits, descriptors: usize) -> (String, String) {
        self.merged(names, limits, descriptors, |merge, out| {
            let mut take = |lines: &[u8]| {
                out.extend_from_slice(lines);
                Ok(true)
            };
            merge.run(0..u64::MAX, None, &mut take).unwrap();
        })
    }

    /// As [`cat_with`](TestTrace::cat_with), with the output that `print` makes of the merge.
    pub fn merged(
        &self,
        names: &[&str],
        limits: MergeLimits,
        descriptors: usize,
        print: impl FnOnce(&Merge, &mut Vec<u8>),
    ) -> (String, String) {
        let mut paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        if paths.is_empty() {
            paths.push(self.path(""));
        }
        let (diagnostics, messages) = recorded_diagnostics();
        let inputs = inputs::collect(&paths, &DescriptorBudget::new(descriptors), &diagnostics);
        let merge = Merge::prepare(&inputs.texts, limits, &diagnostics).unwrap();
        let mut out = Vec::new();
        print(&merge, &mut out);
        let directory = format!("{}/", self.directory.path().display());
        (String::from_utf8_lossy(&out).into_owned(), messages.text().replace(&directory, ""))
    }

    /// Merges with the default limits.
    pub fn cat(&self, names: &[&str]) -> (String, String) {
        self.cat_with(names, MergeLimits::default(), 1000)
    }
}
