//! When to stop: a trace must not fill its host's disk, nor grow beyond what the environment allows.
//!
//! Once recording has stopped, calls are still counted, so that each thread's loss record can say how many are missing.
//! What was in the buffers when the disk became full stays there: the space of the trbuf is reserved, and trace-cat
//! reads it.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use crate::config::CONFIG;
use crate::process_state::PROCESS;
use crate::sys::diagnostics::{Warning, warn};
use crate::sys::{Errno, Fd, Result};

/// Recording stops when less than this fraction of the file system is free, or less than [`FREE_MIN`] if that is less.
const FREE_FRACTION: u64 = 20;
/// One GiB.
const FREE_MIN: u64 = 1 << 30;

/// Bytes that this process has written to its tr files.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The errno of the reason why recording has stopped, if it has.
pub fn stopped() -> Option<Errno> {
    match PROCESS.stopped.load(Relaxed) {
        0 => None,
        errno => Some(Errno(errno as i32)),
    }
}

/// Checks before a write that the file system has room for it.
///
/// # Errors
/// `ENOSPC` if the file system is about to be full; recording stops then.
pub fn check_space(file: &Fd) -> Result {
    let Ok(space) = file.space() else { return Ok(()) };
    if space.free < (space.total / FREE_FRACTION).min(FREE_MIN) {
        stop_full();
        return Err(Errno(libc::ENOSPC));
    }
    Ok(())
}

/// A write failed for which there was room at [`check_space`]. If the disk has become full meanwhile, recording stops.
pub fn note_failure(errno: Errno) {
    if errno.0 == libc::ENOSPC {
        stop_full();
    }
}

fn stop_full() {
    stop(Errno(libc::ENOSPC), b"the file system of the trace has less than 5 % or 1 GiB free");
}

/// Counts bytes that were written; recording stops when they are as many as THR_TRACE_MAX allows.
pub fn count(bytes: u64) {
    let max = CONFIG.get().max;
    // Without a maximum nothing is counted: all threads would write to one cache line.
    if max != u64::MAX && WRITTEN.fetch_add(bytes, Relaxed) + bytes >= max {
        stop(Errno(libc::EDQUOT), b"the trace has reached THR_TRACE_MAX");
    }
}

/// In a forked child: it has written nothing.
pub fn forget() {
    WRITTEN.store(0, Relaxed);
}

fn stop(cause: Errno, reason: &'static [u8]) {
    if PROCESS.stopped.swap(cause.0 as u32, SeqCst) == 0 {
        warn(Warning::Stopped, &[reason, b"; recording stops"]);
    }
}
