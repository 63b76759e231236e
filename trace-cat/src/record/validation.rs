//! Whether a line is a record, and where its fields are.
//!
//! `spec::Record::parse` decides. Nearly every record has a thread ID of the usual width, and arguments that are short enough
//! to fit 64 bits for certain; such a record is recognised by comparing sixteen bytes at a time, in a fraction of the
//! decoder's time.
//!
//! # Safety
//! The intrinsics need SSE2, which every x86-64 has.

use std::arch::x86_64::*;
use std::ops::Range;

use memchr::memchr_iter;
use spec::record::{
    A1_OFFSET, DECIMAL_DIGITS_SAFE, EVENT_TEXT_WIDTH, EVENT1_OFFSET, FIXED_PART, HEX_DIGITS_MAX, RECORD_LEN_MIN,
    TID_OFFSET,
};
use spec::{Record, RecordError};

use super::columns;

/// Checks that `line`, which has no newline, is a record. The error is that of `spec::Record::parse`.
pub fn validate(line: &[u8]) -> Result<(), RecordError> {
    if FieldOffsets::of_usual(line).is_some() { Ok(()) } else { Record::parse(line).map(|_| ()) }
}

/// Where the fields of a record are in its line, and the values that every reader of fields needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldOffsets {
    /// Nanoseconds since the Epoch.
    pub(super) time: u64,
    /// `event1`, `event2` and `which`.
    pub(super) event: (u8, u8, u8),
    /// Where the thread ID ends.
    pub(super) tid_end: u8,
    /// Where a1 begins, and for each argument the place after its separator.
    arguments: [u8; 6],
}

impl FieldOffsets {
    /// Where an argument is; `index` is 0 for a1 and 4 for a5.
    pub fn argument(&self, index: usize) -> Range<usize> {
        let [start, next] = [index, index + 1].map(|index| usize::from(self.arguments[index]));
        start..next - 1
    }

    /// The offsets in a line without its newline; `None` if it is not a record, or is longer than any that is written.
    #[inline(always)]
    pub fn new(line: &[u8]) -> Option<FieldOffsets> {
        FieldOffsets::of_usual(line).or_else(|| FieldOffsets::of_any(line))
    }

    /// The offsets in a record of the usual kind; `None` for any other line, which may be a record, too.
    #[inline(always)]
    pub fn of_usual(line: &[u8]) -> Option<FieldOffsets> {
        let head: &[u8; HEAD_LEN] = line.first_chunk()?;
        let arguments = match line.len() {
            ..=SHORT_LINE_MAX => ArgumentBits::of_line::<SHORT_WINDOW>(line)?,
            _ => ArgumentBits::of_line::<LONG_WINDOW>(line)?,
        };
        let width = line.len() - A1_OFFSET;
        if !fixed_part_is_valid(head) || !arguments.are_valid((1 << width) - 1) {
            return None;
        }
        let mut offsets = [A1_OFFSET as u8; 6];
        let (mut colons, mut start, mut is_wide) = (arguments.colons | 1 << width, 0, false);
        for offset in &mut offsets[1..] {
            let end = colons.trailing_zeros();
            colons &= colons - 1;
            // The widest numbers that fit 64 bits for certain: `0x` and 16 digits, or 19 decimal digits.
            let is_hex = arguments.crosses >> start & 2;
            is_wide |= u64::from(end - start) + is_hex / 2 > DECIMAL_DIGITS_SAFE as u64;
            start = end + 1;
            *offset += start as u8;
        }
        let event = columns::event_numbers(head[EVENT1_OFFSET..].first_chunk()?);
        let time = columns::time_known(head.first_chunk()?);
        (!is_wide).then_some(FieldOffsets { time, event, tid_end: EVENT1_OFFSET as u8 - 1, arguments: offsets })
    }

