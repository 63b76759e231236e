//! `daemon` ends the process that calls it within libc, where no hook sees it: what has been recorded is written before.

use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;

use super::final_flush::{begin_alone, end_alone, flush_all_slots, must_keep_rings};
use crate::process_state::PROCESS;
use crate::{storage, sys, trace_dir};

/// What [`daemon`] returns.
pub struct Daemon {
    /// What the next `daemon` returned.
    pub result: c_int,
    /// It returned in the child; else it has failed in the process that called it.
    pub is_child: bool,
}

/// Calls the next `daemon`. The trbuf stays, because other threads may record until the process ends.
pub fn daemon(call_next: impl Fn() -> c_int) -> Daemon {
    let alone = PROCESS.files.is_done() && !must_keep_rings() && begin_alone();
    if alone {
        flush_all_slots();
    }
    let parent = sys::process_id();
    let result = call_next();
    let is_child = sys::process_id() != parent;
    if is_child {
        trace_dir::note_end_of_daemons_parent(parent);
    }
    // The child leaves its parent's slots alone.
    if alone && !is_child {
        if PROCESS.final_flush_begun.load(SeqCst) == 0 {
            storage::set_write_through(false);
        }
        end_alone();
    }
    Daemon { result, is_child }
}
