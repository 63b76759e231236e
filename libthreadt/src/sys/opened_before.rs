//! The descriptor numbers that this library has had, and the files that it has opened, in this process or in one that it was
//! forked from.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicU64};

/// Bit n: this library has had a descriptor n, modulo the number of bits.
#[unsafe(link_section = "inherited")]
static NUMBERS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// The greatest that it has had.
#[unsafe(link_section = "inherited")]
static GREATEST: AtomicI32 = AtomicI32::new(0);
static INODES: InodeSet = InodeSet([const { AtomicU64::new(0) }; 2048]);
/// Inode numbers that are not in [`INODES`] yet. A forked child opens a few files: each would change one or two pages there, which the
/// kernel then copies for the child.
#[unsafe(link_section = "inherited")]
static RECENT: [AtomicU64; 32] = [const { AtomicU64::new(0) }; 32];

/// Notes that this library has had this number.
pub fn add_number(number: c_int) {
    let (word, bit) = (&NUMBERS[(number / 64) as usize % NUMBERS.len()], 1 << (number % 64));
    if word.load(Relaxed) & bit == 0 {
        word.fetch_or(bit, AcqRel);
    }
    if GREATEST.load(Relaxed) < number {
        GREATEST.fetch_max(number, AcqRel);
    }
}

/// The greatest number that this library has had.
pub fn greatest_number() -> c_int {
    GREATEST.load(Relaxed)
}

/// All numbers that this library may have had.
pub fn used_numbers() -> impl Iterator<Item = c_int> {
    let greatest = GREATEST.load(Relaxed);
    let words = (0..).zip(&NUMBERS).map(|(index, word)| (index, word.load(Relaxed))).filter(|(_, bits)| *bits != 0);
    let numbers = words
        .flat_map(|(index, bits)| (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| 64 * index + bit));
    numbers.flat_map(move |number: c_int| (number..=greatest).step_by(64 * NUMBERS.len()))
}

/// Notes that this library opens the file with this inode number, or has just opened it.
pub fn add_inode(inode: u64) {
    let known = |word: &AtomicU64| word.load(Relaxed) == inode;
    // ORDERING: Relaxed; a forked child has seen what its parent's threads had done before the kernel copied the memory.
    let store = |word: &AtomicU64| {
        let is_free = word.load(Relaxed) == 0;
        is_free && word.compare_exchange(0, inode, Relaxed, Relaxed).is_ok()
    };
    if RECENT.iter().any(known) || INODES.may_have(inode) || RECENT.iter().any(store) {
        return;
    }
    INODES.add(inode);
    for word in &RECENT {
        let other = word.load(Relaxed);
        INODES.add(other);
        // Only now: at any moment it is in one of both.
        let _ = word.compare_exchange(other, 0, Relaxed, Relaxed);
    }
}

/// Whether this library may have opened the file with this inode number.
pub fn has_opened(inode: u64) -> bool {
    RECENT.iter().any(|word| word.load(Relaxed) == inode) || INODES.may_have(inode)
}

/// Two bits for each inode number, which others may share: of a million files of the host's less than one does that when this
/// library has opened fifty.
struct InodeSet([AtomicU64; 2048]);

impl InodeSet {
    /// The words and the bits in them that stand for an inode number.
    fn bits_of(&self, inode: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let hash = inode.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = |bit: u64| (&self.0[(bit / 64) as usize % self.0.len()], 1 << (bit % 64));
        [hash >> 47, hash >> 30].into_iter().map(place)
    }

    fn add(&self, inode: u64) {
        // ORDERING: Relaxed; a forked child has seen what its parent's threads had done before the kernel copied the memory.
        for (word, bit) in self.bits_of(inode).filter(|(word, bit)| word.load(Relaxed) & bit == 0) {
            word.fetch_or(bit, Relaxed);
        }
    }

    fn may_have(&self, inode: u64) -> bool {
        self.bits_of(inode).all(|(word, bit)| word.load(Relaxed) & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_opened_is_known() {
        let opened = || (1u64 << 41..).step_by(7).take(10 * RECENT.len());
        opened().for_each(add_inode);
        assert!(opened().all(has_opened));
    }

    #[test]
    fn only_what_was_opened_is_known() {
        // One of its own: other tests of this process open files, too.
        let known = InodeSet([const { AtomicU64::new(0) }; 2048]);
        let opened = |inode: &u64| inode % 2000 == 7;
        let inodes = || 1u64 << 40..(1 << 40) + 100_000;
        inodes().filter(opened).for_each(|inode| known.add(inode));
        assert!(inodes().filter(opened).all(|inode| known.may_have(inode)));
        assert_eq!(inodes().filter(|inode| !opened(inode) && known.may_have(*inode)).count(), 0);
    }
}
