//! The words of a page or an entry of a trbuf, little-endian; `None` beyond its end.

/// The word of eight bytes at `at`.
pub fn u64_at(page: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*page.get(at..)?.first_chunk()?))
}

/// The word of four bytes at `at`.
pub fn u32_at(page: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*page.get(at..)?.first_chunk()?))
}
