//! Digits: numbers as text, several digits at once and without branches, and hex digits one by one.

/// The numbers 0 to 99 as text of two digits. A power of two long, so that an index needs no check.
static PAIRS: [[u8; 2]; 128] = {
    let mut pairs = [[0; 2]; 128];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

/// The decimal digits of `number`, less than 10,000, with zeros in front.
#[inline(always)]
pub(crate) fn four_digits(number: u32) -> [u8; 4] {
    let pair = |number: u32| PAIRS[number as usize % 128];
    let ([a, b], [c, d]) = (pair(number / 100), pair(number % 100));
    [a, b, c, d]
}

/// The sixteen hex digits of `value` as text, the most significant first in memory.
#[inline(always)]
pub(crate) fn sixteen_hex_digits(value: u64) -> [u8; 16] {
    #[cfg(target_arch = "x86_64")]
    {
        sixteen_hex_digits_sse2(value)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        sixteen_hex_digits_portable(value)
    }
}

/// [`sixteen_hex_digits`] by SSE2, which every x86-64 processor has, so that nothing has to be chosen at run time.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sixteen_hex_digits_sse2(value: u64) -> [u8; 16] {
    use core::arch::x86_64::{
        _mm_add_epi8, _mm_and_si128, _mm_cmpgt_epi8, _mm_cvtsi64_si128, _mm_set1_epi8, _mm_srli_epi16,
        _mm_storeu_si128, _mm_unpacklo_epi8,
    };
    let mut text = [0; 16];
    // SAFETY: SSE2 is part of x86-64; the store goes to the sixteen bytes of `text`.
    unsafe {
        let bytes = _mm_cvtsi64_si128(value.swap_bytes() as i64);
        let low = _mm_set1_epi8(15);
        let nibbles = _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(bytes, 4), low), _mm_and_si128(bytes, low));
        let letters = _mm_and_si128(_mm_cmpgt_epi8(nibbles, _mm_set1_epi8(9)), _mm_set1_epi8((b'a' - b'9' - 1) as i8));
        let digits = _mm_add_epi8(_mm_add_epi8(nibbles, _mm_set1_epi8(b'0' as i8)), letters);
        _mm_storeu_si128((&raw mut text).cast(), digits);
    }
    text
}

/// [`sixteen_hex_digits`] for other processors, eight digits a word.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn sixteen_hex_digits_portable(value: u64) -> [u8; 16] {
    let eight_digits = |word: u32| {
        // Spread the nibbles over eight bytes, then add '0', and 'a' - '9' - 1 where a nibble is over nine.
        let mut spread = u64::from(word);
        spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
        spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
        spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f;
        let letters = (spread + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
        u128::from(spread + 0x3030_3030_3030_3030 + letters * 39)
    };
    (eight_digits((value >> 32) as u32) << 64 | eight_digits(value as u32)).to_be_bytes()
}

/// The lower-case hex digit of the low four bits of `value`.
pub const fn hex_digit(value: u32) -> u8 {
    b"0123456789abcdef"[value as usize & 15]
}

/// The value of a lower-case hex digit, or `None` if the byte is another one.
pub(crate) const fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step between the values that a test tries. Miri, which is slow, tries every 61st value.
    const STEP: usize = if cfg!(miri) { 61 } else { 1 };

    #[test]
    fn decimal_digits_have_leading_zeros() {
        for number in (0..10_000).step_by(STEP) {
            assert_eq!(four_digits(number)[..], *format!("{number:04}").as_bytes());
        }
    }

    #[test]
    fn hex_digits_and_their_values_are_twins() {
        let digits = |byte: u8| hex_value(byte).map(|value| hex_digit(u32::from(value)));
        for byte in 0..=255 {
            assert_eq!(digits(byte), b"0123456789abcdef".contains(&byte).then_some(byte));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn sse2_and_portable_hex_digits_agree() {
        // Nibbles do not influence each other across bytes: all bytes in all places, and neighbours of every kind.
        for byte in (0..=255u64).step_by(STEP) {
            for place in 0..8 {
                for around in [0, u64::MAX, 0x0123_4567_89ab_cdef] {
                    let value = around & !(0xff << (8 * place)) | byte << (8 * place);
                    assert_eq!(sixteen_hex_digits_sse2(value), sixteen_hex_digits_portable(value), "{value:#x}");
                    assert_eq!(&sixteen_hex_digits_sse2(value)[..], format!("{value:016x}").as_bytes());
                }
            }
        }
    }
}
