//! The words of a trbuf: read from bytes, and ranges packed into one.

use core::ops::Range;

/// The little-endian word of 32 bits at `offset`, or `None` if `bytes` end before it does.
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

/// The little-endian word of 64 bits at `offset`, or `None` if `bytes` end before it does.
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_le_bytes)
}

/// The `N` bytes at `offset`, or `None` if `bytes` end before them.
pub(super) fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

/// The range that a `write_position` or `write_intent` word holds.
pub const fn unpack_range(word: u64) -> Range<u32> {
    word as u32..(word >> 32) as u32
}

/// True if a `write_position` or `write_intent` word holds a range of no bytes.
pub const fn is_empty_range(word: u64) -> bool {
    word as u32 == (word >> 32) as u32
}

/// The `write_position` or `write_intent` word that holds a range: its start in the low half, its end in the high half.
pub const fn pack_range(range: Range<u32>) -> u64 {
    range.start as u64 | (range.end as u64) << 32
}
