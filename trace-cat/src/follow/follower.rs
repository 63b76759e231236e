//! What is followed, and the time.

use std::path::PathBuf;

use super::directory_watch::DirectoryWatch;
use super::growing_files::GrowingFiles;
use super::past::Past;
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
    /// The time of the first record, if it is not read.
    pub origin: Option<u64>,
    pub past: Past,
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
    /// A signal ended the merge of the records that existed at the start.
    pub is_cut_short: bool,
    pub diagnostics: &'a Diagnostics,
}

impl Follower<'_> {
    /// The processes' time, nanoseconds since the Epoch, before which all records have arrived when `CLOCK_MONOTONIC` is `now`.
    pub fn horizon(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.clock_offset).saturating_sub(self.hold)
    }
}