    /// The offsets in any record.
    #[cold]
    #[inline(never)]
    fn of_any(line: &[u8]) -> Option<FieldOffsets> {
        let Record { time, event1, event2, which, .. } = Record::parse(line).ok()?;
        // Zeros before an argument can make a line longer than any that is written.
        u8::try_from(line.len() + 1).ok()?;
        let tid_end = columns::tid_end(line)?;
        let a1 = tid_end + 1 + EVENT_TEXT_WIDTH;
        let mut arguments = [a1 as u8; 6];
        let ends = memchr_iter(b':', &line[a1..]).chain([line.len() - a1]);
        arguments[1..].iter_mut().zip(ends).for_each(|(argument, end)| *argument += end as u8 + 1);
        Some(FieldOffsets { time, event: (event1, event2, which), tid_end: tid_end as u8, arguments })
    }
}

/// Bytes at a line's beginning that are compared: the fixed part, up to a multiple of a block.
const HEAD_LEN: usize = A1_OFFSET.next_multiple_of(BLOCK);
/// Bytes at the end of a line, which in most lines are all arguments and some bytes before them.
const SHORT_WINDOW: usize = 2 * BLOCK;
/// The longest such line.
const SHORT_LINE_MAX: usize = A1_OFFSET + SHORT_WINDOW - 1;
/// The same for longer lines. A mask has a bit for each of these bytes.
const LONG_WINDOW: usize = 4 * BLOCK;

const _: () = assert!(HEAD_LEN < RECORD_LEN_MIN && LONG_WINDOW < RECORD_LEN_MIN && LONG_WINDOW == u64::BITS as usize);
const _: () = assert!(2 + HEX_DIGITS_MAX + 1 == DECIMAL_DIGITS_SAFE && TID_OFFSET >= 2 * BLOCK);

/// Whether every byte before a1 is one that a record can have there, if its thread ID has the usual width.
#[inline(always)]
fn fixed_part_is_valid(head: &[u8; HEAD_LEN]) -> bool {
    let beyond = |at: usize, low: &[u8], span: &[u8]| {
        ByteBlock::load(head, at).beyond(ByteBlock::load(low, at), ByteBlock::load(span, at))
    };
    // Only the thread ID has letters, and so a second range.
    let first = |at| beyond(at, &FIXED_PART.low, &FIXED_PART.span);
    let both = |at| first(at).least(beyond(at, &FIXED_PART.low2, &FIXED_PART.span2));
    first(0).or(first(BLOCK)).or(both(2 * BLOCK)).or(both(3 * BLOCK)).equal(0) == ALL
}

/// Which bytes of a record's arguments are what: bit 0 is for the first byte of a1.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentBits {
    /// Colons.
    pub colons: u64,
    /// `0` to `9`.
    pub decimals: u64,
    /// `0`.
    pub zeros: u64,
    /// `a` to `f`.
    pub letters: u64,
    /// `x`.
    pub crosses: u64,
    /// `-`.
    pub minuses: u64,
}

impl ArgumentBits {
    /// The arguments of a line, from its last `WINDOW` bytes; `None` if these do not have all arguments.
    #[inline(always)]
    fn of_line<const WINDOW: usize>(line: &[u8]) -> Option<ArgumentBits> {
        let window: &[u8; WINDOW] = line.last_chunk()?;
        // Bits of other bytes are shifted out; there is at least one, which leaves a bit for the end of a5.
        let others = (A1_OFFSET + WINDOW).checked_sub(line.len()).filter(|&others| others > 0)?;
        let mut bits = ArgumentBits { colons: 0, decimals: 0, zeros: 0, letters: 0, crosses: 0, minuses: 0 };
        for at in (0..WINDOW).step_by(BLOCK) {
            let block = ByteBlock::load(window, at);
            bits.colons |= u64::from(block.equal(b':')) << at;
            bits.decimals |= u64::from(block.between(b'0', b'9')) << at;
            bits.zeros |= u64::from(block.equal(b'0')) << at;
            bits.letters |= u64::from(block.between(b'a', b'f')) << at;
            bits.crosses |= u64::from(block.equal(b'x')) << at;
            bits.minuses |= u64::from(block.equal(b'-')) << at;
        }
        let ArgumentBits { colons, decimals, zeros, letters, crosses, minuses } = bits;
        let [colons, decimals, zeros] = [colons, decimals, zeros].map(|bits| bits >> others);
        let [letters, crosses, minuses] = [letters, crosses, minuses].map(|bits| bits >> others);
        Some(ArgumentBits { colons, decimals, zeros, letters, crosses, minuses })
    }

