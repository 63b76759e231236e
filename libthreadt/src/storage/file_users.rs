//! Which slots take ranges of a file: none, one, or several, whose LWPs end in the same three digits.
//!
//! A slot is noted when its thread has claimed it, and again before each range that it takes, so that a jump out of a signal
//! handler may leave the claim at any step: a slot that no thread has got takes no range, and is no user. To note a slot twice
//! changes nothing.
//!
//! The word has the number of the page where the slot's control is, 0 for no slot and [`SEVERAL`], and in its upper bits a
//! count of changes: a slot that came and went meanwhile is noticed.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use spec::buffer::PAGE;
use spec::names::LWP_MASK;

use super::file_table::RecordFileEntry;
use super::slot::Slot;
use super::slot_table::for_each_slot;
use crate::sys;

/// Instead of a page's number: several slots take ranges. Nothing is mapped in the first pages.
const SEVERAL: u64 = 1;
/// Addresses in user space have 47 bits: so many bits has a page's number.
const PAGE_BITS: u32 = 48 - PAGE.trailing_zeros();

/// The slot's part of the word.
fn page_of(slot: Slot) -> u64 {
    slot.control().addr().get() as u64 / PAGE as u64
}

fn page_in(word: u64) -> u64 {
    word & ((1 << PAGE_BITS) - 1)
}

/// The word that says `page` after `word`.
fn changed_to(word: u64, page: u64) -> u64 {
    ((word >> PAGE_BITS) + 1) << PAGE_BITS | page
}

impl RecordFileEntry {
    /// Notes that the slot takes ranges of this file.
    pub fn add_user(&self, slot: Slot) {
        let own = page_of(slot);
        // ORDERING: AcqRel; who takes a range behind one of this slot's sees that the file has another user.
        let _ = self.users.fetch_update(AcqRel, Acquire, |word| match page_in(word) {
            0 => Some(changed_to(word, own)),
            noted if noted == own => None,
            // Counted too if nothing else changes: `remove_user` must notice a slot that came after its search.
            _ => Some(changed_to(word, SEVERAL)),
        });
    }

    /// Notes that the slot, which has no owner any more, takes no ranges of this file, which is that of the LWP `lwp`.
    pub fn remove_user(&self, slot: Slot, lwp: u32) {
        let word = self.users.load(Acquire);
        let left = match page_in(word) {
            SEVERAL => {
                let (mut others, mut last) = (0, 0);
                let is_kin = |other: Slot| other.generation.load(Relaxed) == slot.generation.load(Relaxed);
                for_each_slot(|other| {
                    let has_file = other.lwp.load(Relaxed);
                    if other != slot && has_file != 0 && (has_file ^ lwp) & LWP_MASK == 0 && is_kin(other) {
                        (others, last) = (others + 1, page_of(other));
                    }
                });
                match others {
                    0 | 1 => last,
                    _ => return,
                }
            }
            noted if noted == page_of(slot) => 0,
            _ => return,
        };
        sys::observable_step();
        // Another user may have come: then the word stays as that one has left it.
        let _ = self.users.compare_exchange(word, changed_to(word, left), AcqRel, Relaxed);
    }

    /// A number that is the same as long as no other slot takes ranges of this file; `None` if several do.
    pub fn sole_user(&self) -> Option<u64> {
        let word = self.users.load(Acquire);
        (page_in(word) != SEVERAL).then_some(word)
    }
}
