//! Records within records: which of them are still in progress.
//!
//! A signal handler that interrupts a record finds its region's word `in_progress` set, and records in the next region. If
//! it leaves by `siglongjmp`, the interrupted record will never be finished, and the word stays. The next record of the
//! thread detects that where it is certain ([`crate::sys::stack`]); else it takes one region more.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spec::buffer::REGIONS;

use crate::storage::Slot;
use crate::sys::stack::{is_abandoned, is_interrupted_at, is_probably_abandoned};
use crate::sys::{close_abandoned, end_judgements};

/// How many records in a row are refused before the ones that are in the way are given up, because nothing shows that they
/// are live.
const REFUSALS: u8 = u8::MAX;

/// The first region without a record in progress, or [`REGIONS`] if there is none. Removes records that were abandoned.
/// `here` is where the caller's stack is.
#[cold]
#[inline(never)]
pub fn free_depth(slot: Slot, here: usize) -> usize {
    let in_progress = || slot.in_progress.iter().rev().filter(|word| word.load(Relaxed) != 0);
    let place = |word: &AtomicU64| word.load(Relaxed) as usize;
    let mut removed = false;
    let mut remove = |word: &AtomicU64| {
        word.store(0, Relaxed);
        removed = true;
    };
    // The innermost first: what interrupts nothing but live records is live.
    in_progress().take_while(|word| is_abandoned(place(word), here)).for_each(&mut remove);
    if in_progress().count() == REGIONS {
        in_progress().filter(|word| is_abandoned(place(word), here)).for_each(&mut remove);
        if in_progress().count() == REGIONS {
            in_progress().filter(|word| is_probably_abandoned(place(word), here)).for_each(&mut remove);
        }
        let is_full = in_progress().count() == REGIONS;
        let refused = if is_full { slot.refused.load(Relaxed) } else { 0 };
        slot.refused.store(refused.saturating_add(is_full.into()), Relaxed);
        if refused == REFUSALS {
            let is_live = |word: &&AtomicU64| is_interrupted_at(&(place(word)..place(word)), here);
            in_progress().filter(|word| !is_live(word)).for_each(&mut remove);
        }
    }
    if removed {
        if slot.has_abandoned_writer(here) {
            // The abandoned write is noted in the region and will be repeated.
            slot.release_writer();
        }
        close_abandoned(slot.lwp.load(Relaxed), Some(here));
        end_judgements();
    }
    slot.in_progress.iter().position(|word| word.load(Relaxed) == 0).unwrap_or(REGIONS)
}
