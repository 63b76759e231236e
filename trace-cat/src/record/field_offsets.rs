//! Where the fields of a record are in its line.
//!
//! # Safety
//! What is called unsafely asks for SSE2, which is part of the architecture.

use std::arch::x86_64::*;
use std::ops::Range;

use spec::record::RECORD_LEN_MIN;

use super::columns;

/// Where the thread ID begins.
pub const TID: usize = 37;
/// The columns that have their place in every record: those before the thread ID.
const HEAD: usize = TID;
/// Where a1 is when the thread ID has its usual twelve digits.
const A1: usize = 60;
/// Bytes of a line's end that the arguments do not often exceed.
const TAIL: usize = 48;

/// Where the fields of a record are in its line, and what is read from it always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldOffsets {
    time: u64,
    /// Category, event within it, and which.
    event: (u8, u8, u8),
    /// Where the thread ID ends.
    tid: u8,
    /// Where a1 begins, and behind each argument the place behind its separator.
    arguments: [u8; 6],
}

impl FieldOffsets {
    /// Category and event within it.
    pub fn event(&self) -> (u8, u8) {
        (self.event.0, self.event.1)
    }

    /// 0 for the only record of a call, else 1 or 2.
    pub fn which(&self) -> u8 {
        self.event.2
    }

    /// Nanoseconds since the Epoch.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Where the thread ID ends.
    pub fn tid_end(&self) -> usize {
        usize::from(self.tid)
    }

    /// Where one of the arguments is, from 0 for a1 to 4.
    pub fn argument(&self, index: usize) -> Range<usize> {
        let [from, to] = [index, index + 1].map(|index| usize::from(self.arguments[index]));
        from..to - 1
    }

    /// Those of a line without its newline; `None` if it is no record. Digits are not all looked at, but there is nothing
    /// in any field that a record could not have there.
    #[inline(always)]
    pub fn new(line: &[u8]) -> Option<FieldOffsets> {
        FieldOffsets::usual(line).or_else(|| FieldOffsets::any(line))
    }

    /// Those of a line as most are, looked at sixteen bytes at a time; `None` does not say that it is no record.
    #[inline(always)]
    fn usual(line: &[u8]) -> Option<FieldOffsets> {
        let (head, tail): (&[u8; RECORD_LEN_MIN - 1], &[u8; TAIL]) = (line.first_chunk()?, line.last_chunk()?);
        let digits = |at| ByteBlock::new(head, at).between(b'0', b':');
        let values = |block: ByteBlock| {
            let letters = block.between(b'a', b'f') | block.equal(b'x') | block.equal(b'-');
            block.between(b'0', b':') | letters
        };
        let tail = [0, 16, 32].map(|at| ByteBlock::new(tail, at));
        let good = digits(0)
            & digits(16)
            & digits(HEAD - 16)
            & values(ByteBlock::new(head, HEAD))
            & values(ByteBlock::new(head, RECORD_LEN_MIN - 1 - 16))
            & tail.into_iter().map(values).fold(ALL, |good, block| good & block);
        // The thread ID has twelve digits; and a1 begins in the tail.
        let &[b':', a, b, b':', c, d, b':', which @ b'0'..=b'2', b':', ..] = head[A1 - 9..].first_chunk::<18>()? else {
            return None;
        };
        let before = (A1 + TAIL).checked_sub(line.len())?;
        let [x, y, z] = tail.map(|block| u64::from(block.equal(b':')));
        let mut colons = (x | y << 16 | z << 32) >> before;
        let (starts, ends) = (colons << 1 | 1, colons | 1 << (line.len() - A1));
        if good != ALL || colons.count_ones() != 4 || starts & ends != 0 {
            return None;
        }
        let mut arguments = [A1 as u8; 6];
        for argument in &mut arguments[1..5] {
            *argument += colons.trailing_zeros() as u8 + 1;
            colons &= colons - 1;
        }
        arguments[5] = line.len() as u8 + 1;
        let event = (pair(&[a, b])?, pair(&[c, d])?, which - b'0');
        Some(FieldOffsets { time: columns::time(line)?, event, tid: A1 as u8 - 9, arguments })
    }

