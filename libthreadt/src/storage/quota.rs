//! When to stop: a trace must not fill its host's disk, nor grow beyond what the environment allows.
//!
//! Once recording has stopped, calls are still counted, so that each thread's last record can tell how many are missing.
//! What stood in the buffers when the disk became full stays there: the space of the trbuf is reserved, and trace-cat
//! reads it.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use crate::config::CONFIG;
use crate::process::{self, PROCESS};
use crate::say::{Cause, say};
use crate::sys::{Errno, Fd, Result};

/// Recording stops when less than this part of the file system is free, or less than [`FREE_MIN`] if that is less.
const FREE_PART: u64 = 20;
/// One GiB.
const FREE_MIN: u64 = 1 << 30;

/// Bytes that this process has written to its tr files.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The errno that stands for why recording has stopped, if it has.
pub fn stopped() -> Option<Errno> {
    match PROCESS.stopped.load(Relaxed) {
        0 => None,
        errno => Some(Errno(errno as i32)),
    }
}

/// Asks before a write whether there is room for it.
///
/// # Errors
/// `ENOSPC` if the file system is about to be full; recording stops then.
pub fn allow(file: &Fd) -> Result {
    let Ok(space) = file.space() else { return Ok(()) };
    if space.free < (space.total / FREE_PART).min(FREE_MIN) {
        stop_full();
        return Err(Errno(libc::ENOSPC));
    }
    Ok(())
}

/// A write failed for which there was room when [`allow`] was asked: if other threads took it meanwhile, recording stops.
pub fn failed(errno: Errno) {
    if errno.0 == libc::ENOSPC {
        stop_full();
    }
}

fn stop_full() {
    stop(Errno(libc::ENOSPC), b"the file system of the trace has less than 5 % or 1 GiB free");
}

/// Counts what was written; recording stops when it is as much as THR_TRACE_MAX allows.
pub fn count(bytes: u64) {
    let max = CONFIG.get().max;
    // Not counted without need: all threads would write to one cache line.
    if max != u64::MAX && WRITTEN.fetch_add(bytes, Relaxed) + bytes >= max {
        stop(Errno(libc::EDQUOT), b"the trace has reached THR_TRACE_MAX");
    }
}

/// In a forked child: it has written nothing.
pub fn forget() {
    WRITTEN.store(0, Relaxed);
}

fn stop(cause: Errno, why: &'static [u8]) {
    if PROCESS.stopped.swap(cause.0 as u32, SeqCst) == 0 {
        say(Cause::Stopped, &[why, b"; recording stops"]);
        // Every record now takes the slow way, where it is only counted.
        process::set_write_through(true);
    }
}
