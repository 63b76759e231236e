//! The process ends by `exit` or `quick_exit`, or by returning from main.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use spec::id;

use super::final_flush::finish;
use super::thread_end::own_slot;
use crate::config::detail;
use crate::first_use::{initialise_at_end, is_being_initialised, records_nothing};
use crate::process_state::{self, PROCESS};
use crate::recorder::records;
use crate::storage::RunsAfter;
use crate::sys::stack_alignment::enter_aligned;
use crate::{clock, recorder};

/// Initialises a forked child anew where a signal handler has interrupted that to end it, or to call exec: what was kept goes where all
/// records go.
pub fn initialise_interrupted() {
    if is_being_initialised() {
        initialise_at_end();
    }
}

/// Records the process's end, asked for at `caller`; 0 if it was not.
pub fn record_process_exit(status: c_int, caller: u64) {
    initialise_interrupted();
    if let Some(slot) = own_slot() {
        slot.end_left_records(|| !process_state::is_vfork_child());
    }
    if records(id::PROC_EXIT) && !process_state::is_vfork_child() {
        let columns = [i64::from(status) as u64, 0, 0, 0, detail(caller)];
        recorder::put(&id::PROC_EXIT_0, clock::now_fenced(), columns);
        PROCESS.exit_recorded.store(1, Relaxed);
    }
}

/// The last handler of `exit`, which runs after all others and after every destructor; also after main returned.
#[unsafe(naked)]
pub extern "C" fn at_exit(status: c_int, argument: *mut c_void) {
    naked_asm!(".cfi_startproc", enter_aligned!("{exited}"), ".cfi_endproc", exited = sym exited)
}

extern "C" fn exited(status: c_int, _argument: *mut c_void) {
    if PROCESS.exit_recorded.load(Relaxed) == 0 {
        record_process_exit(status, 0);
    }
    // A child in this process's memory leaves it to the process.
    if !process_state::is_vfork_child() {
        recorder::end_handler();
    }
    finish(RunsAfter::Program);
}

/// Whether [`at_quick_exit`] will be called by `quick_exit`: libc forgets a handler before it calls it, in a vfork child for its parent, too.
#[unsafe(link_section = "inherited")]
static HAS_QUICK_EXIT_HANDLER: AtomicU32 = AtomicU32::new(0);

/// Notes that [`at_quick_exit`] has been registered.
#[cfg(not(test))]
pub fn note_quick_exit_handler() {
    HAS_QUICK_EXIT_HANDLER.store(1, Relaxed);
}

/// Records that `quick_exit` was asked for at `caller`. Does what the handler does if there is none.
pub fn before_quick_exit(status: c_int, caller: u64) {
    if records_nothing() {
        return;
    }
    record_process_exit(status, caller);
    if HAS_QUICK_EXIT_HANDLER.load(Relaxed) == 0 {
        finish(RunsAfter::Program);
    }
}

/// The last handler of `quick_exit`, which runs after those that the program has added.
#[unsafe(naked)]
pub extern "C" fn at_quick_exit(argument: *mut c_void) {
    naked_asm!(".cfi_startproc", enter_aligned!("{exited}"), ".cfi_endproc", exited = sym exited_quickly)
}

extern "C" fn exited_quickly(_argument: *mut c_void) {
    HAS_QUICK_EXIT_HANDLER.store(0, Relaxed);
    finish(RunsAfter::Program);
}
