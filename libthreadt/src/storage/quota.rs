//! When to stop: a trace must not fill its host's disk, nor grow beyond what the environment allows.
//!
//! Once recording has stopped, calls are still counted, so that each thread's loss record can say how many are missing.
//! What was in the buffers when the disk became full stays there: the space of the trbuf is reserved, and trace-cat
//! reads it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spec::file_systems::reserved_bytes;
use spec::size::SizeLimit;

use super::stop_time;
use crate::clock;
use crate::config::CONFIG;
use crate::process_state::{self, PROCESS};
use crate::sys::diagnostics::{Warning, errno_text, warn};
use crate::sys::{Errno, Fd, Result, SetOnce, file_size};
use crate::trace_dir::directory_count::DirectoryCount;

/// After so many bytes, at the latest, the file system is asked again how much is free. When little is left, after this
/// fraction of it.
const UNASKED_MAX: u64 = 1 << 20;
const UNASKED_FRACTION: u64 = 16;

/// Checks before a write of `length` bytes that the file system has room for it. If it is about to be full, recording
/// stops.
pub fn check_space(file: &Fd, length: u64) -> Result {
    // ORDERING: Relaxed; the word stands for itself. If two threads subtract at once, one subtraction may be lost: the
    // file system is asked a little later. To subtract in one step takes longer.
    if let Some(unasked) = PROCESS.unasked.load(Relaxed).checked_sub(length) {
        PROCESS.unasked.store(unasked, Relaxed);
        return Ok(());
    }
    ask_for_space(file)
}

// Not inlined, so that the answer takes no room on the stack of whoever writes.
#[cold]
#[inline(never)]
fn ask_for_space(file: &Fd) -> Result {
    let Ok(system) = file.file_system() else { return Ok(()) };
    let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize as u64);
    let Some(free) = bytes(system.f_bavail).checked_sub(reserved_bytes(bytes(system.f_blocks))) else {
        note_failure(Errno(libc::ENOSPC));
        return Err(Errno(libc::ENOSPC));
    };
    PROCESS.unasked.store((free / UNASKED_FRACTION).min(UNASKED_MAX), Relaxed);
    Ok(())
}

/// For how long it is relied upon that no other process limits the size of this one's files, nanoseconds.
const LIMIT_UNASKED: u64 = 1_000_000;
/// A reading of the clock from just before the kernel answered that there is no limit.
#[unsafe(link_section = "inherited")]
static UNLIMITED_AT: AtomicU64 = AtomicU64::new(0);

/// How far the process may write its files, asked after the file was opened. Before a `long` write the kernel is always
/// asked; else once in a while, as long as the process itself changes nothing.
pub fn file_size_limit(long: bool) -> u64 {
    if long || !file_size::is_unchanged() {
        return file_size::file_size_limit();
    }
    let now = clock::now_unfenced();
    // ORDERING: Relaxed; the word stands for itself. A time that seems to come is another time namespace's.
    if now.wrapping_sub(UNLIMITED_AT.load(Relaxed)) < LIMIT_UNASKED {
        return u64::MAX;
    }
    let limit = file_size::file_size_limit();
    if limit == u64::MAX {
        UNLIMITED_AT.store(now, Relaxed);
    }
    limit
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
    if max == SizeLimit::NONE {
        return;
    }
    let written = PROCESS.written.fetch_add(bytes, Relaxed) + bytes;
    let total = match max.of_directory {
        true => count_in_directory(),
        false => written,
    };
    if total >= max.bytes {
        stop_time::propose(Errno(libc::EDQUOT));
    }
}

/// Stops recording from the start if the directory is full already.
pub fn check_directory() {
    if CONFIG.get().max.of_directory {
        count(0);
        stop_time::outlast();
    }
}

static DIRECTORY_COUNT: SetOnce<DirectoryCount> = SetOnce::new(DirectoryCount::new());

/// The bytes that all processes of the directory have written, this one's included. If another thread is counting, it or the
/// next write brings the count up to date, as while the process becomes another user, and in a vfork child, which other threads would not
/// know as one that counts; if the count cannot be had, this process counts alone.
fn count_in_directory() -> u64 {
    // What root makes in the new user's directory would be root's.
    let is_changing_user = PROCESS.changing_user.load(Relaxed) != 0;
    if is_changing_user || process_state::is_vfork_child() || !PROCESS.counting.take() {
        return 0;
    }
    let written = PROCESS.written.load(Relaxed);
    // SAFETY: `counting` excludes all others.
    let added = unsafe { DIRECTORY_COUNT.get_mut() }.add(written, PROCESS.counted.load(Relaxed));
    let total = match added {
        Ok((counted, total)) => {
            PROCESS.counted.store(counted, Relaxed);
            total
        }
        Err(errno) => {
            // Once recording has stopped the count changes nothing any more.
            if errno.is_foreign_file() && stop_time::stopped().is_none() {
                let reason = errno_text(errno);
                warn(
                    Warning::Control,
                    &[b"'trctl' is not used: ", reason, b"; THR_TRACE_MAX counts this process alone"],
                );
            }
            written
        }
    };
    PROCESS.counting.release();
    total
}
