//! Whether a line is a record.
//!
//! `spec::Record::parse` decides. But nearly every line of a trace is a plain one, and those are recognised in a
//! fraction of the time: sixty fixed columns compared all at once, then five short arguments.

use spec::{Record, RecordError};

/// Bytes before a1 when the thread ID has twelve digits.
pub const HEAD: usize = 60;

/// What each of the fixed columns may be: `low` to `low + span`.
pub struct ColumnRanges {
    /// The least byte.
    pub low: [u8; 64],
    /// How far the greatest is above it.
    pub span: [u8; 64],
    /// A second range, for hex letters; the first one again elsewhere.
    pub low2: [u8; 64],
    /// As `span`.
    pub span2: [u8; 64],
}

/// The columns of a record whose thread ID has twelve digits.
pub static COLUMNS: ColumnRanges = {
    let shape = b"dddddddddd:ddddddddd:ddddddd:ddddddd:0xhhhhhhhhhhhh:dd:dd:w:";
    assert!(shape.len() == HEAD);
    let mut columns = ColumnRanges { low: [0; 64], span: [255; 64], low2: [0; 64], span2: [255; 64] };
    let mut at = 0;
    while at < HEAD {
        let (low, span) = match shape[at] {
            b'd' | b'h' => (b'0', 9),
            b'w' => (b'0', 2),
            exact => (exact, 0),
        };
        (columns.low[at], columns.span[at]) = (low, span);
        (columns.low2[at], columns.span2[at]) = if shape[at] == b'h' { (b'a', 5) } else { (low, span) };
        at += 1;
    }
    columns
};

/// Checks `line`, which has no newline.
///
/// # Errors
/// What `spec::Record::parse` finds wrong with it.
pub fn check(line: &[u8]) -> Result<(), RecordError> {
    if is_plain(line) { Ok(()) } else { Record::parse(line).map(|_| ()) }
}

/// Whether the line is a record for certain. Rare forms (wide thread IDs, negative numbers, the longest decimals)
/// are left to the decoder.
pub fn is_plain(line: &[u8]) -> bool {
    let Some((head, arguments)) = line.split_at_checked(HEAD) else { return false };
    let mut block = [0; 64];
    block[..HEAD].copy_from_slice(head);
    let mut wrong = 0u8;
    for (at, byte) in block.iter().enumerate() {
        let first = byte.wrapping_sub(COLUMNS.low[at]) > COLUMNS.span[at];
        let second = byte.wrapping_sub(COLUMNS.low2[at]) > COLUMNS.span2[at];
        wrong |= u8::from(first & second);
    }
    wrong == 0 && plain_arguments(arguments)
}

fn plain_arguments(mut text: &[u8]) -> bool {
    for left in (0..5).rev() {
        let width = match text {
            // The commonest argument by far.
            [b'0', b':', ..] | [b'0'] => 1,
            [b'0', b'x', digits @ ..] => {
                match digits.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f')).unwrap_or(digits.len())
                {
                    width @ 1..=16 => 2 + width,
                    _ => return false,
                }
            }
            // Nineteen digits always fit 64 bits.
            digits => match digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len()) {
                width @ 1..=19 => width,
                _ => return false,
            },
        };
        text = match (&text[width..], left) {
            ([], 0) => return true,
            ([b':', rest @ ..], 1..) => rest,
            _ => return false,
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::{SeededRandom, fuzz_time};

    const LINES: [&[u8]; 4] = [
        b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0",
        b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:12:99:2:0x5:1234567890:16:0:0xffffffffffffffff",
        b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:07:02:2:-1:18446744073709551615:0:0:0",
        b"1795174740:544763329:0019955:0019953:0xff7fc5de3f86c0:01:04:0:0:0:0:0:0",
    ];

    #[test]
    fn plain_lines_take_the_short_way() {
        assert_eq!(LINES.map(is_plain), [true, true, false, false]);
        for line in LINES {
            assert_eq!(check(line), Ok(()));
        }
    }

    #[test]
    fn the_widest_arguments_are_the_decoders_business() {
        let head = std::str::from_utf8(&LINES[0][..HEAD]).unwrap();
        for (argument, valid) in [
            ("9999999999999999999", true),
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("99999999999999999999", false),
            ("000000000000000000001", true),
            ("0xffffffffffffffff", true),
            ("0x1ffffffffffffffff", false),
            ("0xg", false),
            ("0x", false),
            ("", false),
            ("-1", true),
            ("-", false),
        ] {
            for place in 0..5 {
                let mut arguments = ["0"; 5];
                arguments[place] = argument;
                let line = format!("{head}{}", arguments.join(":"));
                assert_eq!(check(line.as_bytes()).is_ok(), valid, "{line}");
                assert_eq!(Record::parse(line.as_bytes()).is_ok(), valid, "{line}");
            }
        }
    }

    #[test]
    fn the_short_way_never_accepts_what_the_decoder_refuses() {
        let mut random = SeededRandom::seeded("check", 1);
        let until = fuzz_time();
        let mut rounds = 0;
        let (mut accepted, mut refused) = (0, 0);
        while rounds < 200_000 || until.is_some_and(|end| std::time::Instant::now() < end) {
            rounds += 1;
            let mut line = LINES[random.below(LINES.len())].to_vec();
            for _ in 0..random.below(4) {
                random.mutate(&mut line, b"0123456789abcdefx:-\r\0A");
            }
            let truth = Record::parse(&line);
            if is_plain(&line) {
                accepted += 1;
                assert!(truth.is_ok(), "{}", line.escape_ascii());
            }
            refused += usize::from(truth.is_err());
            assert_eq!(check(&line), truth.map(|_| ()));
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
    }
}
