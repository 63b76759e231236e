//! The process is about to run another program: what all threads have recorded is written first, because nothing of
//! this program is left to do it.

use core::sync::atomic::Ordering::SeqCst;

use super::final_flush::{begin_alone, end_alone, flush_all_slots, must_keep_rings};
use crate::first_use::process_info;
use crate::process_state::PROCESS;
use crate::storage::{self, slot_layout};

/// Writes all that has been recorded. The trbuf stays for the next program, which appends to the same files. If this
/// returns `true`, no other thread may change the flush thresholds until [`after_failed_exec`].
pub fn before_exec() -> bool {
    let alone = PROCESS.files.is_done() && !must_keep_rings() && begin_alone();
    if alone {
        flush_all_slots();
        if slot_layout().is_ring() {
            process_info::write_before_exec();
        }
    }
    alone
}

/// The exec failed; `alone` is the result of [`before_exec`].
pub fn after_failed_exec(alone: bool) {
    if alone {
        if PROCESS.final_flush_begun.load(SeqCst) == 0 {
            storage::set_write_through(false);
        }
        end_alone();
    }
}
