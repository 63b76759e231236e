//! The inode numbers of all files that this library has opened, in this process or in one that it was forked from.
//!
//! A descriptor with this library's flags may still be the host's. It is taken for this library's only if its file is one of these.
//! Of two bits for each number both may be set by others: of a million files of the host's one, once a hundred were opened here.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

static OPENED: [AtomicU64; 2048] = [const { AtomicU64::new(0) }; 2048];

/// The words and the bits in them that stand for an inode number.
fn bits_of(inode: u64) -> impl Iterator<Item = (&'static AtomicU64, u64)> {
    let hash = inode.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [hash >> 47, hash >> 30].into_iter().map(|bit| (&OPENED[(bit / 64) as usize % OPENED.len()], 1 << (bit % 64)))
}

/// Notes that this library opens the file, or has just opened it.
pub fn add(inode: u64) {
    // ORDERING: Relaxed; a forked child has seen what its parent's threads had done before the kernel copied the memory.
    bits_of(inode).filter(|(word, bit)| word.load(Relaxed) & bit == 0).for_each(|(word, bit)| {
        word.fetch_or(bit, Relaxed);
    });
}

/// Whether this library has opened the file.
pub fn contains(inode: u64) -> bool {
    bits_of(inode).all(|(word, bit)| word.load(Relaxed) & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_opened_is_known() {
        let opened = |inode: &u64| inode % 1000 == 7;
        let inodes = || 1u64 << 40..(1 << 40) + 100_000;
        inodes().filter(opened).for_each(add);
        assert!(inodes().filter(opened).all(contains));
        // Other tests of this process open files, too.
        assert!(inodes().filter(|inode| !opened(inode) && contains(*inode)).count() < 1000);
    }
}
