//! Records within records: which of them are still in the making?
//!
//! A signal handler that comes while a record is being made finds the slot's `in_progress` set, and records one region deeper.
//! If it leaves by `siglongjmp`, the interrupted record will never be finished, and `in_progress` stays. The next record finds
//! out: it is nested in another one only if there is a signal frame on the stack between the two.

use core::sync::atomic::Ordering::Relaxed;

use spec::buffer::REGIONS;

use crate::slot::Slot;
use crate::sys;

/// How far up the stack a signal frame is looked for, bytes. Beyond that, the record below is taken for alive.
const SEARCH: usize = 64 * 1024;
const PAGE: usize = 4096;

/// Where the count begins in `in_progress`, and the address below it ends.
const COUNT_AT: u32 = 48;

/// How many records are in the making, by the word that `in_progress` holds.
#[inline(always)]
pub fn depth(making: u64) -> usize {
    (making >> COUNT_AT) as usize
}

/// The word for one record more, whose stack is at `frame`.
#[inline(always)]
pub fn one_more(making: u64, frame: usize) -> u64 {
    frame as u64 | ((making >> COUNT_AT) + 1) << COUNT_AT
}

/// Takes records that will never be finished off the word `in_progress`, and returns the word that is left, noted as what is
/// below the record that begins now. `here` is where the caller's stack is.
#[cold]
#[inline(never)]
pub fn leave_abandoned(slot: &Slot, mut making: u64, here: usize) -> u64 {
    let begun = making;
    while making != 0 && is_abandoned((making & ((1 << COUNT_AT) - 1)) as usize, here) {
        // What was below the record that is left: nothing for the first, else as it was noted when this one began.
        making = match depth(making).checked_sub(2) {
            Some(at) => slot.outer_records[at & (REGIONS - 1)].load(Relaxed),
            None => 0,
        };
    }
    if making != begun {
        if slot.writer.load(Relaxed) == slot.lwp.load(Relaxed)
            && usize::from(slot.writer_depth.load(Relaxed)) >= depth(making)
        {
            // The write that was left is noted in the region and will be done once more.
            slot.release_writer();
        }
        slot.in_progress.store(making, Relaxed);
    }
    if let Some(at) = depth(making).checked_sub(1) {
        slot.outer_records[at & (REGIONS - 1)].store(making, Relaxed);
    }
    making
}

/// Whether the record that began with the stack at `frame` was jumped over.
///
/// With an alternate signal stack it matters which of the two stacks each of the two is on.
fn is_abandoned(frame: usize, here: usize) -> bool {
    if let Ok(stack) = sys::signal_stack() {
        let start = stack.ss_sp as usize;
        let is_alternate = |address: usize| (start..start + stack.ss_size).contains(&address);
        if stack.ss_flags & libc::SS_DISABLE == 0 && is_alternate(frame) != is_alternate(here) {
            // On the alternate stack a handler interrupted something of the other; back from it, only a jump leads.
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
