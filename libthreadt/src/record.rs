//! The way of a record, from a hook into its thread's slot.

use core::arch::asm;
use core::sync::atomic::{
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

use spec::RecordKind;
use spec::buffer::REGIONS;
use spec::encode::UntimedRecord;

use crate::process::{PROCESS, Switch};
use crate::say::{Cause, reason, say};
use crate::slot::{ALL_REGIONS, LAST_WORDS, Slot, Writer, capacity};
use crate::sys::Errno;
use crate::{buffers, clock, directory, limits, mark, nesting, ring, sys, thread, trinfo};

/// The most records that are made at once.
pub const TOGETHER: usize = 2;

/// Records one line. `time` is a reading of [`clock::now`].
#[inline(always)]
pub fn put(form: &'static RecordKind, time: u64, arguments: [u64; 5]) {
    put_lines(time, &[UntimedRecord { kind: form, arguments }]);
}

/// Records both halves of a call that did not have to wait, with one time.
#[inline(always)]
pub fn put_pair(forms: [&'static RecordKind; 2], time: u64, first: [u64; 5], second: [u64; 5]) {
    put_lines(
        time,
        &[UntimedRecord { kind: forms[0], arguments: first }, UntimedRecord { kind: forms[1], arguments: second }],
    );
}

/// Records lines with one time.
///
/// Nests: a signal handler may come at any instruction, record, and even leave by `siglongjmp`.
#[inline(never)]
fn put_lines<const N: usize>(time: u64, lines: &[UntimedRecord; N]) {
    const { assert!(N <= TOGETHER) };
    let Some(slot) = thread::slot(N as u32) else { return };
    let time = clock::since_epoch(time);
    let frame = stack_pointer();
    let mut below = slot.in_progress.load(Relaxed);
    if below != 0 {
        below = nesting::leave_abandoned(slot, below, frame);
    }
    let depth = nesting::depth(below);
    if depth < REGIONS {
        // ORDERING: plain stores, ordered for this thread's own signal handlers by the compiler fences: a handler either
        // comes before the record and leaves everything as it was, or it sees one more in the making. Whoever ends the
        // process has every thread pass a barrier (membarrier) between setting `flush_threshold` and looking at `in_progress`: then
        // either this thread sees the new limit, or the other one sees that a record is in the making.
        slot.in_progress.store(nesting::one_more(below, frame), Relaxed);
        compiler_fence(SeqCst);
        append(slot, depth, time, lines);
        compiler_fence(SeqCst);
        slot.in_progress.store(below, Relaxed);
    } else {
        slot.lose(N as u32, Errno(libc::ENOBUFS));
    }
}

/// Records one line of a mutex call, under category 6 if the mutex is recursive.
#[inline(always)]
pub fn put_mutex(
    switch: Switch,
    recursive: bool,
    form: &'static RecordKind,
    recursive_form: &'static RecordKind,
    time: u64,
    arguments: [u64; 5],
) {
    if switch.is_on_for(recursive) {
        put(if recursive { recursive_form } else { form }, time, arguments);
    }
}

#[inline(always)]
fn append(slot: &Slot, depth: usize, time: u64, lines: &[UntimedRecord]) {
    let region = &slot.regions[depth & (REGIONS - 1)];
    if (region.write_position.load(Relaxed) >> 32) as u32 >= region.flush_threshold.load(Relaxed) {
        append_slowly(slot, depth, time, lines);
    } else {
        // SAFETY: we own the slot, `depth` records are below this one, and there is room.
        unsafe { slot.append(depth, time, lines) };
    }
}

/// The region is nearly full (if it is a ring: its oldest records are in the way), or each record goes to the file at once.
#[cold]
#[inline(never)]
fn append_slowly(slot: &Slot, depth: usize, time: u64, lines: &[UntimedRecord]) {
    if PROCESS.ending.load(Relaxed) != 0 {
        PROCESS.late.store(1, SeqCst);
    }
    if let Some(cause) = limits::stopped() {
        return slot.lose(lines.len() as u32, cause);
    }
    let region = &slot.regions[depth & (REGIONS - 1)];
    if buffers::shape().is_ring() && ring::advance(region, buffers::shape(), depth) {
        slot.tell_losses(depth, time);
        // SAFETY: we own the slot, nobody writes it out, and `advance` has made room.
        return unsafe { slot.append(depth, time, lines) };
    }
    let (end, full) = ((region.write_position.load(Relaxed) >> 32) as u32, capacity(depth) - LAST_WORDS);
    if depth == 0 && end <= full && region.flush_threshold.load(Relaxed) != 0 {
        // SAFETY: we own the slot, no record is below this one, and there is room.
        unsafe { slot.append(depth, time, lines) };
        if mark::is_moment(slot, lines, end, full) && slot.become_writer(slot.lwp.load(Relaxed), 0) == Writer::Taken {
            write(slot, depth);
            slot.tell_losses(depth, time);
            slot.release_writer();
        }
        return;
    }
    append_or_write(slot, depth, time, lines);
}

/// Appends as the slot's writer, and writes the region before that if it is full, and after that if each record goes to
/// the file at once.
fn append_or_write(slot: &Slot, depth: usize, time: u64, lines: &[UntimedRecord]) {
    let records = lines.len() as u32;
    let region = &slot.regions[depth & (REGIONS - 1)];
    let lwp = slot.lwp.load(Relaxed);
    let writer = slot.become_writer(lwp, depth as u8);
    let may_write = matches!(writer, Writer::Taken | Writer::Nested);
    // A handler's region is written when it is half full: while the thread it interrupted writes all regions, it can only
    // append.
    let enough = if depth == 0 { capacity(depth) - LAST_WORDS } else { capacity(depth) / 2 };
    let nearly_full = !slot.has_room(depth) || (region.write_position.load(Relaxed) >> 32) as u32 > enough;
    if may_write && nearly_full {
        write(slot, depth);
        if slot.is_disowned() {
            return;
        }
    }
    if let Some(cause) = limits::stopped() {
        slot.lose(records, cause);
    } else if writer == Writer::Refused || !slot.has_room(depth) {
        slot.lose(records, Errno(libc::EBUSY));
    } else {
        if may_write {
            slot.tell_losses(depth, time);
        }
        // SAFETY: we own the slot, nobody else is its writer, and there is room.
        unsafe { slot.append(depth, time, lines) };
        if writer == Writer::Taken && region.flush_threshold.load(Relaxed) == 0 {
            // And what signal handlers have recorded meanwhile.
            slot.writer_depth.store(ALL_REGIONS, Relaxed);
            let written = (depth..REGIONS).try_for_each(|depth| slot.write(depth, buffers::entry(lwp)));
            if !slot.is_disowned() {
                report(written);
            }
        }
    }
    if writer == Writer::Taken {
        slot.release_writer();
    }
}

/// Writes a full region to its file, whose writer the caller is; if that fails, drops the older half of it. Also does what
/// is to be done now and then.
fn write(slot: &Slot, depth: usize) {
    let written = slot.write(depth, buffers::entry(slot.lwp.load(Relaxed)));
    if slot.is_disowned() {
        return;
    }
    if depth == 0 {
        mark::reset(slot);
    }
    report(written);
    trinfo::refresh();
    clock::check();
    if let Err(errno) = written
        && limits::stopped().is_none()
    {
        slot.drop_older_half(depth, errno);
    }
}

#[inline(always)]
fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

/// Tells once on stderr that text could not be written.
pub fn report(written: sys::Result) {
    if let Err(errno) = written
        && limits::stopped().is_none()
    {
        say(Cause::Write, &[b"cannot write to the trace in '", directory::path(), b"': ", reason(errno)]);
    }
}
