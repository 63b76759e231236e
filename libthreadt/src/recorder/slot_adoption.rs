//! How a thread becomes the owner of a slot, and gets another one when the process has begun other files.

use core::arch::asm;
use core::sync::atomic::Ordering::Relaxed;

use crate::process_state;
use crate::storage::{self, Slot, file_entry, thread_local};
use crate::sys::thread_id;
use crate::trace_dir::directory;

/// `pthread_self()`, as the thread's own memory has it.
#[inline]
pub fn pthread_self() -> u64 {
    let tid;
    // SAFETY: the x86-64 TLS ABI keeps the thread pointer, which is glibc's pthread_t, at fs:0x10 (and at fs:0).
    unsafe { asm!("mov {}, qword ptr fs:[0x10]", out(reg) tid, options(nostack, readonly, preserves_flags, pure)) };
    tid
}

/// A slot that this thread owns.
pub fn adopt_slot() -> Option<Slot> {
    let slot = storage::take_slot()?;
    let (lwp, directory) = (thread_id(), directory::path_of(slot.generation.load(Relaxed).into()));
    slot.adopt(lwp, process_state::recorded_id(), pthread_self(), directory, process_state::writes_through());
    file_entry(slot, lwp).add_user();
    slot.release_writer();
    // Set again: the final flush may have begun, or the slot become stale, after the word was read and before the slot got an
    // owner.
    if process_state::writes_through() || slot.is_stale() {
        slot.set_flush_thresholds(true);
    }
    Some(slot)
}

/// The slot in which this thread records from now on, because its slot is in a trbuf that the process has left; `None` if
/// it gets none.
pub fn replace_stale_slot() -> Option<Slot> {
    // A signal handler may have replaced it already.
    if let Some(current) = thread_local::current().filter(|current| !current.is_stale()) {
        return Some(current);
    }
    let slot = adopt_slot().filter(|slot| !slot.is_stale())?;
    // The note of a release in flight stays where it is, since its thread removes it there. The record is about to be here.
    thread_local::set_current(Some(slot));
    Some(slot)
}
