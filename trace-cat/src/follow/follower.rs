//! What is followed, and the time.

use std::collections::HashSet;
use std::path::PathBuf;

use super::directory_watch::DirectoryWatch;
use super::growing_files::GrowingFiles;
use super::intake::Intake;
use super::running_process::RunningProcess;
use crate::support::diagnostics::Diagnostics;
use crate::trace::file_handle::FileIdentity;
use crate::trace::file_names::ProcessFiles;

/// What is followed.
pub struct Follower<'a> {
    pub watches: Vec<DirectoryWatch>,
    pub lives: Vec<RunningProcess>,
    pub sources: GrowingFiles,
    pub intake: Intake,
    pub clock: FollowClock,
    /// Some process or file has been seen.
    pub any: bool,
    /// Looks without anything new since no process runs.
    pub idle: u32,
    /// Trbufs of processes that were dead at first: what was left in them has been merged.
    pub dead: HashSet<FileIdentity>,
    /// Trbufs that could not be read yet.
    pub unready: Vec<(ProcessFiles, PathBuf)>,
    pub diagnostics: &'a Diagnostics,
}

/// What time it is for the processes, and how long records wait.
#[derive(Clone, Copy, Debug)]
pub struct FollowClock {
    /// What is to be added to `CLOCK_MONOTONIC`, nanoseconds.
    pub offset: i64,
    /// How long a record waits for others, nanoseconds.
    pub hold: u64,
}

impl FollowClock {
    /// What time it is for the processes, nanoseconds since the Epoch, when `CLOCK_MONOTONIC` says `now`.
    pub fn time(self, now: u64) -> u64 {
        now.saturating_add_signed(self.offset)
    }
}

/// `CLOCK_MONOTONIC`, nanoseconds.
pub fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
