//! Records within records: which of them are still in progress.
//!
//! A signal handler that interrupts a record finds the slot's word `in_progress` set, and records one region deeper. If
//! it leaves by `siglongjmp`, the interrupted record will never be finished, and the word stays. The next record
//! detects that: it is nested in another one only if there is a signal frame on the stack between the two.

use core::sync::atomic::Ordering::Relaxed;

use spec::buffer::REGIONS;

use crate::storage::Slot;
use crate::sys;

/// How far up the stack a signal frame is searched for, bytes. Beyond that, the outer record is taken for unfinished.
const SEARCH: usize = 64 * 1024;
const PAGE: usize = 4096;

/// Where the count begins in the word, and the address ends.
const COUNT_AT: u32 = 48;

/// How many records are in progress by the word.
#[inline(always)]
pub fn depth(in_progress: u64) -> usize {
    (in_progress >> COUNT_AT) as usize
}

/// The word with one record more, whose stack is at `frame`.
#[inline(always)]
pub fn with_one_more(in_progress: u64, frame: usize) -> u64 {
    frame as u64 | ((in_progress >> COUNT_AT) + 1) << COUNT_AT
}

/// Removes abandoned records from the word, and returns the resulting word, which is stored as that of the outer
/// records of the record that begins now. `here` is where the caller's stack is.
#[cold]
#[inline(never)]
pub fn remove_abandoned(slot: Slot, mut in_progress: u64, here: usize) -> u64 {
    let before = in_progress;
    while in_progress != 0 && is_abandoned((in_progress & ((1 << COUNT_AT) - 1)) as usize, here) {
        // The outer records of the abandoned one: none for the first, else as they were stored when it began.
        in_progress = match depth(in_progress).checked_sub(2) {
            Some(at) => slot.outer_records[at & (REGIONS - 1)].load(Relaxed),
            None => 0,
        };
    }
    if in_progress != before {
        if slot.writer.load(Relaxed) == slot.lwp.load(Relaxed)
            && usize::from(slot.writer_depth.load(Relaxed)) >= depth(in_progress)
        {
            // The abandoned write is noted in the region and will be repeated.
            slot.release_writer();
        }
        slot.in_progress.store(in_progress, Relaxed);
    }
    if let Some(at) = depth(in_progress).checked_sub(1) {
        slot.outer_records[at & (REGIONS - 1)].store(in_progress, Relaxed);
    }
    in_progress
}

/// Whether the record that began with the stack at `frame` was jumped over.
///
/// With an alternate signal stack it matters which stack each of the two addresses is on.
fn is_abandoned(frame: usize, here: usize) -> bool {
    if let Ok(stack) = sys::signal_stack() {
        let start = stack.ss_sp as usize;
        let is_alternate = |address: usize| (start..start + stack.ss_size).contains(&address);
        if stack.ss_flags & libc::SS_DISABLE == 0 && is_alternate(frame) != is_alternate(here) {
            // A handler on the alternate stack interrupted something on the other one; only a jump leads from it to
            // there while it is in progress.
            return is_alternate(frame);
        }
    }
    here >= frame || frame - here < SEARCH && !has_signal_frame(here, frame)
}

/// Whether the kernel has put a signal frame between `here` and `frame` that will return to `frame` or below.
///
/// Such a frame holds the interrupted rsp and rip, the flags, and a word of segment selectors, cs lowest and ss
/// highest, both of user mode (`struct sigcontext`, arch/x86/include/uapi/asm/sigcontext.h).
fn has_signal_frame(here: usize, frame: usize) -> bool {
    // The two may be on different stacks after all, of coroutines; then there may be a guard page between them.
    let readable = |page: usize| sys::read_timespec(page as *const _).is_some();
    if !((here + PAGE) & !(PAGE - 1)..frame).step_by(PAGE).all(readable) {
        return true;
    }
    // SAFETY: an aligned word of a page that the kernel has just read from; other threads do not write to our stack,
    // and whatever is there is only compared.
    let word = |at: usize| unsafe { (at as *const u64).read_volatile() };
    let start = here.next_multiple_of(8);
    (start + 24..frame & !7).step_by(8).any(|at| {
        let selectors = word(at);
        let is_user = |selector: u64| selector & 3 == 3;
        let saved_stack = word(at - 24) as usize;
        is_user(selectors)
            && is_user(selectors >> 48)
            && selectors & 0x0000_ffff_ffff_0000 == 0
            && word(at - 16) != 0
            && (at..=frame).contains(&saved_stack)
    })
}
