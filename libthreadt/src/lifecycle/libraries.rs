//! The program closes libraries: what is mapped is read before and after, so that the trace shows what was where at any time.
//!
//! A library that is opened may get the address of one that was closed. The reading before shows those that were opened since the
//! last one, that after shows those that are gone: so there are two readings between two libraries at one address. Only libc closes
//! libraries without this call, those for its own use.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use spec::id;

use crate::config::{self, CONFIG};
use crate::first_use::{self, process_info};
use crate::glibc::loaded_libraries;
use crate::process_state::{self, PROCESS};
use crate::recorder::records;
use crate::trace_dir::executable_maps;
use crate::unwind::{CLOSINGS, Closing};

/// The number of the libraries that were loaded when the mappings were last read here; 0 if unknown.
static NUMBER_AT_LAST_READING: AtomicU64 = AtomicU64::new(0);

/// Addresses of code have been recorded, which names threads and routines, since a library was last closed.
static HAS_RECORDED_CODE: AtomicBool = AtomicBool::new(false);

/// A record has the address of a routine, whatever is recorded of callers.
pub fn note_recorded_code() {
    if !HAS_RECORDED_CODE.load(Relaxed) {
        HAS_RECORDED_CODE.store(true, Relaxed);
    }
}

/// Whether code of the libraries that are loaded may be in the trace.
fn may_have_recorded_code() -> bool {
    let is_always = config::is_detailed() || config::stack_frames() > 0 || records(id::FUNC_ENTER);
    is_always || HAS_RECORDED_CODE.swap(false, Relaxed)
}

/// A library that is being closed.
#[derive(Clone, Copy, Debug)]
pub struct LibraryClosing {
    closing: Closing,
    /// The trace may have code, so that the mappings are described.
    is_described: bool,
    /// The number of the loaded libraries before; 0 if unknown.
    number: u64,
}

/// The program is about to close a library. [`after_close`] follows, unless nothing can be recorded (`None`), or the closing is
/// left by a jump.
pub fn before_close() -> Option<LibraryClosing> {
    if !CONFIG.get().may_record() {
        return None;
    }
    // Stacks may be switched on before the library is closed.
    let closing = CLOSINGS.begin();
    let is_described = may_have_recorded_code();
    Some(LibraryClosing { closing, is_described, number: if is_described { read() } else { 0 } })
}

/// The program has closed a library.
pub fn after_close(LibraryClosing { closing, is_described, number }: LibraryClosing) {
    let mut is_unmapped = true;
    if is_described {
        first_use::forget_closed_modules();
        // What another thread has unmapped meanwhile makes a difference in both. That nothing was read does not show that nothing
        // is gone: another thread may have read since.
        is_unmapped = number == 0 || read() != number;
    }
    CLOSINGS.end(closing, is_unmapped);
}

/// Describes the mappings in trinfo, unless no library was loaded or unloaded since the last reading. Returns the number of the loaded
/// libraries, 0 if it is unknown.
fn read() -> u64 {
    if !PROCESS.files.is_done() {
        // A forked child may have its parent's libraries no more when it describes them.
        executable_maps::forget_size();
        return 0;
    }
    let has_ended = PROCESS.final_flush_begun.load(Relaxed) != 0 || PROCESS.recording_ended.load(Relaxed) != 0;
    if has_ended || process_state::is_vfork_child() || executable_maps::is_partial() {
        return 0;
    }
    // Before the mappings: what is loaded in between makes a difference.
    let is_forked = PROCESS.forked_from.load(Relaxed) != 0;
    let number = if is_forked { 0 } else { loaded_libraries::change_number() };
    let is_read = number != 0 && number == NUMBER_AT_LAST_READING.load(Relaxed);
    if !is_read && process_info::write_libraries() {
        NUMBER_AT_LAST_READING.store(number, Relaxed);
    }
    number
}
