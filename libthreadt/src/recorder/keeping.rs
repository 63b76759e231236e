//! Records that can go nowhere yet: they are kept until there is a slot for them, and the handler, if there is one, is ready.

use core::sync::atomic::Ordering::Relaxed;

use spec::encode::UntimedRecord;

use super::slot_adoption::pthread_self;
use crate::process_state::PROCESS;
use crate::storage::kept_records::{Kept, begin_keeping, keep};
use crate::sys::thread_id;

/// Keeps records until this thread, or the one for which it works as a `guest_of` that, has a slot; returns how many find no room.
pub fn keep_all(guest_of: Option<u32>, time: u64, lines: &[UntimedRecord]) -> u32 {
    // Before the thread's ID, which is another one in a child that a signal handler forks.
    begin_keeping();
    let (lwp, tid) = (guest_of.unwrap_or_else(thread_id), pthread_self());
    lines.iter().map(|line| u32::from(!keep(&Kept { lwp, tid, time, line: *line }))).sum()
}

/// As [`keep_all`], in a forked child that is being initialised: where losses are counted is still its parent's.
pub fn keep_early(time: u64, lines: &[UntimedRecord]) {
    let lost = keep_all(None, time, lines);
    if lost != 0 {
        let _ = PROCESS.lost_early_since.compare_exchange(0, time, Relaxed, Relaxed);
        PROCESS.lost_early.fetch_add(lost, Relaxed);
    }
}
