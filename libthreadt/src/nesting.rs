//! Records within records: which of them are still in the making?
//!
//! A signal handler that comes while a record is being made finds the slot's `depth` above 0, and records one region
//! deeper. If it leaves by `siglongjmp`, the interrupted record will never be finished, and `depth` stays. The next
//! record finds out: it is nested in another one only if there is a signal frame on the stack between the two.

use core::sync::atomic::Ordering::Relaxed;

use spec::buffer::REGIONS;

use crate::slot::Slot;
use crate::sys;

/// How far up the stack a signal frame is looked for, bytes. Beyond that, the record below is taken for alive.
const SEARCH: usize = 64 * 1024;
const PAGE: usize = 4096;

/// Takes records that will never be finished off the slot's `depth`, and returns the depth that is left. `here` is
/// where the caller's stack is.
#[cold]
#[inline(never)]
pub fn leave_abandoned(slot: &Slot, mut depth: u8, here: usize) -> u8 {
    while let Some(below) = depth.checked_sub(1)
        && is_abandoned(slot.frames[usize::from(below) & (REGIONS - 1)].load(Relaxed), here)
    {
        depth = below;
        slot.depth.store(depth, Relaxed);
        if slot.writer.load(Relaxed) == slot.lwp.load(Relaxed) && slot.writer_depth.load(Relaxed) == depth {
            // The write that was left is noted in the region and will be done once more.
            slot.release_writer();
        }
    }
    depth
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
