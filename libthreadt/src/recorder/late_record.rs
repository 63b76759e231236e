//! A record after the final flush has begun.
//!
//! When the trbuf is about to go, no other thread records any more ([`PROCESS`]'s `ending_lwp`): those that want to wait for the end
//! of the process, which would miss the records of releases that it cuts off. But the thread that ends the process may still run
//! code of the program's: `exit` writes out a stream by a function of the program's, or runs handlers that are older than this library's.
//! Once such code records, the others go on, too. From then on whoever acquires something waits for the records of others' releases,
//! since nothing tells of them if the process ends.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::process_state::{ENDS_LATE, PROCESS};
use crate::storage::{Slot, for_each_slot};
use crate::sys::{self, observable_step};

/// For how long all late records of the process may wait, nanoseconds from the first one on. A test decides by steps.
const PATIENCE: u64 = if cfg!(test) { u64::MAX / 2 } else { 100_000_000 };
/// How often the end is looked for in a test, where it does not come.
const END_LOOKS: u32 = if cfg!(test) { 1 } else { u32::MAX };
const LOOK_NS: i64 = 50_000;

/// Notes that a thread makes a late record, in its slot. Where the trbuf has gone already, this mostly does not return.
#[cold]
#[inline(never)]
pub fn begin(own: Slot) {
    observable_step();
    // ORDERING: SeqCst, as for the word below (`lifecycle::final_flush`).
    PROCESS.recorded_after_final_flush.store(1, SeqCst);
    observable_step();
    let ending = PROCESS.ending_lwp.load(SeqCst);
    if ending == 0 {
        return;
    }
    if ![sys::thread_id(), ENDS_LATE].contains(&ending) {
        wait_until(|| PROCESS.ending_lwp.load(SeqCst) != ending, END_LOOKS);
    }
    // The thread that ends the process may have found that another one has recorded, so that the trbuf stays.
    let _ = PROCESS.ending_lwp.compare_exchange(ending, ENDS_LATE, SeqCst, SeqCst);
    // A release waits for nobody: those that wait may wait for it.
    if PROCESS.ending_lwp.load(SeqCst) != 0 && !own.has_release_in_flight() {
        for_each_slot(|slot| wait_until(|| slot.is_stale() || !slot.has_release_in_flight(), u32::MAX));
    }
}

/// Waits until `holds` is true, or has been looked for so often, or the late records of the process have waited for long enough.
fn wait_until(holds: impl Fn() -> bool, looks: u32) {
    for _ in 0..looks {
        if holds() || !may_wait() {
            return;
        }
        // OBSERVABLE: the thread stands.
        sys::sleep(LOOK_NS);
    }
}

/// Whether late records of the process may still wait; not where the kernel must not be asked for the time.
fn may_wait() -> bool {
    let now = sys::monotonic();
    let first = match PROCESS.first_late_wait.compare_exchange(0, now, Relaxed, Relaxed) {
        Ok(_) => now,
        Err(first) => first,
    };
    now != 0 && now.saturating_sub(first) < PATIENCE
}
