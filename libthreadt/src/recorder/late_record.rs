//! A record after the final flush has begun.
//!
//! When the trbuf is about to go, no other thread records any more ([`PROCESS`]'s `ending_lwp`): those that want to wait for the end
//! of the process, which would miss the records of releases that it cuts off. But the thread that ends the process may still run
//! code of the program's: `exit` writes out a stream by a function of the program's, or runs handlers that are older than this library's.
//! Once such code records, the others go on, too.

use core::sync::atomic::Ordering::SeqCst;

use crate::process_state::PROCESS;
use crate::storage::{Slot, for_each_slot};
use crate::sys::{self, observable_step};

/// How long the end is waited for, and the records of others by the ending thread: in nanoseconds, and in steps where the kernel must not
/// be asked for the time.
const PATIENCE: u64 = 100_000_000;
const PATIENCE_STEPS: u32 = 1000;
const STEP: i64 = 100_000;

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
    if ending == sys::thread_id() {
        PROCESS.ending_lwp.store(0, SeqCst);
        // What this one has acquired is theirs until they have recorded that they released it.
        for_each_slot(|slot| wait_until(|| slot == own || slot.is_stale() || slot.is_idle(), PATIENCE_STEPS));
    } else {
        // A test goes on at once: there the process does not end.
        wait_until(|| PROCESS.ending_lwp.load(SeqCst) == 0, if cfg!(test) { 1 } else { PATIENCE_STEPS });
        PROCESS.ending_lwp.store(0, SeqCst);
    }
}

fn wait_until(holds: impl Fn() -> bool, steps: u32) {
    let begun = sys::monotonic();
    for _ in 0..steps {
        if holds() || sys::monotonic().wrapping_sub(begun) > PATIENCE {
            return;
        }
        // OBSERVABLE: the thread stands.
        sys::sleep(STEP);
    }
}
