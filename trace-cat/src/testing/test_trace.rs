//! Traces made up for tests.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use crate::filter::LineLimit;
use crate::merge::{BatchTransform, Merge, MergeLimits};
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::trace::file_handle::DescriptorBudget;
use crate::trace::inputs;

/// A record of process 1 and LWP `lwp` at `time` nanoseconds, whose event stands as `02:04:0` in it.
pub fn record(time: u64, lwp: u32, event: &str, a1: u64) -> String {
    format!(
        "{:010}:{:09}:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:{a1}:0:0:0:0\n",
        time / 1_000_000_000,
        time % 1_000_000_000
    )
}

/// Adds to `out` what `--head` and `--tail`, in this order, leave of a merge of `times`.
pub fn merge_limited(
    merge: &Merge,
    mut times: Range<u64>,
    shape: BatchTransform,
    [head, tail]: [Option<u64>; 2],
    out: &mut Vec<u8>,
) {
    let mut few = LineLimit::choose(merge, &mut times, shape, head, tail).unwrap();
    let mut take = |lines: &[u8]| {
        let (lines, more) = few.cut(lines);
        out.extend_from_slice(lines);
        Ok(more)
    };
    merge.run(times, shape, &mut take).unwrap();
}

/// A trace directory, removed when it goes out of scope.
pub struct TestTrace {
    directory: tempfile::TempDir,
}

impl TestTrace {
    pub fn new() -> TestTrace {
        TestTrace { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &TestTrace {
        fs::write(self.path(name), bytes).unwrap();
        self
    }

    /// Merges these files, or the whole directory if there are none; returns output and messages, in which the
    /// directory's path is left out.
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

    pub fn cat(&self, names: &[&str]) -> (String, String) {
        self.cat_with(names, MergeLimits::default(), 1000)
    }
}
