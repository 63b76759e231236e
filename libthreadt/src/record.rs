//! The way of a record, from a hook into its thread's slot.

use core::arch::asm;
use core::sync::atomic::{
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

use spec::buffer::REGIONS;
use spec::{EventId, Form};

use crate::process::{self, PROCESS};
use crate::say::{Cause, reason, say};
use crate::slot::{Slot, Writer, capacity};
use crate::sys::Errno;
use crate::{buffers, clock, directory, sys, thread, trinfo};

/// Records one line. `time` is a reading of [`clock::now`].
///
/// Nests: a signal handler may come at any instruction, record, and even leave by `siglongjmp`.
#[inline(never)]
pub fn put(form: &'static Form, time: u64, arguments: [u64; 5]) {
    let Some(slot) = thread::slot() else { return };
    let time = clock::since_epoch(time);
    let depth = slot.depth.load(Relaxed);
    if depth != 0 {
        return put_nested(slot, depth, form, time, &arguments);
    }
    put_at(slot, 0, form, time, &arguments);
}

/// Records one line of a mutex call, under category 6 if the mutex is recursive.
pub fn put_mutex(
    event: EventId,
    recursive: bool,
    form: &'static Form,
    recursive_form: &'static Form,
    time: u64,
    arguments: [u64; 5],
) {
    if process::records_mutex(event, recursive) {
        put(if recursive { recursive_form } else { form }, time, arguments);
    }
}

#[inline(always)]
fn put_at(slot: &'static Slot, depth: usize, form: &'static Form, time: u64, arguments: &[u64; 5]) {
    slot.frames[depth & (REGIONS - 1)].store(stack_pointer(), Relaxed);
    // ORDERING: a plain store, ordered for this thread's own signal handlers by the compiler fence. Whoever ends the
    // process has every thread pass a barrier (membarrier) between setting `limit` and looking at `depth`: then
    // either this thread sees the new limit below, or the other one sees that a record is in the making.
    slot.depth.store(depth as u8 + 1, Relaxed);
    compiler_fence(SeqCst);
    let region = &slot.regions[depth & (REGIONS - 1)];
    if (region.filled.load(Relaxed) >> 32) as u32 > region.limit.load(Relaxed) || region.limit.load(Relaxed) == 0 {
        put_slowly(slot, depth, form, time, arguments);
    } else {
        // SAFETY: we own the slot, `depth` records are below this one, and there is room.
        unsafe { slot.append(depth, form, time, arguments) };
    }
    compiler_fence(SeqCst);
    slot.depth.store(depth as u8, Relaxed);
}

/// The region is full, or each record goes to the file at once.
#[cold]
#[inline(never)]
fn put_slowly(slot: &'static Slot, depth: usize, form: &'static Form, time: u64, arguments: &[u64; 5]) {
    if PROCESS.ending.load(Relaxed) != 0 {
        PROCESS.late.store(1, SeqCst);
    }
    let lwp = slot.lwp.load(Relaxed);
    let writer = slot.become_writer(lwp, depth as u8);
    let region = &slot.regions[depth & (REGIONS - 1)];
    let full = || (region.filled.load(Relaxed) >> 32) as u32 > capacity(depth);
    if writer == Writer::Taken && full() {
        let written = slot.write(depth, buffers::entry(lwp));
        report(written);
        trinfo::refresh();
        if let Err(errno) = written {
            slot.drop_older_half(depth, errno);
        }
    }
    if writer == Writer::Refused || full() {
        slot.lose(1, Errno(libc::EBUSY));
    } else {
        if writer == Writer::Taken {
            slot.tell_losses(depth, time);
        }
        if !full() {
            // SAFETY: we own the slot and are its writer (or interrupted it in this very thread), and there is room.
            unsafe { slot.append(depth, form, time, arguments) };
        }
        if writer == Writer::Taken && region.limit.load(Relaxed) == 0 {
            report(slot.write(depth, buffers::entry(lwp)));
        }
    }
    if writer == Writer::Taken {
        slot.release_writer();
    }
}

/// A record within a record: this is a signal handler, or one was left by a jump.
#[cold]
#[inline(never)]
fn put_nested(slot: &'static Slot, mut depth: u8, form: &'static Form, time: u64, arguments: &[u64; 5]) {
    while let Some(below) = depth.checked_sub(1)
        && was_left(slot.frames[usize::from(below) & (REGIONS - 1)].load(Relaxed))
    {
        depth = below;
        slot.depth.store(depth, Relaxed);
        if slot.writer.load(Relaxed) == slot.lwp.load(Relaxed) && slot.writer_depth.load(Relaxed) >= depth {
            // The write that was left is noted in the region and will be done once more.
            slot.release_writer();
        }
    }
    if usize::from(depth) < REGIONS {
        put_at(slot, depth.into(), form, time, arguments);
    } else {
        slot.lose(1, Errno(libc::ENOBUFS));
    }
}

#[inline(always)]
fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

/// Whether a record that began with the stack at `frame` will never be finished: its frame has gone, because a signal
/// handler jumped over it (`siglongjmp`).
///
/// On one stack a frame is gone once the stack pointer is above it. With an alternate signal stack it matters which of
/// the two stacks each of them is on.
fn was_left(frame: usize) -> bool {
    let here = stack_pointer();
    let Ok(stack) = sys::signal_stack() else { return here > frame };
    let start = stack.ss_sp as usize;
    let frame_is_alternate = stack.ss_flags & libc::SS_DISABLE == 0 && (start..start + stack.ss_size).contains(&frame);
    match (stack.ss_flags & libc::SS_ONSTACK != 0, frame_is_alternate) {
        (true, false) => false,
        (false, true) => true,
        _ => here > frame,
    }
}

/// Tells once on stderr that text could not be written.
pub fn report(written: sys::Result) {
    if let Err(errno) = written {
        say(Cause::Write, &[b"cannot write to the trace in '", directory::path(), b"': ", reason(errno)]);
    }
}
