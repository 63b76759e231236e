//! The descriptor numbers that this library has had, and the files that it has opened, in this process or in one that it was
//! forked from.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicU64};

/// Bit n: this library has had a descriptor n, modulo the number of bits.
static NUMBERS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// The greatest that it has had.
static GREATEST: AtomicI32 = AtomicI32::new(0);
/// Two bits for each inode number, which others may share: of a million files of the host's less than one does that when this
/// library has opened fifty.
static INODES: [AtomicU64; 2048] = [const { AtomicU64::new(0) }; 2048];

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

/// All numbers that this library may have had.
pub fn used_numbers() -> impl Iterator<Item = c_int> {
    let greatest = GREATEST.load(Relaxed);
    let words = (0..).zip(&NUMBERS).map(|(index, word)| (index, word.load(Relaxed))).filter(|(_, bits)| *bits != 0);
    let numbers = words
        .flat_map(|(index, bits)| (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| 64 * index + bit));
    numbers.flat_map(move |number: c_int| (number..=greatest).step_by(64 * NUMBERS.len()))
}

/// The words and the bits in them that stand for an inode number.
fn bits_of(inode: u64) -> impl Iterator<Item = (&'static AtomicU64, u64)> {
    let hash = inode.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [hash >> 47, hash >> 30].into_iter().map(|bit| (&INODES[(bit / 64) as usize % INODES.len()], 1 << (bit % 64)))
}

/// Notes that this library opens the file with this inode number, or has just opened it.
pub fn add_inode(inode: u64) {
    // ORDERING: Relaxed; a forked child has seen what its parent's threads had done before the kernel copied the memory.
    for (word, bit) in bits_of(inode).filter(|(word, bit)| word.load(Relaxed) & bit == 0) {
        word.fetch_or(bit, Relaxed);
    }
}

/// Whether this library may have opened the file with this inode number.
pub fn has_opened(inode: u64) -> bool {
    bits_of(inode).all(|(word, bit)| word.load(Relaxed) & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_opened_is_known() {
        let opened = |inode: &u64| inode % 1000 == 7;
        let inodes = || 1u64 << 40..(1 << 40) + 100_000;
        inodes().filter(opened).for_each(add_inode);
        assert!(inodes().filter(opened).all(has_opened));
        // Other tests of this process open files, too.
        assert!(inodes().filter(|inode| !opened(inode) && has_opened(*inode)).count() < 1000);
    }
}