    /// Whether the bytes of `within`, which has the lowest bits, are five arguments. The caller checks that numbers fit 64
    /// bits. A zero after a minus counts as not valid, although `-01` is.
    #[inline(always)]
    pub fn are_valid(self, within: u64) -> bool {
        let ArgumentBits { colons, decimals, zeros, letters, crosses, minuses } = self;
        let digits = decimals | letters;
        let starts = colons << 1 | 1;
        let bodies = crosses << 1;
        // Adding the first bit of the digits after a cross carries through them; numbers without a cross keep theirs.
        let hex = digits & !bodies.wrapping_add(digits);
        let invalid = ((digits | colons | crosses | minuses) ^ within)
            | (starts & !(decimals | minuses))
            | (minuses & !starts)
            | (minuses << 1 & !(decimals & !zeros))
            | (crosses & !((starts & zeros) << 1))
            | (bodies & !digits)
            | (letters & !hex);
        invalid == 0 && colons.count_ones() == 4
    }
}

/// Bytes that are compared together.
#[derive(Clone, Copy)]
struct ByteBlock(__m128i);

/// Bytes of a block.
const BLOCK: usize = size_of::<ByteBlock>();
const ALL: u32 = 0xffff;

impl ByteBlock {
    /// The block of `bytes` that begins at `at`.
    #[inline(always)]
    fn load(bytes: &[u8], at: usize) -> ByteBlock {
        let block: &[u8; BLOCK] = bytes[at..].first_chunk().expect("a complete block");
        // SAFETY: the block has 16 bytes, and this load needs no alignment.
        ByteBlock(unsafe { _mm_loadu_si128(block.as_ptr().cast()) })
    }

    /// Which bytes are this one.
    #[inline(always)]
    fn equal(self, byte: u8) -> u32 {
        // SAFETY: there is SSE2.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_set1_epi8(byte as i8))) as u32 }
    }

    /// Which bytes are `low` to `high`.
    #[inline(always)]
    fn between(self, low: u8, high: u8) -> u32 {
        // SAFETY: there is SSE2.
        let [low, span] = unsafe { [_mm_set1_epi8(low as i8), _mm_set1_epi8((high - low) as i8)] };
        self.beyond(ByteBlock(low), ByteBlock(span)).equal(0)
    }

    /// By how much each byte is above `low + span`, 0 if it is in the range.
    #[inline(always)]
    fn beyond(self, low: ByteBlock, span: ByteBlock) -> ByteBlock {
        // SAFETY: there is SSE2.
        ByteBlock(unsafe { _mm_subs_epu8(_mm_sub_epi8(self.0, low.0), span.0) })
    }

    /// The lesser byte of the two at each place.
    #[inline(always)]
    fn least(self, other: ByteBlock) -> ByteBlock {
        // SAFETY: there is SSE2.
        ByteBlock(unsafe { _mm_min_epu8(self.0, other.0) })
    }

    /// The bits of both.
    #[inline(always)]
    fn or(self, other: ByteBlock) -> ByteBlock {
        // SAFETY: there is SSE2.
        ByteBlock(unsafe { _mm_or_si128(self.0, other.0) })
    }
}

#[cfg(test)]
#[path = "validation_tests.rs"]
mod tests;
