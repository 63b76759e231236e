//! What is per thread: the slot.
//!
//! The only thread-local variable is one pointer in the initial-exec model, which needs no `__tls_get_addr` (that may
//! allocate).

use core::arch::{asm, global_asm};
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};

use spec::{RecordKind, id};

use crate::process::{self, PROCESS};
use crate::slot::{ALL_REGIONS, Slot, Writer};
use crate::sys::Errno;
use crate::{buffers, clock, directory, limits, record, sys};

global_asm!(
    ".pushsection .tbss.threadt_slot,\"awT\",@nobits",
    ".balign 8",
    ".globl threadt_slot",
    ".hidden threadt_slot",
    ".type threadt_slot,@object",
    ".size threadt_slot, 8",
    "threadt_slot:",
    ".zero 8",
    ".popsection",
);

/// This thread's slot, or null.
#[inline(always)]
fn current() -> *const Slot {
    let slot;
    // SAFETY: reads this thread's variable.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + threadt_slot@gottpoff]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) slot,
            options(nostack, readonly, preserves_flags, pure),
        );
    }
    slot
}

/// Sets this thread's slot.
fn set_current(slot: *const Slot) {
    // SAFETY: writes this thread's variable.
    unsafe {
        asm!(
            "mov {1}, qword ptr [rip + threadt_slot@gottpoff]",
            "mov qword ptr fs:[{1}], {0}",
            in(reg) slot,
            out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// `pthread_self()`, as the thread's own memory has it.
#[inline]
pub fn tid() -> u64 {
    let tid;
    // SAFETY: the x86-64 TLS ABI keeps the thread pointer, which is glibc's pthread_t, at fs:0x10 (and at fs:0).
    unsafe { asm!("mov {}, qword ptr fs:[0x10]", out(reg) tid, options(nostack, readonly, preserves_flags, pure)) };
    tid
}

/// This thread's slot; it gets one if it has none. If that fails, so many records are counted as lost.
#[inline(always)]
pub fn slot(records: u32) -> Option<&'static Slot> {
    // SAFETY: the variable holds null or a slot, and slots are never unmapped.
    match unsafe { current().as_ref() } {
        Some(slot) if process::is_awake() => Some(slot),
        _ => claim(records),
    }
}

/// This thread's slot, if it has one already.
pub fn slot_if_any() -> Option<&'static Slot> {
    // SAFETY: as in `slot`.
    unsafe { current().as_ref() }
}

/// In a forked child: the slot was the parent's. It is returned if a record is in the making there.
pub fn forget_slot() -> Option<&'static Slot> {
    let slot = slot_if_any().filter(|slot| slot.in_progress.load(Relaxed) != 0 || slot.writer.load(Relaxed) != 0);
    set_current(ptr::null());
    slot
}

#[cold]
#[inline(never)]
fn claim(records: u32) -> Option<&'static Slot> {
    // A vfork child would leave a slot of its own in its parent's thread-local variable.
    if !process::wake() || process::is_borrowed() || !PROCESS.files.run(directory::prepare) {
        return homeless(records, Errno(libc::EAGAIN));
    }
    // After the awakening: it makes a forked child forget its parent's.
    if let Some(slot) = slot_if_any() {
        return Some(slot);
    }
    if let Some(cause) = limits::stopped() {
        return homeless(records, cause);
    }
    let Some(slot) = buffers::take_slot() else {
        record::report(Err(Errno(libc::ENOMEM)));
        return homeless(records, Errno(libc::ENOMEM));
    };
    let lwp = sys::thread_id();
    slot.adopt(lwp, process::id(), tid(), directory::path(), process::writes_through());
    buffers::entry(lwp).users.fetch_add(1, AcqRel);
    slot.release_writer();
    // Set again: the process may have begun to end between the look at the word and the slot's getting an owner.
    if process::writes_through() {
        slot.set_limits(true);
    }
    if let Some(other) = slot_if_any() {
        // A signal handler was faster.
        slot.end();
        buffers::let_go(slot);
        return Some(other);
    }
    set_current(slot);
    take_in(slot);
    let parent = PROCESS.born_of.swap(0, Relaxed);
    if parent != 0 && process::records(id::PROC_BEGIN) {
        record::put(&id::PROC_BEGIN_0, clock::now(), [u64::from(parent), 0, 0, 0, 0]);
    }
    Some(slot)
}

/// Counts records whose thread has no slot.
fn homeless(records: u32, cause: Errno) -> Option<&'static Slot> {
    PROCESS.homeless.fetch_add(records, Relaxed);
    PROCESS.homeless_cause.store(cause.0 as u32, Relaxed);
    None
}

/// Lets this thread's slot tell of the records of threads that have none.
pub fn take_in(slot: &Slot) {
    let homeless = PROCESS.homeless.swap(0, Relaxed);
    if homeless != 0 {
        slot.lose(homeless, Errno(PROCESS.homeless_cause.load(Relaxed) as i32));
    }
}

/// Records this thread's end and writes what it has recorded to its file. It may go on recording.
pub fn end(form: &'static RecordKind, exit_status: u64) {
    if process::records(id::THR_EXIT) {
        record::put(form, clock::now(), [exit_status, 0, 0, 0, 0]);
    }
    write_out();
}

/// Writes what this thread, which is on its way out, has recorded to its file (unless that is a ring), and lets its slot go to another one once
/// the thread is gone.
pub fn write_out() {
    let Some(slot) = slot_if_any().filter(|_| process::is_awake()) else { return };
    let lwp = slot.lwp.load(Relaxed);
    // A record that was in the making when the thread was cancelled will never be finished.
    slot.in_progress.store(0, Relaxed);
    if slot.writer.load(Relaxed) == lwp {
        slot.release_writer();
    }
    let keeps = buffers::shape().is_ring() && !process::writes_through();
    if !keeps && slot.become_writer(lwp, ALL_REGIONS) == Writer::Taken {
        slot.tell_losses(0, clock::since_epoch(clock::now()));
        record::report(slot.write_all(buffers::entry(lwp)));
        slot.release_writer();
    }
    if slot.end() {
        buffers::let_go(slot);
    }
}
