//! The numbers of plain records, which nearly all are, read many bytes at a time.
//!
//! What is plain has a thread ID of the usual width, and arguments without a minus that have [`ARGUMENTS_MAX`] bytes at most. Other
//! records, and all on processors without AVX2, are left to [`Fields`](super::fields::Fields).
//!
//! The lines are known to be records: to look at each byte once more took a third of the time. Of other lines these functions return any
//! value, but never panic.
//!
//! # Safety
//! Functions with `target_feature` are called only where there is an [`Avx2Scanner`], which exists only on a processor with AVX2.

use std::arch::x86_64::*;

use spec::record::{A1_OFFSET, DECIMAL_DIGITS_SAFE, EVENT1_OFFSET, HEX_DIGITS_MAX, TID_OFFSET};

use super::columns;
use super::plain_records::{Avx2Scanner, WINDOW, equal, load};

/// Bytes of arguments that are compared.
const ARGUMENTS_VIEW: usize = 2 * WINDOW;
/// The most bytes of arguments: a bit is left for the end of a5.
const ARGUMENTS_MAX: usize = ARGUMENTS_VIEW - 1;
/// Bytes that must exist from a line's beginning on.
const LINE_VIEW: usize = A1_OFFSET + ARGUMENTS_VIEW;

const _: () = assert!(TID_OFFSET + 2 + HEX_DIGITS_MAX <= A1_OFFSET && A1_OFFSET >= HEX_DIGITS_MAX);

/// The numbers of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainNumbers {
    /// Nanoseconds since the Epoch.
    pub time: u64,
    pub tid: u64,
    /// a1 to a5, each with its 64 bits.
    pub arguments: [u64; 5],
    pub pid: u32,
    pub lwp: u32,
    /// `event1`, `event2` and `which`.
    pub event: (u8, u8, u8),
}

/// Gives `take` the numbers of the plain records that `lines` begin with. Returns the bytes of these records.
pub fn take_plain(lines: &[u8], take: impl FnMut(PlainNumbers)) -> usize {
    match Avx2Scanner::detect() {
        // SAFETY: an `Avx2Scanner` exists only on a processor with AVX2.
        Some(_) => unsafe { take_plain_avx2(lines, take) },
        None => 0,
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn take_plain_avx2(lines: &[u8], mut take: impl FnMut(PlainNumbers)) -> usize {
    // No closure here: the library's functions that call one do not have these features, so that it would not be inlined.
    let mut unread = lines;
    while let Some(line) = unread.first_chunk() {
        let Some((numbers, length)) = plain_numbers(line) else { break };
        take(numbers);
        unread = &unread[length..];
    }
    lines.len() - unread.len()
}

/// The numbers of the plain record that a line begins with, and its length with its newline.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn plain_numbers(line: &[u8; LINE_VIEW]) -> Option<(PlainNumbers, usize)> {
    let (low, high) = (load(line, A1_OFFSET), load(line, A1_OFFSET + WINDOW));
    let newlines = both(equal(low, b'\n'), equal(high, b'\n'));
    // All bits below the first newline. Without one, all bits; but then the line is not accepted.
    let within = (newlines ^ newlines.wrapping_sub(1)) >> 1;
    let colons = both(equal(low, b':'), equal(high, b':')) & within;
    let crosses = both(equal(low, b'x'), equal(high, b'x'));
    let minuses = both(equal(low, b'-'), equal(high, b'-')) & within;
    let width = newlines.trailing_zeros() as usize;
    let has_usual_tid = line[EVENT1_OFFSET - 1] == b':';
    if width > ARGUMENTS_MAX || !has_usual_tid || minuses != 0 || colons.count_ones() != 4 {
        return None;
    }
    let mut ends = colons | 1 << width;
    let (mut values, mut start) = ([0; 5], 0);
    for value in &mut values {
        let end = ends.trailing_zeros() as usize;
        ends &= ends.wrapping_sub(1);
        *value = if end - start == 1 {
            u64::from(line[A1_OFFSET + start] & 15)
        } else if crosses >> start & 2 != 0 {
            hex_before(line, A1_OFFSET + end, (end - start).checked_sub(2)?)?
        } else {
            decimal(&line[A1_OFFSET + start..A1_OFFSET + end])?
        };
        start = end + 1;
    }
    let numbers = PlainNumbers {
        time: columns::time_known(line.first_chunk()?),
        tid: hex_before(line, EVENT1_OFFSET - 1, EVENT1_OFFSET - 1 - (TID_OFFSET + 2))?,
        arguments: values,
        pid: columns::pid(line),
        lwp: columns::lwpid(line),
        event: columns::event_numbers(line[EVENT1_OFFSET..].first_chunk()?),
    };
    Some((numbers, A1_OFFSET + width + 1))
}

/// The bits of two windows.
#[inline(always)]
fn both(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << WINDOW
}

/// The value of the last hex digits before `end`, where there are so many; `None` if these are too many.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn hex_before(line: &[u8; LINE_VIEW], end: usize, digits: usize) -> Option<u64> {
    /// Sixteen bytes from a number of digits on keep these.
    static KEPT: [u8; 2 * HEX_DIGITS_MAX] = {
        let mut kept = [0; 2 * HEX_DIGITS_MAX];
        let mut place = HEX_DIGITS_MAX;
        while place < kept.len() {
            kept[place] = 15;
            place += 1;
        }
        kept
    };
    let text: &[u8; HEX_DIGITS_MAX] = line.get(..end)?.last_chunk()?;
    let kept: &[u8; HEX_DIGITS_MAX] = KEPT.get(digits..)?.first_chunk()?;
    // SAFETY: both have sixteen bytes, and these loads need no alignment.
    let (text, kept) = unsafe { (_mm_loadu_si128(text.as_ptr().cast()), _mm_loadu_si128(kept.as_ptr().cast())) };
    // Letters are above digits; the low four bits of `a` are 1.
    let letters = _mm_and_si128(_mm_cmpgt_epi8(text, _mm_set1_epi8(b'9' as i8)), _mm_set1_epi8(9));
    let nibbles = _mm_and_si128(_mm_add_epi8(text, letters), kept);
    // Neighbours are put together: the first one of each pair is worth sixteen.
    let bytes = _mm_maddubs_epi16(nibbles, _mm_set1_epi16(0x0110));
    Some((_mm_cvtsi128_si64(_mm_packus_epi16(bytes, bytes)) as u64).swap_bytes())
}

