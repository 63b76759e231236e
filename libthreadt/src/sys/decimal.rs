//! Numbers in text that is read back.

/// The number that these decimal digits stand for, modulo 2^64; 0 for none.
pub fn decimal<'a>(digits: impl Iterator<Item = &'a u8>) -> u64 {
    digits.fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0'))))
}
