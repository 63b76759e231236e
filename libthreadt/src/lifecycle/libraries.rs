//! The program closes libraries: what is mapped is read before and after, so that the trace shows what was where at any time.
//!
//! A library that is opened may get the address of one that was closed. The reading before shows those that were opened since the
//! last one, that after shows those that are gone: so there are two readings between two libraries at one address. Only libc closes
//! libraries without this call, those for its own use.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::config::{self, CONFIG};
use crate::first_use::{self, process_info};
use crate::glibc::loaded_libraries;
use crate::process_state::{self, PROCESS};
use crate::trace_dir::executable_maps;
use crate::unwind;

/// The number of the libraries that were loaded when the mappings were last read here; 0 if unknown.
static NUMBER_AT_LAST_READING: AtomicU64 = AtomicU64::new(0);

/// The program is about to close a library. Returns whether [`after_close`] has to be called.
pub fn before_close() -> bool {
    let records_code = config::is_detailed() || config::stack_frames() > 0 || CONFIG.get().chooses_functions;
    if records_code {
        first_use::expect_closed_modules();
        read();
    } else {
        unwind::forget_rules();
    }
    records_code
}

/// The program has closed a library.
pub fn after_close() {
    first_use::forget_closed_modules();
    if read() {
        unwind::forget_rules();
    }
}

/// Describes the mappings in trinfo, unless no library was loaded or unloaded since the last reading: then this is `false`.
fn read() -> bool {
    if !PROCESS.files.is_done() {
        // A forked child may have its parent's libraries no more when it describes them.
        executable_maps::forget_size();
        return true;
    }
    let has_ended = PROCESS.final_flush_begun.load(Relaxed) != 0 || PROCESS.recording_ended.load(Relaxed) != 0;
    if has_ended || process_state::is_vfork_child() || executable_maps::is_partial() {
        return true;
    }
    // Before the mappings: what is loaded in between makes a difference.
    let is_forked = PROCESS.forked_from.load(Relaxed) != 0;
    let number = if is_forked { 0 } else { loaded_libraries::change_number() };
    if number != 0 && number == NUMBER_AT_LAST_READING.load(Relaxed) {
        return false;
    }
    if process_info::write_libraries() {
        NUMBER_AT_LAST_READING.store(number, Relaxed);
    }
    true
}
