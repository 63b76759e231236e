//! A record that is made after the final flush has given up the trbuf, while the process ends.
//!
//! The process may end at any step from here on, and then what is in memory is gone: nobody reads in a trbuf that another
//! thread was in a release. If this record is that of an acquisition that followed the release, the lock would have two owners.
//! So releases that other threads have in flight come first.

use core::sync::atomic::Ordering::Relaxed;

use crate::process_state;
use crate::storage::{ALL_REGIONS, Slot, WriteRight, file_entry, for_each_slot};
use crate::sys::{self, BlockedSignals};

/// How long the records of releases are waited for, all of them together: their threads may not get to run.
const PATIENCE_STEPS: u32 = 100;
const PATIENCE_NS: i64 = 100_000;

/// Lets the releases that other threads began up to `time`, nanoseconds since the Epoch, come into their files: waits for their
/// records, and writes for a thread that takes too long that its release is in flight.
#[cold]
#[inline(never)]
pub fn write_earlier_releases(own: Slot, time: u64) {
    if process_state::is_vfork_child() {
        return;
    }
    let mut patience = PATIENCE_STEPS;
    for_each_slot(|slot| {
        let is_releasing = || slot.has_release_up_to(time);
        if slot == own || slot.is_stale() || !is_releasing() {
            return;
        }
        while patience > 0 && is_releasing() {
            patience -= 1;
            sys::sleep(PATIENCE_NS);
        }
        if is_releasing() {
            write_in_flight(slot);
        }
    });
}

/// Writes the record of the release that another thread has in flight. If that fails, it stays in memory.
fn write_in_flight(slot: Slot) {
    // A handler that leaves this by a jump would keep the right.
    let _blocked = BlockedSignals::new();
    let lwp = slot.lwp.load(Relaxed);
    if lwp == 0 || slot.become_writer(sys::thread_id(), ALL_REGIONS) != WriteRight::Taken {
        return;
    }
    if slot.lwp.load(Relaxed) == lwp {
        slot.append_in_flight_record(0);
        let _ = slot.write_all(file_entry(slot, lwp));
    }
    slot.release_writer();
}
