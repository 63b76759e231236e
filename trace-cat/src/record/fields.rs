//! A record cut into its fields, whose texts are good as they are: nothing is decoded that is printed again.

use super::columns;
use super::field_offsets::{FieldOffsets, TID};

/// Where the columns of fixed width are.
const LWP: usize = 21;
const PID: usize = 29;

/// The fields of one record.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    line: &'a [u8],
    offsets: FieldOffsets,
}

impl<'a> Fields<'a> {
    /// The fields of a line, with or without its newline; `None` if it is no record. Digits are not all looked at, but there
    /// is nothing in any field that a record could not have there.
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

    /// The fields of a copy of the line that `cuts` were made for.
    pub fn with_offsets(line: &'a [u8], offsets: FieldOffsets) -> Fields<'a> {
        Fields { line: line.strip_suffix(b"\n").unwrap_or(line), offsets }
    }

    /// Nanoseconds since the Epoch.
    pub fn time(&self) -> u64 {
        self.offsets.time()
    }

    /// Category and event within it.
    pub fn event(&self) -> (u8, u8) {
        self.offsets.event()
    }

    /// 0 for the only record of a call, else 1 or 2.
    pub fn which(&self) -> u8 {
        self.offsets.which()
    }

    /// `tid`, with its `0x`.
    pub fn tid(&self) -> &'a [u8] {
        &self.line[TID..self.offsets.tid_end()]
    }

    /// The texts of a1 to a5.
    pub fn arguments(&self) -> [&'a [u8]; 5] {
        std::array::from_fn(|index| self.argument(index))
    }

    /// The text of one of them, from 0 for a1 to 4.
    pub fn argument(&self, index: usize) -> &'a [u8] {
        &self.line[self.offsets.argument(index)]
    }

    /// The texts of time1 and time2.
    pub fn seconds_and_nanoseconds(&self) -> (&'a [u8], &'a [u8]) {
        (&self.line[..10], &self.line[11..20])
    }

    /// The LWP ID.
    pub fn lwpid(&self) -> u32 {
        columns::lwpid(self.line)
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        columns::pid(self.line)
    }

    /// Both as they stand.
    pub fn lwpid_pid(&self) -> &'a [u8; 16] {
        self.line[LWP..].first_chunk().expect("the columns of a record")
    }

    /// The texts of lwpid and pid, without leading zeros.
    pub fn lwpid_and_pid(&self) -> (&'a [u8], &'a [u8]) {
        (without_zeros(&self.line[LWP..LWP + 7]), without_zeros(&self.line[PID..PID + 7]))
    }
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    let first = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len() - 1);
    &digits[first..]
}

/// The number that an argument's text stands for, as the 64 bits that were recorded.
pub fn bits(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse::<u64>().ok().or_else(|| text.parse::<i64>().ok().map(|number| number as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use spec::Record;

    const LINE: &[u8] = b"1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:02:30:1:0x559469ed90a0:0:-7:110:5\n";

    #[test]
    fn a_record_is_cut() {
        for line in [LINE, &LINE[..LINE.len() - 1]] {
            let fields = Fields::new(line).unwrap();
            assert_eq!(fields.time(), 1_795_174_740_544_763_329);
            assert_eq!((fields.lwpid(), fields.pid()), (19955, 7));
            assert_eq!(fields.lwpid_and_pid(), (&b"19955"[..], &b"7"[..]));
            assert_eq!((fields.event(), fields.which(), fields.tid()), ((2, 30), 1, &b"0x7fc5de3f86c0"[..]));
            assert_eq!(fields.arguments().map(|text| bits(text).unwrap()), [0x5594_69ed_90a0, 0, -7i64 as u64, 110, 5]);
        }
    }

    #[test]
    fn it_agrees_with_the_decoder() {
        let mut random = SeededRandom::seeded("fields", 5);
        let (mut good, mut bad) = (0, 0);
        for _ in 0..20_000 {
            let mut line = LINE[..LINE.len() - 1].to_vec();
            for _ in 0..random.below(3) {
                random.mutate(&mut line, b"0123456789:x-af\x1b\"");
            }
            match (Fields::new(&line), Record::parse(&line)) {
                (Some(fields), Ok(record)) => {
                    let decoded = record.arguments.map(spec::Argument::bits);
                    assert_eq!(fields.arguments().map(|text| bits(text).unwrap()), decoded);
                    assert_eq!((fields.time(), fields.lwpid(), fields.pid()), (record.time, record.lwpid, record.pid));
                    assert_eq!((fields.event(), fields.which()), ((record.event1, record.event2), record.which));
                    good += 1;
                }
                (None, Ok(_)) => panic!("{}", line.escape_ascii()),
                // What is cut may be no record after all, but is harmless.
                (Some(_), Err(_)) => assert!(line.iter().all(|byte| b"0123456789:x-abcdef".contains(byte))),
                (None, Err(_)) => bad += 1,
            }
        }
        assert!(good > 1000 && bad > 1000, "{good} {bad}");
    }
}
