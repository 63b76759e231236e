//! The process is about to run another program: what all threads have recorded is written first, because nothing of
//! this program is left to do it.

use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;

use super::final_flush::{begin_alone, end_alone, flush_all_slots, must_keep_rings};
use crate::first_use::process_info;
use crate::process_state::PROCESS;
use crate::storage::{self, slot_layout};

/// Runs another program by `call_next`, which only returns if it fails. The trbuf stays for that program, which appends
/// to the same files.
pub fn exec(call_next: impl Fn() -> c_int) -> c_int {
    let alone = PROCESS.files.is_done() && !must_keep_rings() && begin_alone();
    if alone {
        flush_all_slots();
        if slot_layout().is_ring() {
            process_info::write_before_exec();
        }
    }
    let result = call_next();
    if alone {
        if PROCESS.final_flush_begun.load(SeqCst) == 0 {
            storage::set_write_through(false);
        }
        end_alone();
    }
    result
}
