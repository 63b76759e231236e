//! An exec ends all threads of the program: what they have recorded is written before.

use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;

use super::final_flush::{begin_alone, end_alone, flush_all_slots, must_keep_rings};
use crate::first_use::{prepare_files_at_end, process_info};
use crate::process_state::{self, PROCESS};
use crate::storage::{self, slot_layout, thread_local};
use crate::sys::seccomp;
use crate::trace_dir::{names_owner, sandbox_spares};
use crate::{clock, recorder};

/// Runs another program by `call_next`, which only returns if it fails. The trbuf stays for that program, which appends
/// to the same files.
pub fn exec(call_next: impl Fn() -> c_int) -> c_int {
    if recorder::has_records_without_slot() && (PROCESS.files.is_done() || prepare_files_at_end()) {
        // A signal handler has interrupted the first record, or a jump has left it. What is still open is closed by the kernel, or
        // by the handler's return.
        recorder::slot_or_claim(0, clock::now_fenced(), &[]);
        recorder::take_over_last_losses();
    }
    run(PROCESS.files.is_done() && !must_keep_rings(), call_next)
}

/// Runs another program by `call_next`, after what all threads have recorded is written if that is `possible`.
pub(super) fn run(possible: bool, call_next: impl Fn() -> c_int) -> c_int {
    // Another thread that executes a program does not wait for what this one has interrupted.
    let interrupted = thread_local::own().filter(|slot| !slot.is_idle());
    let note_executing = |is: u8| interrupted.iter().for_each(|slot| slot.is_executing.store(is, SeqCst));
    note_executing(1);
    let alone = possible && begin_alone();
    if alone {
        flush_all_slots();
        if slot_layout().is_ring() && process_state::sandboxed().is_none() {
            process_info::write_before_exec();
        }
        if may_remove_files() {
            // SAFETY: this thread alone flushes, of a process whose files are made.
            unsafe { names_owner::remove_spares() };
        }
    }
    // The next program does not know them.
    let has_removed_spares = !process_state::is_vfork_child() && sandbox_spares::remove_all();
    sandbox_spares::report_before_exec();
    let result = call_next();
    if has_removed_spares {
        sandbox_spares::make();
    }
    if alone {
        if PROCESS.final_flush_begun.load(SeqCst) == 0 {
            storage::set_write_through(false);
        }
        end_alone();
    }
    note_executing(0);
    result
}

/// Whether what this process has left in the directory is its own to remove, and a filter of the program's does not forbid that.
fn may_remove_files() -> bool {
    let is_out_of_reach = || process_state::sandboxed().is_some() || sandbox_spares::hindrance().is_some();
    !process_state::is_vfork_child() && !seccomp::has_new_filter() && !is_out_of_reach()
}