/// The value of decimal digits; `None` if it may not fit 64 bits.
fn decimal(digits: &[u8]) -> Option<u64> {
    let value = |number: u64, digit: &u8| number * 10 + u64::from(digit & 15);
    (digits.len() <= DECIMAL_DIGITS_SAFE).then(|| digits.iter().fold(0, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fields::{Fields, bits};
    use crate::testing::seeded_random::SeededRandom;

    const LINES: [&str; 6] = [
        "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:02:30:1:0x559469ed90a0:0:1234567890:110:5",
        "1795174740:544763329:9919955:0019953:0x000000000001:05:04:0:0x13377240:0:0:0:0x1be8d19",
        "0000000001:999999999:0019955:0019953:0xffffffffffff:05:02:2:0:0:1:0:0",
        "1795174740:544763330:0019955:0019953:0x7fc5de3f86c0:12:99:2:0x5:9999999999999999999:16:0:0xffff",
        "1795174740:544763330:0019955:0019953:0x7fc5de3f86c0:12:99:2:0xffffffffffffffff:0:0x123456789abcdef0:0:0xa",
        "1795174740:544763330:0019955:0019953:0xff7fc5de3f86c0:12:99:2:-7:18446744073709551615:0:0:0",
    ];

    fn of_fields(line: &[u8]) -> Option<PlainNumbers> {
        let fields = Fields::new(line)?;
        let (category, number) = fields.event();
        Some(PlainNumbers {
            time: fields.time(),
            tid: columns::hex(fields.tid()),
            arguments: fields.arguments().map(bits),
            pid: fields.pid(),
            lwp: fields.lwpid(),
            event: (category, number, fields.which()),
        })
    }

    #[test]
    fn numbers_are_those_of_the_fields() {
        let mut random = SeededRandom::seeded("plain numbers", 3);
        let (mut taken, mut left, mut others) = (0, 0, 0);
        for _ in 0..200_000 {
            let mut line = LINES[random.below(LINES.len())].as_bytes().to_vec();
            for _ in 0..random.below(3) {
                random.mutate(&mut line, b"0123456789abcdefx:-\r\0A\n");
            }
            line.push(b'\n');
            let end = line.iter().position(|byte| *byte == b'\n').unwrap_or_default();
            let expected = of_fields(&line[..end]);
            let mut found = Vec::new();
            line.extend(std::iter::repeat_n(b'?', LINE_VIEW));
            let bytes = take_plain(&line, |numbers| found.push(numbers));
            // Of what is no record, any number is right.
            let Some(expected) = expected else {
                others += 1;
                continue;
            };
            if found.is_empty() {
                left += 1;
                assert_eq!(bytes, 0);
            } else {
                taken += 1;
                assert_eq!((found, bytes), (vec![expected], end + 1), "{}", line.escape_ascii());
            }
        }
        let has_avx2 = Avx2Scanner::detect().is_some();
        assert!((taken > 10_000) == has_avx2 && left > 10_000 && others > 10_000, "{taken} {left} {others}");
    }

    #[test]
    fn plain_are_all_but_rare_records() {
        let text: String = LINES.iter().map(|line| format!("{line}\n")).collect();
        let text = text + &"?".repeat(LINE_VIEW);
        let mut count = 0;
        take_plain(text.as_bytes(), |_| count += 1);
        assert_eq!(count, if Avx2Scanner::detect().is_some() { 5 } else { 0 });
    }
}
