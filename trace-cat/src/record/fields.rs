//! The fields of a record as texts. Fields that are printed as they are need no decoding.

use spec::Argument;
use spec::record::{
    LWPID_OFFSET, LWPID_WIDTH, PID_OFFSET, PID_WIDTH, TID_OFFSET, TIME_WIDTH, TIME1_WIDTH, TIME2_OFFSET,
};

use super::columns;
use super::validation::FieldOffsets;

/// The fields of one record.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    line: &'a [u8],
    offsets: FieldOffsets,
}

/// Bytes of `lwpid:pid:`.
pub const THREAD_KEY_WIDTH: usize = TID_OFFSET - LWPID_OFFSET;

impl<'a> Fields<'a> {
    /// The fields of a line, with or without its newline; `None` if it is not a record.
    #[inline(always)]
    pub fn new(line: &'a [u8]) -> Option<Fields<'a>> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        Some(Fields { line, offsets: FieldOffsets::new(line)? })
    }

    /// The line, without its newline.
    pub fn line(&self) -> &'a [u8] {
        self.line
    }

    /// Where the fields are, for a copy of the line.
    pub fn offsets(&self) -> FieldOffsets {
        self.offsets
    }

    /// The fields of a copy of a line that has these `offsets`, without its newline.
    pub fn with_offsets(line: &'a [u8], offsets: FieldOffsets) -> Fields<'a> {
        Fields { line, offsets }
    }

    /// Nanoseconds since the Epoch.
    pub fn time(&self) -> u64 {
        self.offsets.time
    }

    /// Category, and the event's number within it.
    pub fn event(&self) -> (u8, u8) {
        (self.offsets.event.0, self.offsets.event.1)
    }

    /// 0 for the only record of a call, 1 for the first of two, 2 for the second.
    pub fn which(&self) -> u8 {
        self.offsets.event.2
    }

    /// `tid`, with its `0x`.
    pub fn tid(&self) -> &'a [u8] {
        &self.line[TID_OFFSET..usize::from(self.offsets.tid_end)]
    }

    /// The texts of a1 to a5.
    pub fn arguments(&self) -> [&'a [u8]; 5] {
        std::array::from_fn(|index| self.argument(index))
    }

    /// The text of one argument; `index` is 0 for a1 and 4 for a5.
    pub fn argument(&self, index: usize) -> &'a [u8] {
        &self.line[self.offsets.argument(index)]
    }

    /// The texts of time1 and time2.
    pub fn seconds_and_nanoseconds(&self) -> (&'a [u8], &'a [u8]) {
        (&self.line[..TIME1_WIDTH], &self.line[TIME2_OFFSET..TIME_WIDTH])
    }

    /// The kernel thread ID.
    pub fn lwpid(&self) -> u32 {
        columns::lwpid(self.line)
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        columns::pid(self.line)
    }

    /// `lwpid:pid:`, which no two threads of a trace have in common.
    pub fn thread_key(&self) -> &'a [u8; THREAD_KEY_WIDTH] {
        self.line[LWPID_OFFSET..].first_chunk().expect("the columns of a record")
    }

    /// The texts of lwpid and pid, without leading zeros.
    pub fn lwpid_and_pid(&self) -> (&'a [u8], &'a [u8]) {
        let column = |offset: usize, width: usize| without_zeros(&self.line[offset..offset + width]);
        (column(LWPID_OFFSET, LWPID_WIDTH), column(PID_OFFSET, PID_WIDTH))
    }
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    let first = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len() - 1);
    &digits[first..]
}

/// The 64 bits that were recorded, from the text of a record's argument; 0 for a text that is empty.
pub fn bits(text: &[u8]) -> u64 {
    match text {
        // Most are of these two forms.
        [digit @ b'0'..=b'9'] => u64::from(digit - b'0'),
        [b'0', b'x', _, ..] => columns::hex(text),
        _ => Argument::parse(text).map_or(0, Argument::bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use spec::Record;

    const LINE: &[u8] = b"1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:02:30:1:0x559469ed90a0:0:-7:110:5\n";

    #[test]
    fn a_record_has_thirteen_fields() {
        for line in [LINE, &LINE[..LINE.len() - 1]] {
            let fields = Fields::new(line).unwrap();
            assert_eq!(fields.time(), 1_795_174_740_544_763_329);
            assert_eq!((fields.lwpid(), fields.pid()), (19955, 7));
            assert_eq!(fields.lwpid_and_pid(), (&b"19955"[..], &b"7"[..]));
            assert_eq!((fields.event(), fields.which(), fields.tid()), ((2, 30), 1, &b"0x7fc5de3f86c0"[..]));
            assert_eq!(fields.arguments().map(bits), [0x5594_69ed_90a0, 0, -7i64 as u64, 110, 5]);
        }
    }

    #[test]
    fn fields_agree_with_the_decoder() {
        let mut random = SeededRandom::seeded("fields", 5);
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut line = LINE[..LINE.len() - 1].to_vec();
            for _ in 0..random.below(3) {
                random.mutate(&mut line, b"0123456789:x-af\x1b\"");
            }
            match (Fields::new(&line), Record::parse(&line)) {
                (Some(fields), Ok(record)) => {
                    assert_eq!(fields.arguments().map(bits), record.arguments.map(Argument::bits));
                    assert_eq!(columns::hex(fields.tid()), record.tid);
                    assert_eq!((fields.time(), fields.lwpid(), fields.pid()), (record.time, record.lwpid, record.pid));
                    assert_eq!((fields.event(), fields.which()), ((record.event1, record.event2), record.which));
                    accepted += 1;
                }
                (None, Err(_)) => refused += 1,
                _ => panic!("{}", line.escape_ascii()),
            }
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
    }

    #[test]
    fn bits_are_those_of_the_decoder() {
        let mut random = SeededRandom::seeded("bits", 1);
        for _ in 0..2000 {
            let bits_of_it = random.below(usize::MAX) as u64 >> random.below(64);
            for text in [format!("{bits_of_it:#x}"), bits_of_it.to_string(), format!("-{}", bits_of_it >> 1 | 1)] {
                assert_eq!(Some(bits(text.as_bytes())), Argument::parse(text.as_bytes()).map(Argument::bits), "{text}");
            }
        }
    }
}
