//! The fixed columns of a record, read without decoding the other fields.
//!
//! These functions are for lines that are known to be records. Of other lines they return any value, but never panic.

use memchr::memchr;
use spec::event_numbers;
use spec::record::{
    EVENT_TEXT_WIDTH, EVENT1_OFFSET, FIXED_PART, LWPID_OFFSET, LWPID_WIDTH, NANOS_PER_SECOND, PID_OFFSET, PID_WIDTH,
    TID_OFFSET, TIME_WIDTH,
};

/// The lines of `text`, each with its newline.
#[inline]
pub fn lines(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (line, after) = text.split_at(memchr(b'\n', text)? + 1);
        text = after;
        Some(line)
    })
}

/// The number that eight decimal digits stand for; of other bytes it is any number.
#[inline(always)]
fn eight_digits(digits: [u8; 8]) -> u64 {
    // Neighbours are put together: eight digits, four pairs, two fours.
    let pairs = (u64::from_le_bytes(digits) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(6_553_601) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(42_949_672_960_001) >> 32
}

/// The printed time in nanoseconds since the Epoch, or `None` if the line does not begin with one.
pub fn time(line: &[u8]) -> Option<u64> {
    let text: &[u8; TIME_WIDTH] = line.first_chunk()?;
    let is_valid = |place: usize| text[place].wrapping_sub(FIXED_PART.low[place]) <= FIXED_PART.span[place];
    // Without an early end, so that many bytes are compared together.
    (0..TIME_WIDTH).fold(true, |valid, place| valid & is_valid(place)).then(|| time_known(text))
}

/// The printed time, which is known to be one, in nanoseconds since the Epoch; of other bytes it is any number.
#[inline(always)]
pub fn time_known(text: &[u8; TIME_WIDTH]) -> u64 {
    let [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, _, n0, n1, n2, n3, n4, n5, n6, n7, n8] = *text;
    let digit = |byte: u8| u64::from(byte & 15);
    let seconds = eight_digits([s0, s1, s2, s3, s4, s5, s6, s7]) * 100 + digit(s8) * 10 + digit(s9);
    let nanoseconds = eight_digits([n0, n1, n2, n3, n4, n5, n6, n7]) * 10 + digit(n8);
    seconds.wrapping_mul(NANOS_PER_SECOND).wrapping_add(nanoseconds)
}

/// `event1`, `event2` and `which`.
pub fn event(line: &[u8]) -> (u8, u8, u8) {
    match line.get(event_offset(line)..).and_then(|text| text.first_chunk()) {
        Some(text) => event_numbers(text),
        None => (u8::MAX, u8::MAX, u8::MAX),
    }
}

/// `event1`, `event2` and `which`, from `event1:event2:which:`.
#[inline(always)]
pub fn event_numbers(text: &[u8; EVENT_TEXT_WIDTH]) -> (u8, u8, u8) {
    let [a, b, _, c, d, _, which, _] = *text;
    (pair(a, b), pair(c, d), which.wrapping_sub(b'0'))
}

fn pair(tens: u8, ones: u8) -> u8 {
    tens.wrapping_sub(b'0').wrapping_mul(10).wrapping_add(ones.wrapping_sub(b'0'))
}

/// Where `event1` begins.
fn event_offset(line: &[u8]) -> usize {
    // A thread ID that is wider than usual moves the event.
    match line.get(EVENT1_OFFSET - 1) {
        Some(b':') => EVENT1_OFFSET,
        _ => tid_end(line).map_or(EVENT1_OFFSET, |end| end + 1),
    }
}

/// Where `tid` ends, whatever its width; `None` if no colon follows it.
pub fn tid_end(line: &[u8]) -> Option<usize> {
    Some(TID_OFFSET + memchr(b':', line.get(TID_OFFSET..)?)?)
}

/// The text of a1 to a5, whose `index` is 0 to 4.
pub fn argument(line: &[u8], index: usize) -> &[u8] {
    let arguments = line.get(event_offset(line) + EVENT_TEXT_WIDTH..).unwrap_or_default();
    arguments.split(|byte| matches!(byte, b':' | b'\n')).nth(index).unwrap_or_default()
}

/// The number that the hex digits after `0x` stand for; 0 for `0`, which has no `0x`.
pub fn hex(text: &[u8]) -> u64 {
    let digits = text.get(2..).unwrap_or_default();
    let value =
        |digits: &[u8]| digits.iter().fold(0, |number, &byte| number << 4 | u64::from((byte & 15) + 9 * (byte >> 6)));
    match digits.split_last_chunk() {
        Some((first, last)) => value(first) << 32 | eight_hex_digits(*last),
        None => value(digits),
    }
}

/// The value of eight digits at once.
fn eight_hex_digits(digits: [u8; 8]) -> u64 {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let bytes = u64::from_be_bytes(digits);
    let nibbles = (bytes & LOW) + 9 * ((bytes >> 6) & 0x0101_0101_0101_0101);
    let pairs = (nibbles | nibbles >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    (fours | fours >> 16) & 0xffff_ffff
}

/// `tid`.
pub fn tid(line: &[u8]) -> u64 {
    hex(line.get(TID_OFFSET..event_offset(line) - 1).unwrap_or_default())
}

/// `lwpid`.
pub fn lwpid(line: &[u8]) -> u32 {
    seven_digits(line, LWPID_OFFSET)
}

/// `pid`.
pub fn pid(line: &[u8]) -> u32 {
    seven_digits(line, PID_OFFSET)
}

const _: () = assert!(LWPID_WIDTH == 7 && PID_WIDTH == 7);

/// The number at `offset`; 0 if the line is too short.
fn seven_digits(line: &[u8], offset: usize) -> u32 {
    // With the colon before it, the number has the bytes of a word.
    let Some(&[_, ref digits @ ..]) = line.get(offset - 1..).and_then(|line| line.first_chunk::<8>()) else { return 0 };
    let mut eight = [b'0'; 8];
    eight[1..].copy_from_slice(digits);
    eight_digits(eight) as u32
}

/// Whether the record `line` may give a thread a name.
pub fn sets_name(line: &[u8]) -> bool {
    let (category, number, _) = event(line);
    (category, number) == event_numbers::THR_SETNAME
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
        assert_eq!(time(b"0123456789:987654321:"), Some(123_456_789_987_654_321));
    }

    #[test]
    fn every_byte_of_a_time_counts() {
        for place in 0..20 {
            for byte in 0..=255 {
                let mut line = LINE.to_vec();
                line[place] = byte;
                let valid = if place == 10 { byte == b':' } else { byte.is_ascii_digit() };
                assert_eq!(time(&line).is_some(), valid, "byte {byte} at {place}");
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
