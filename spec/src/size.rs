//! Sizes in bytes, as users write them: `64K`, `10M`, `1G`.

/// The number of bytes that `text` stands for: decimal digits, and K, M or G for the powers of 1024. `None` if `text` is not
/// a size, or if the number does not fit 64 bits.
pub fn parse(text: &[u8]) -> Option<u64> {
    let (digits, unit) = match text {
        [digits @ .., b'K' | b'k'] => (digits, 1 << 10),
        [digits @ .., b'M' | b'm'] => (digits, 1 << 20),
        [digits @ .., b'G' | b'g'] => (digits, 1 << 30),
        digits => (digits, 1u64),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(digits).ok()?.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_unit_multiplies_the_number() {
        assert_eq!(parse(b"4096"), Some(4096));
        assert_eq!(parse(b"64K"), Some(65536));
        assert_eq!(parse(b"10m"), Some(10 << 20));
        assert_eq!(parse(b"1G"), Some(1 << 30));
        for wrong in ["", "K", "-1", "+1", "1.5M", "1T", "1 K", "18446744073709551615K"] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
