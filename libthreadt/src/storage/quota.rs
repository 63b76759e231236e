//! When to stop: a trace must not fill its host's disk, nor grow beyond what the environment allows.
//!
//! Once recording has stopped, calls are still counted, so that each thread's loss record can say how many are missing.
//! What was in the buffers when the disk became full stays there: the space of the trbuf is reserved, and trace-cat
//! reads it.

use core::sync::atomic::Ordering::Relaxed;

use super::stop_time;
use crate::config::CONFIG;
use crate::process_state::PROCESS;
use crate::sys::{Errno, Fd, Result};

/// Recording stops when less than this fraction of the file system is free, or less than [`FREE_MIN`] if that is less.
const FREE_FRACTION: u64 = 20;
const FREE_MIN: u64 = 1 << 30;

/// After so many bytes, at the latest, the file system is asked again how much is free. When little is left, after this
/// fraction of it.
const UNASKED_MAX: u64 = 1 << 20;
const UNASKED_FRACTION: u64 = 16;

/// Checks before a write of `length` bytes that the file system has room for it. If it is about to be full, recording
/// stops.
pub fn check_space(file: &Fd, length: u64) -> Result {
    // ORDERING: Relaxed; the word stands for itself.
    if PROCESS.unasked.fetch_update(Relaxed, Relaxed, |bytes| bytes.checked_sub(length)).is_ok() {
        return Ok(());
    }
    let Ok(system) = file.file_system() else { return Ok(()) };
    let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize as u64);
    let least = (bytes(system.f_blocks) / FREE_FRACTION).min(FREE_MIN);
    let Some(free) = bytes(system.f_bavail).checked_sub(least) else {
        note_failure(Errno(libc::ENOSPC));
        return Err(Errno(libc::ENOSPC));
    };
    PROCESS.unasked.store((free / UNASKED_FRACTION).min(UNASKED_MAX), Relaxed);
    Ok(())
}

/// A write failed. If the disk is full, recording stops.
pub fn note_failure(errno: Errno) {
    if errno.0 == libc::ENOSPC {
        stop_time::propose(errno);
    }
}

/// Counts bytes that were written; recording stops when they are as many as THR_TRACE_MAX allows.
pub fn count(bytes: u64) {
    let max = CONFIG.get().max;
    // Without a maximum nothing is counted: all threads would write to one cache line.
    if max != u64::MAX && PROCESS.written.fetch_add(bytes, Relaxed) + bytes >= max {
        stop_time::propose(Errno(libc::EDQUOT));
    }
}
