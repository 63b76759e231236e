//! What is followed, and the time.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use rustix::time::{ClockId, clock_gettime};
use spec::info::monotonic_shift;

use super::directory_watch::DirectoryWatch;
use super::growing_files::GrowingFiles;
use super::reorder_window::Intake;
use super::running_process::RunningProcess;
use crate::support::diagnostics::Diagnostics;
use crate::trace::file_names::ProcessFiles;
use crate::trace::known_files::KnownFiles;

/// What is followed.
pub struct Follower<'a> {
    pub watches: Vec<DirectoryWatch>,
    pub processes: Vec<RunningProcess>,
    pub files: GrowingFiles,
    pub intake: Intake,
    /// The difference between the processes' time and `CLOCK_MONOTONIC`, nanoseconds.
    pub clock_offset: i64,
    /// How long a record waits for earlier ones, nanoseconds.
    pub hold: u64,
    /// A process or a file has been discovered.
    pub has_begun: bool,
    /// How many rounds in a row found nothing new and no process that runs.
    pub idle_rounds: u32,
    /// Trbufs of processes that were dead at the start: their leftovers have been merged.
    pub merged: KnownFiles,
    /// Trbufs that could not be read yet.
    pub unready: Vec<(ProcessFiles, PathBuf)>,
    /// It was reported that more is recorded than can be read.
    pub has_reported_lateness: bool,
    pub diagnostics: &'a Diagnostics,
}

impl Follower<'_> {
    /// The processes' time, nanoseconds since the Epoch, before which all records have arrived when `CLOCK_MONOTONIC` is `now`.
    pub fn horizon(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.clock_offset).saturating_sub(self.hold)
    }
}

/// `CLOCK_MONOTONIC` of the initial time namespace, nanoseconds: the clock that the processes' offsets are for, whatever
/// namespace they or this program are in.
pub fn monotonic() -> u64 {
    static SHIFT: LazyLock<i64> = LazyLock::new(|| {
        fs::read("/proc/self/timens_offsets").ok().and_then(|text| monotonic_shift(&text)).unwrap_or(0)
    });
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).saturating_add_signed(-*SHIFT)
}
