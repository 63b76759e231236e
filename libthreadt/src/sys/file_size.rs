//! RLIMIT_FSIZE, the limit on the size of files. A write that begins beyond it raises SIGXFSZ, which ends a program that
//! does not expect it.
//!
//! So a file is written in this order: its note is taken (`open_files`), the limit is read here, then comes the write. A
//! hook that is about to change the limit first announces the new one ([`begin_change`]), and then waits for the writes
//! whose note is taken already (`left_files::finish_writes`). Either the writer learns of the new limit, or the
//! hook waits for the write.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::call::{call, filled_by};

/// How many calls are changing the limit, above the least limit that they set. 0 if the process has never changed it.
static CHANGES: AtomicU64 = AtomicU64::new(0);
const COUNT_AT: u32 = 56;
/// No limit. File systems have none as large.
const NO_LIMIT: u64 = (1 << COUNT_AT) - 1;

/// Whether no call of this process has changed the limit, so that only another process can.
pub fn is_unchanged() -> bool {
    // ORDERING: SeqCst, as the change of `CHANGES` and both accesses to the holder of a note: a writer that finds no
    // change here is seen by the hook, and waited for.
    CHANGES.load(SeqCst) == 0
}

/// The largest file that this process may write, bytes. Asks the kernel.
pub fn file_size_limit() -> u64 {
    // ORDERING: as in `is_unchanged`. Before the kernel is asked: if the change has ended, the kernel knows it.
    let changes = CHANGES.load(SeqCst);
    let announced = if changes == 0 { NO_LIMIT } else { changes & NO_LIMIT };
    let ask = |limit| {
        // SAFETY: the kernel reads no limit and fills this one.
        unsafe { call(libc::SYS_prlimit64, [0, libc::RLIMIT_FSIZE as usize, 0, limit]) }
    };
    // Where a filter forbids to ask, a limit that the program has changed counts as the least.
    let unknown = if changes == 0 { u64::MAX } else { 0 };
    // SAFETY: as above, when it returns 0.
    let limit = unsafe { filled_by(ask) }.map_or(unknown, |limit: libc::rlimit| limit.rlim_cur);
    if announced == NO_LIMIT { limit } else { limit.min(announced) }
}

/// The host is about to set this limit. Until [`end_change`] no write goes beyond it, and from now on the kernel is asked
/// before each write.
pub fn begin_change(limit: u64) {
    change(|count, announced| (count.saturating_add(1), announced.min(limit)));
}

/// The call that changes the limit has returned.
pub fn end_change() {
    change(|count, announced| match count {
        0 | 1 => (0, NO_LIMIT),
        _ => (count - 1, announced),
    });
}

/// Forgets the changes that other threads had begun, in a forked child.
pub fn end_all_changes() {
    if !is_unchanged() {
        change(|_, _| (0, NO_LIMIT));
    }
}

fn change(new: impl Fn(u8, u64) -> (u8, u64)) {
    let _ = CHANGES.fetch_update(SeqCst, SeqCst, |word| {
        let announced = if word == 0 { NO_LIMIT } else { word & NO_LIMIT };
        let (count, announced) = new((word >> COUNT_AT) as u8, announced);
        Some(u64::from(count) << COUNT_AT | announced)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announced_limit_holds_until_its_calls_have_ended() {
        let free = file_size_limit();
        begin_change(u64::MAX);
        assert_eq!((file_size_limit(), is_unchanged()), (free, false));
        begin_change(0);
        begin_change(5);
        end_change();
        assert_eq!(file_size_limit(), 0);
        end_change();
        end_change();
        assert_eq!((file_size_limit(), is_unchanged()), (free, false));
        end_change();
        begin_change(7);
        end_all_changes();
        assert_eq!(file_size_limit(), free);
    }
}
