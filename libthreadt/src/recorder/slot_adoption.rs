//! How a thread becomes the owner of a slot, and gets another one when the process has begun other files.

use core::arch::asm;
use core::sync::atomic::Ordering::Relaxed;

use crate::glibc::object_words::thread_lwp;
use crate::process_state::{self, WorkingProcess};
use crate::storage::{self, Slot, file_entry, thread_local};
use crate::sys::{self, BlockedSignals, seccomp, thread_exists, thread_id, thread_word};
use crate::trace_dir::directory;

/// `pthread_self()`, as the thread's own memory has it.
#[inline]
pub fn pthread_self() -> u64 {
    let tid;
    // SAFETY: the x86-64 TLS ABI keeps the thread pointer, which is glibc's pthread_t, at fs:0x10 (and at fs:0).
    unsafe { asm!("mov {}, qword ptr fs:[0x10]", out(reg) tid, options(nostack, readonly, preserves_flags, pure)) };
    tid
}

/// A slot for the records of the thread `lwp`.
fn take_slot_for(lwp: u32, tid: u64, write_through: bool, process: WorkingProcess) -> Option<Slot> {
    let slot = storage::take_slot().filter(|_| process.is_current())?;
    storage::touch_slot(slot);
    process.check().ok()?;
    let directory = directory::path_of(slot.generation.load(Relaxed).into());
    slot.adopt(lwp, process_state::recorded_id(), tid, directory, write_through);
    slot.release_writer();
    Some(slot)
}

/// A slot that this thread, whose LWP is `lwp`, owns.
fn adopt_slot(lwp: u32, process: WorkingProcess) -> Option<Slot> {
    sys::stack::forget_own_stack();
    let slot = take_slot_for(lwp, pthread_self(), process_state::writes_through(), process)?;
    // Set again: the final flush may have begun, or the slot become stale, after the word was read and before the slot got an
    // owner.
    if process_state::writes_through() || slot.is_stale() {
        slot.set_flush_thresholds(true);
    }
    Some(slot)
}

/// The slot in which this thread, which has none, records from now on; `None` if it gets none.
pub fn claim_slot() -> Option<Slot> {
    claim_slot_of(thread_id())
}

/// As [`claim_slot`], where the thread's LWP may be that of the one that waits for this vfork child ([`lwp_of_host`]).
pub fn claim_slot_of(lwp: u32) -> Option<Slot> {
    // A jump would leave a slot that nobody has, or a part of the file that nobody maps: a thread may try it again and again.
    let _blocked = BlockedSignals::new();
    let process = WorkingProcess::current();
    use_slot(None, adopt_slot(lwp, process)?, process)
}

/// In a vfork child the LWP of the thread that waits for it, whose memory and records it has; `None` if there is no such thread, or
/// if that may not be asked.
#[cold]
pub fn lwp_of_host() -> Option<u32> {
    // SAFETY: glibc's structure of this thread.
    let lwp = unsafe { thread_lwp(pthread_self()) }?;
    let may_ask = !thread_word::is_shared() && !seccomp::has_new_filter();
    (may_ask && thread_exists(process_state::id(), lwp)).then_some(lwp)
}

/// A slot in which this thread writes what another one, with this LWP and `pthread_self()`, could not: it is that one's to be
/// ended. The final flush writes it.
pub fn claim_slot_for(lwp: u32, tid: u64) -> Option<Slot> {
    let slot = take_slot_for(lwp, tid, false, WorkingProcess::current())?;
    file_entry(slot, lwp).add_user(slot);
    Some(slot)
}

/// Makes `new` the slot in which this thread records, unless a signal handler has given it another one than `old`.
///
/// A signal handler may come at any step, and leave by a jump. Until the thread has the slot, the slot is no user of its
/// file, and from then on no other claim of the thread begins: the file has no second user. In a child that the handler has
/// forked, which returns here, the slot is its parent's.
fn use_slot(old: Option<Slot>, new: Slot, process: WorkingProcess) -> Option<Slot> {
    sys::observable_step();
    if !process.is_current() {
        return None;
    }
    if !thread_local::replace_current(old, new) {
        // It is reused after the thread's end.
        new.end();
        storage::release_slot(new);
        return thread_local::own();
    }
    sys::observable_step();
    file_entry(new, new.lwp.load(Relaxed)).add_user(new);
    Some(new)
}

/// The slot in which this thread records from now on, because its slot is in a trbuf that the process has left; `None` if
/// it gets none.
pub fn replace_stale_slot() -> Option<Slot> {
    let stale = thread_local::own();
    // A signal handler may have replaced it already.
    if let Some(current) = stale.filter(|current| !current.is_stale()) {
        return Some(current);
    }
    let _blocked = BlockedSignals::new();
    let process = WorkingProcess::current();
    let slot = adopt_slot(thread_id(), process).filter(|slot| !slot.is_stale())?;
    // The note of a release in flight stays where it is, since its thread removes it there. The record is about to be here.
    use_slot(stale, slot, process)
}
