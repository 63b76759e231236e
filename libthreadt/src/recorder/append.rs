//! Appends records to the slot of the calling thread, and writes its regions to the file when they are full.

use core::arch::asm;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

use spec::buffer::REGIONS;
use spec::encode::UntimedRecord;

use super::nesting;
use crate::clock;
use crate::process_state::PROCESS;
use crate::storage::{self, ALL_REGIONS, RESERVE, Slot, WriteRight, capacity, file_entry, slot_layout, stopped};
use crate::sys::{Errno, observable_step, seccomp};
use crate::trace_dir::{executable_maps, follow_time_namespace};

/// Appends lines with one time, a reading of the clock. Nests: a signal handler may come at any instruction, record,
/// and even leave by `siglongjmp`.
#[inline(always)]
pub fn append<const N: usize>(slot: Slot, time: u64, lines: &[UntimedRecord; N]) {
    let time = clock::since_epoch(time);
    let frame = stack_pointer();
    let mut outer = slot.in_progress.load(Relaxed);
    if outer != 0 {
        outer = nesting::remove_abandoned(slot, outer, frame);
    }
    let depth = nesting::depth(outer);
    if depth < REGIONS {
        // ORDERING: plain stores, ordered for this thread's own signal handlers by the compiler fences: a handler
        // either comes before the record and leaves everything as it was, or it sees one more in progress. The thread
        // that ends the process makes every thread pass a barrier (membarrier) between setting the flush thresholds and
        // reading `in_progress`: then either this thread sees the new threshold, or the other one sees that a record is
        // in progress.
        observable_step();
        slot.in_progress.store(nesting::with_one_more(outer, frame), Relaxed);
        compiler_fence(SeqCst);
        observable_step();
        append_at(slot, depth, time, lines);
        compiler_fence(SeqCst);
        observable_step();
        slot.in_progress.store(outer, Relaxed);
    } else {
        slot.lose(N as u32, Errno(libc::ENOBUFS), time);
    }
}

#[inline(always)]
fn append_at(slot: Slot, depth: usize, time: u64, lines: &[UntimedRecord]) {
    let region = &slot.regions[depth & (REGIONS - 1)];
    let position = region.write_position.load(Relaxed);
    if (position >> 32) as u32 >= slot.flush_thresholds[depth & (REGIONS - 1)].load(Relaxed) {
        append_slowly(slot, depth, time, lines);
    } else {
        // SAFETY: this thread owns the slot, has `depth` outer records, and below the threshold there is room.
        unsafe { slot.append_at(depth, position, time, lines) };
    }
}

/// The region is nearly full (if it is a ring: its oldest records are in the way), or each record is written at once.
#[cold]
#[inline(never)]
fn append_slowly(slot: Slot, depth: usize, time: u64, lines: &[UntimedRecord]) {
    if PROCESS.final_flush_begun.load(Relaxed) != 0 {
        PROCESS.recorded_after_final_flush.store(1, SeqCst);
    }
    if let Some(cause) = storage::refusal(time) {
        return slot.lose(lines.len() as u32, cause, time);
    }
    let region = &slot.regions[depth & (REGIONS - 1)];
    let threshold = &slot.flush_thresholds[depth & (REGIONS - 1)];
    if slot_layout().is_ring() && storage::give_up_oldest(region, threshold, slot_layout(), depth) {
        if storage::is_check_point(region) && !clock::check() && !seccomp::has_new_filter() {
            follow_time_namespace();
        }
        slot.append_loss_record(depth, time);
        // SAFETY: this thread owns the slot, nobody writes it out, and there is room now.
        return unsafe { slot.append(depth, time, lines) };
    }
    let (end, full) = ((region.write_position.load(Relaxed) >> 32) as u32, capacity(depth) - RESERVE);
    if depth == 0 && end <= full && threshold.load(Relaxed) != 0 {
        // SAFETY: this thread owns the slot, has no outer record, and there is room.
        unsafe { slot.append(depth, time, lines) };
        if storage::is_flush_point(&slot, lines, end, full)
            && slot.become_writer(slot.lwp.load(Relaxed), 0) == WriteRight::Taken
        {
            write_full(slot, depth);
            slot.append_loss_record(depth, time);
            slot.release_writer();
        }
        return;
    }
    append_or_write(slot, depth, time, lines);
}

/// Appends as the slot's writer. Writes the region before if it is full, and after if each record is written at once.
fn append_or_write(slot: Slot, depth: usize, time: u64, lines: &[UntimedRecord]) {
    let records = lines.len() as u32;
    let region = &slot.regions[depth & (REGIONS - 1)];
    let lwp = slot.lwp.load(Relaxed);
    let right = slot.become_writer(lwp, depth as u8);
    let may_write = matches!(right, WriteRight::Taken | WriteRight::Nested);
    // A handler's region is written when it is half full: it can only append while the interrupted thread writes all.
    let enough = if depth == 0 { capacity(depth) - RESERVE } else { capacity(depth) / 2 };
    let nearly_full = !slot.has_room(depth) || (region.write_position.load(Relaxed) >> 32) as u32 > enough;
    if may_write && nearly_full && stopped().is_none() {
        write_full(slot, depth);
        if slot.is_disowned() {
            return;
        }
    }
    if let Some(cause) = storage::refusal(time) {
        slot.lose(records, cause, time);
    } else if right == WriteRight::Refused || !slot.has_room(depth) {
        slot.lose(records, Errno(libc::EBUSY), time);
    } else {
        if may_write {
            slot.append_loss_record(depth, time);
        }
        // SAFETY: this thread owns the slot, nobody else is its writer, and there is room.
        unsafe { slot.append(depth, time, lines) };
        // Once recording stops, only the process's end needs the records in the file.
        let at_once = stopped().is_none() || PROCESS.final_flush_begun.load(Relaxed) != 0;
        if right == WriteRight::Taken && at_once && slot.flush_thresholds[depth & (REGIONS - 1)].load(Relaxed) == 0 {
            // Also what signal handlers have recorded meanwhile.
            slot.writer_depth.store(ALL_REGIONS, Relaxed);
            let written = (depth..REGIONS).try_for_each(|depth| slot.write(depth, file_entry(lwp)));
            if !slot.is_disowned() {
                storage::report_failure(written);
            }
        }
    }
    if right == WriteRight::Taken {
        slot.release_writer();
    }
    if stopped().is_some() && (region.write_position.load(Relaxed) >> 32) as u32 > enough {
        storage::outlast();
    }
}

/// Writes a full region to its file; if that fails, drops its older half. Also makes the regular checks.
fn write_full(slot: Slot, depth: usize) {
    let written = slot.write(depth, file_entry(slot.lwp.load(Relaxed)));
    if slot.is_disowned() {
        return;
    }
    if depth == 0 {
        storage::restart_count(&slot);
    }
    // The region is not filled once more.
    storage::outlast();
    storage::report_failure(written);
    executable_maps::refresh();
    if !clock::check() {
        follow_time_namespace();
    }
    if let Err(errno) = written
        && stopped().is_none()
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
