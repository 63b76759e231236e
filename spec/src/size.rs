//! Sizes in bytes, as users write them: `64K`, `10M`, `1G`.

/// How much may be recorded (`THR_TRACE_MAX`): `500M`, or `2G/dir`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimit {
    /// Bytes of records.
    pub bytes: u64,
    /// What all processes of the directory have written counts, not only what one has.
    pub of_directory: bool,
}

impl SizeLimit {
    /// No limit.
    pub const NONE: SizeLimit = SizeLimit { bytes: u64::MAX, of_directory: false };

    /// Decodes a size that may end in `/dir`; `None` if it is not one.
    pub fn parse(text: &[u8]) -> Option<SizeLimit> {
        let (size, of_directory) = match text.strip_suffix(b"/dir") {
            Some(size) => (size, true),
            None => (text, false),
        };
        Some(SizeLimit { bytes: parse(size)?, of_directory })
    }
}

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
    use super::{SizeLimit, parse};

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

    #[test]
    fn a_limit_may_be_the_directorys() {
        assert_eq!(SizeLimit::parse(b"1K"), Some(SizeLimit { bytes: 1024, of_directory: false }));
        assert_eq!(SizeLimit::parse(b"2G/dir"), Some(SizeLimit { bytes: 2 << 30, of_directory: true }));
        for wrong in ["/dir", "2G/", "2G/dir/dir", "2G/directory", "2G dir"] {
            assert_eq!(SizeLimit::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