    /// Those of any line.
    #[cold]
    #[inline(never)]
    fn any(line: &[u8]) -> Option<FieldOffsets> {
        let (head, rest) = line.split_first_chunk::<HEAD>()?;
        // Without an early end, so that many bytes are looked at together.
        let digits = head.iter().fold(true, |good, byte| good & (b'0'..=b':').contains(byte));
        let others = rest.iter().fold(true, |good, &byte| good & is_value_or_separator(byte));
        if !(digits && others) || line.len() > usize::from(u8::MAX) {
            return None;
        }
        let time = columns::time(line)?;
        // The thread ID has twelve digits; should it have more, all that follows stands further behind.
        let tid = if rest.get(14) == Some(&b':') { 14 } else { rest.iter().position(|&byte| byte == b':')? };
        let &[b':', a, b, b':', c, d, b':', which @ b'0'..=b'2', b':', ref text @ ..] = &rest[tid..] else {
            return None;
        };
        let mut arguments = [(HEAD + tid + 9) as u8; 6];
        let mut count = 0;
        for (index, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b':') {
            count += 1;
            *arguments.get_mut(count)? = arguments[0] + index as u8 + 1;
        }
        if count != 4 {
            return None;
        }
        arguments[5] = line.len() as u8 + 1;
        let empty = arguments.windows(2).any(|pair| pair[1] - pair[0] < 2);
        let event = (pair(&[a, b])?, pair(&[c, d])?, which - b'0');
        (tid > 0 && !empty).then_some(FieldOffsets { time, event, tid: (HEAD + tid) as u8, arguments })
    }
}

/// Bytes that are looked at together.
#[derive(Clone, Copy)]
struct ByteBlock(__m128i);

/// A bit for each byte of a block.
const ALL: u32 = 0xffff;

impl ByteBlock {
    /// Sixteen of `bytes`, from `at` on.
    #[inline(always)]
    fn new(bytes: &[u8], at: usize) -> ByteBlock {
        let block: &[u8; 16] = bytes[at..].first_chunk().expect("a whole block");
        // SAFETY: the block has 16 bytes, and this load asks for no alignment.
        ByteBlock(unsafe { _mm_loadu_si128(block.as_ptr().cast()) })
    }

    /// Which bytes are this one.
    #[inline(always)]
    fn equal(self, byte: u8) -> u32 {
        // SAFETY: there is SSE2.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_set1_epi8(byte as i8))) as u32 }
    }

    /// Which bytes are in a range, its end included.
    #[inline(always)]
    fn between(self, low: u8, high: u8) -> u32 {
        // SAFETY: as above.
        unsafe {
            let above = _mm_sub_epi8(self.0, _mm_set1_epi8(low as i8));
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8((high - low) as i8)), above)) as u32
        }
    }
}

fn pair(digits: &[u8]) -> Option<u8> {
    match digits {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => Some((tens - b'0') * 10 + (ones - b'0')),
        _ => None,
    }
}

/// What an argument, or what separates them, may consist of: nothing else gets to a terminal, or into JSON.
fn is_value_or_separator(byte: u8) -> bool {
    (byte.wrapping_sub(b'0') <= b':' - b'0')
        | (byte.wrapping_sub(b'a') <= b'f' - b'a')
        | (byte == b'x')
        | (byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn both_ways_lead_to_the_same_cuts() {
        let mut random = SeededRandom::seeded("cuts", 6);
        let head = "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:02:30:1";
        let (mut usual, mut refused) = (0, 0);
        for _ in 0..50_000 {
            let argument = |random: &mut SeededRandom| match random.below(4) {
                0 => format!("{:#x}", random.next() >> random.below(64)),
                1 => (random.next() as i64 >> random.below(64)).to_string(),
                _ => "0".to_owned(),
            };
            let arguments: Vec<String> = (0..5).map(|_| argument(&mut random)).collect();
            let mut line = format!("{head}:{}", arguments.join(":")).into_bytes();
            for _ in 0..random.below(3) {
                random.mutate(&mut line, b"0123456789:x-af\x1b\"");
            }
            match (FieldOffsets::usual(&line), FieldOffsets::any(&line)) {
                (Some(offsets), any) => {
                    assert_eq!(Some(offsets), any, "{}", line.escape_ascii());
                    usual += 1;
                }
                (None, any) => refused += usize::from(any.is_none()),
            }
        }
        assert!(usual > 1000 && refused > 1000, "{usual} {refused}");
    }
}
