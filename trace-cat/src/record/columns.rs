//! The fixed columns of a record, read without decoding the rest of the line.
//!
//! These are for lines that are known to be records; of other lines they tell nonsense, but never panic.

use spec::record::{NANOS_PER_SECOND, TIME_WIDTH};

/// The number that eight decimal digits stand for.
fn eight(digits: [u8; 8]) -> Option<u64> {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    let text = u64::from_le_bytes(digits);
    // Digits are 0x30 to 0x39: their high halves are 3, and stay 3 when 6 is added.
    let high = (text & HIGH) | (text.wrapping_add(0x0606_0606_0606_0606) & HIGH) >> 4;
    if high != 0x3333_3333_3333_3333 {
        return None;
    }
    Some(eight_known(digits))
}

/// The number that eight bytes stand for, which are digits; of others it is any number.
#[inline(always)]
fn eight_known(digits: [u8; 8]) -> u64 {
    // Neighbours are put together: eight digits, four pairs, two fours.
    let pairs = (u64::from_le_bytes(digits) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(6_553_601) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(42_949_672_960_001) >> 32
}

fn digit(byte: u8) -> Option<u64> {
    let digit = byte.wrapping_sub(b'0');
    (digit <= 9).then_some(u64::from(digit))
}

/// The printed time in nanoseconds since the Epoch, or `None` if the line does not begin with one.
pub fn time(line: &[u8]) -> Option<u64> {
    let text: &[u8; TIME_WIDTH] = line.first_chunk()?;
    let [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, colon, n0, n1, n2, n3, n4, n5, n6, n7, n8] = *text;
    if colon != b':' {
        return None;
    }
    let seconds = eight([s0, s1, s2, s3, s4, s5, s6, s7])? * 100 + digit(s8)? * 10 + digit(s9)?;
    let nanoseconds = eight([n0, n1, n2, n3, n4, n5, n6, n7])? * 10 + digit(n8)?;
    Some(seconds * NANOS_PER_SECOND + nanoseconds)
}

/// The printed time, which is known to be one, in nanoseconds since the Epoch; of other bytes it is any number.
#[inline(always)]
pub fn time_known(text: &[u8; TIME_WIDTH]) -> u64 {
    let [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, _, n0, n1, n2, n3, n4, n5, n6, n7, n8] = *text;
    let digit = |byte: u8| u64::from(byte & 15);
    let seconds = eight_known([s0, s1, s2, s3, s4, s5, s6, s7]) * 100 + digit(s8) * 10 + digit(s9);
    let nanoseconds = eight_known([n0, n1, n2, n3, n4, n5, n6, n7]) * 10 + digit(n8);
    seconds.wrapping_mul(NANOS_PER_SECOND).wrapping_add(nanoseconds)
}

/// `event1`, `event2` and `which`.
pub fn event(line: &[u8]) -> (u8, u8, u8) {
    let at = event_at(line);
    match line.get(at..at + 7) {
        Some(&[a, b, _, c, d, _, which]) => (pair(a, b), pair(c, d), which.wrapping_sub(b'0')),
        _ => (u8::MAX, u8::MAX, u8::MAX),
    }
}

/// Where `event1` stands.
fn event_at(line: &[u8]) -> usize {
    // The thread ID has twelve digits; should it have more, the event stands behind the next colon.
    match line.get(51) {
        Some(b':') => 52,
        _ => line.iter().skip(39).position(|&byte| byte == b':').map_or(52, |colon| 39 + colon + 1),
    }
}

/// The text of a1 to a5, whose `index` is 0 to 4.
pub fn argument(line: &[u8], index: usize) -> &[u8] {
    let arguments = line.get(event_at(line) + 8..).unwrap_or_default();
    arguments.split(|byte| matches!(byte, b':' | b'\n')).nth(index).unwrap_or_default()
}

/// The number that hex digits behind `0x` stand for; 0 for the `0` that has no `0x`.
pub fn hex(text: &[u8]) -> u64 {
    let digits = text.get(2..).unwrap_or_default();
    digits.iter().fold(0, |number, &byte| number << 4 | u64::from((byte & 15) + 9 * (byte >> 6)))
}

/// `tid`.
pub fn tid(line: &[u8]) -> u64 {
    hex(line.get(37..event_at(line) - 1).unwrap_or_default())
}

fn pair(tens: u8, ones: u8) -> u8 {
    tens.wrapping_sub(b'0').wrapping_mul(10).wrapping_add(ones.wrapping_sub(b'0'))
}

/// `lwpid`.
pub fn lwpid(line: &[u8]) -> u32 {
    seven(line, 21)
}

/// `pid`.
pub fn pid(line: &[u8]) -> u32 {
    seven(line, 29)
}

fn seven(line: &[u8], at: usize) -> u32 {
    let Some(&[_, ref digits @ ..]) = line.get(at - 1..).and_then(|line| line.first_chunk::<8>()) else { return 0 };
    let mut eight = [b'0'; 8];
    eight[1..].copy_from_slice(digits);
    eight_known(eight) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:30:1:0x559469ed90a0:0:0:0:0\n";

    #[test]
    fn columns_of_a_record() {
        assert_eq!(time(LINE), Some(1_795_174_740_544_763_329));
        assert_eq!((lwpid(LINE), pid(LINE), event(LINE)), (19955, 19953, (2, 30, 1)));
        let wide = b"0000000000:000000000:0000001:0000002:0xff7fc5de3f86c0:11:04:0:0:0:0:0:0\n";
        assert_eq!((time(wide), event(wide)), (Some(0), (11, 4, 0)));
        assert_eq!((tid(LINE), tid(wide)), (0x7fc5_de3f_86c0, 0xff_7fc5_de3f_86c0));
        assert_eq!([0, 1, 4].map(|index| hex(argument(LINE, index))), [0x5594_69ed_90a0, 0, 0]);
        assert_eq!((argument(wide, 0), argument(wide, 4), argument(wide, 5)), (&b"0"[..], &b"0"[..], &b""[..]));
        assert_eq!(time(b"9999999999:999999999:"), Some(9_999_999_999_999_999_999));
        for line in [LINE, wide, b"9999999999:999999999:", b"0123456789:987654321:"] {
            assert_eq!(Some(time_known(line.first_chunk().unwrap())), time(line));
        }
    }

    #[test]
    fn every_byte_of_a_time_counts() {
        for at in 0..20 {
            for byte in 0..=255 {
                let mut line = LINE.to_vec();
                line[at] = byte;
                let valid = if at == 10 { byte == b':' } else { byte.is_ascii_digit() };
                assert_eq!(time(&line).is_some(), valid, "byte {byte} at {at}");
            }
        }
    }

    #[test]
    fn short_lines_do_not_panic() {
        for end in 0..LINE.len() {
            let line = &LINE[..end];
            assert_eq!(time(line).is_some(), end >= 20);
            let _ = (lwpid(line), pid(line), tid(line), event(line), argument(line, 4));
        }
    }
}
