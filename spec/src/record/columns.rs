//! Where the fields of a record stand in its line, and which bytes they may consist of.

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// One field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in `thread_trace(5)`.
    pub name: &'static str,
    /// What its text may be.
    pub format: FieldFormat,
}

/// What the text of a field may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldFormat {
    /// Exactly this many decimal digits, with leading zeros.
    Decimal(usize),
    /// `0x` and 12 to [`HEX_DIGITS_MAX`] lower-case hex digits; 12 as long as addresses have no more.
    ThreadId,
    /// `0`, `1` or `2`.
    Which,
    /// A decimal number that fits 64 bits, a negative one that fits an `i64` (but not `-0`), or `0x` and one to
    /// [`HEX_DIGITS_MAX`] lower-case hex digits.
    Argument,
}

impl FieldFormat {
    /// Bytes of its text; of a thread ID the usual and least width, of an argument the least.
    const fn width(self) -> usize {
        match self {
            FieldFormat::Decimal(width) => width,
            FieldFormat::ThreadId => 2 + 12,
            FieldFormat::Which | FieldFormat::Argument => 1,
        }
    }
}

/// The fields of a record in their order. A colon stands between two of them, a newline behind the last one.
pub const FIELDS: [Field; 13] = [
    Field { name: "time1", format: FieldFormat::Decimal(10) },
    Field { name: "time2", format: FieldFormat::Decimal(9) },
    Field { name: "lwpid", format: FieldFormat::Decimal(7) },
    Field { name: "pid", format: FieldFormat::Decimal(7) },
    Field { name: "tid", format: FieldFormat::ThreadId },
    Field { name: "event1", format: FieldFormat::Decimal(2) },
    Field { name: "event2", format: FieldFormat::Decimal(2) },
    Field { name: "which", format: FieldFormat::Which },
    Field { name: "a1", format: FieldFormat::Argument },
    Field { name: "a2", format: FieldFormat::Argument },
    Field { name: "a3", format: FieldFormat::Argument },
    Field { name: "a4", format: FieldFormat::Argument },
    Field { name: "a5", format: FieldFormat::Argument },
];

/// Where the field with this name stands in [`FIELDS`].
const fn index(name: &str) -> usize {
    let mut index = 0;
    while index < FIELDS.len() {
        let (known, name) = (FIELDS[index].name.as_bytes(), name.as_bytes());
        let mut same = 0;
        while same < known.len() && same < name.len() && known[same] == name[same] {
            same += 1;
        }
        if same == known.len() && same == name.len() {
            return index;
        }
        index += 1;
    }
    panic!("no field has this name")
}

/// Bytes of the field with this name.
const fn width(name: &str) -> usize {
    FIELDS[index(name)].format.width()
}

/// Bytes before the field with this name, if every field before it has its usual width.
const fn offset(name: &str) -> usize {
    let (mut offset, mut before) = (0, 0);
    while before < index(name) {
        offset += FIELDS[before].format.width() + 1;
        before += 1;
    }
    offset
}

/// Bytes of `time1`.
pub const TIME1_WIDTH: usize = width("time1");
/// Where `time2` begins.
pub const TIME2_OFFSET: usize = offset("time2");
/// Bytes of `time2`.
pub const TIME2_WIDTH: usize = width("time2");
/// Bytes of `time1:time2`: the printed time, which sorts as text.
pub const TIME_WIDTH: usize = TIME2_OFFSET + TIME2_WIDTH;
/// Where `lwpid` begins.
pub const LWPID_OFFSET: usize = offset("lwpid");
/// Bytes of `lwpid`.
pub const LWPID_WIDTH: usize = width("lwpid");
/// Where `pid` begins.
pub const PID_OFFSET: usize = offset("pid");
/// Bytes of `pid`.
pub const PID_WIDTH: usize = width("pid");
/// Where `tid` begins: the last field that has its place in every record.
pub const TID_OFFSET: usize = offset("tid");
/// Bytes of `tid` as it usually is, which is the least: `0x` and twelve digits.
pub const TID_WIDTH: usize = width("tid");
/// The most bytes that `tid` can have.
pub const TID_WIDTH_MAX: usize = 2 + HEX_DIGITS_MAX;
/// Where `event1` begins if `tid` has its usual width.
pub const EVENT1_OFFSET: usize = offset("event1");
/// Where `event1` begins if `tid` has the greatest width.
pub const EVENT1_OFFSET_MAX: usize = EVENT1_OFFSET + TID_WIDTH_MAX - TID_WIDTH;
/// Bytes of `event1`, and of `event2`.
pub const EVENT_WIDTH: usize = width("event1");
/// Where `event2` begins if `tid` has its usual width.
pub const EVENT2_OFFSET: usize = offset("event2");
/// Where `which` stands if `tid` has its usual width.
pub const WHICH_OFFSET: usize = offset("which");
/// Where `a1` begins if `tid` has its usual width.
pub const A1_OFFSET: usize = offset("a1");
/// Bytes of `event1:event2:which:`, the last colon included.
pub const EVENT_TEXT_WIDTH: usize = A1_OFFSET - EVENT1_OFFSET;

/// The most hex digits of a thread ID or an argument.
pub const HEX_DIGITS_MAX: usize = 16;
/// The most decimal digits of which every number fits 64 bits.
pub const DECIMAL_DIGITS_SAFE: usize = 19;
/// The widest argument: `-9223372036854775808` or `18446744073709551615`. Leading zeros can make one longer, but are
/// never written.
pub const ARGUMENT_WIDTH_MAX: usize = 20;
/// The longest record that is ever written, its newline included.
pub const RECORD_LEN_MAX: usize = EVENT1_OFFSET_MAX + EVENT_TEXT_WIDTH + 5 * ARGUMENT_WIDTH_MAX + 4 + 1;
/// The shortest record there can be, its newline included.
pub const RECORD_LEN_MIN: usize = offset("a5") + width("a5") + 1;

// What the manual page promises, and what users of awk and cut rely on.
const _: () = {
    assert!(TIME_WIDTH == 20 && EVENT1_OFFSET == 52 && WHICH_OFFSET == 58 && A1_OFFSET == 60);
    assert!(RECORD_LEN_MIN == 70 && RECORD_LEN_MAX == 169);
};

/// Which bytes are valid at each place of a record that has a `tid` of the usual width, before [`A1_OFFSET`].
///
/// The byte at place `i` is valid if it is one of `low[i]..=low[i] + span[i]` or of `low2[i]..=low2[i] + span2[i]`. The
/// second range has the letters of hex digits; everywhere else it equals the first one. Places from [`A1_OFFSET`] on
/// accept every byte, so that vectors of 16 or 32 bytes can be compared.
#[derive(Debug)]
pub struct ByteRanges {
    /// The least byte of the first range.
    pub low: [u8; 64],
    /// The greatest byte of the first range, less the least.
    pub span: [u8; 64],
    /// The least byte of the second range.
    pub low2: [u8; 64],
    /// The greatest byte of the second range, less the least.
    pub span2: [u8; 64],
}

/// The fixed part of a record: every byte before `a1`.
pub static FIXED_PART: ByteRanges = fixed_part();

const fn fixed_part() -> ByteRanges {
    let mut ranges = ByteRanges { low: [0; 64], span: [255; 64], low2: [0; 64], span2: [255; 64] };
    let (mut field, mut start) = (0, 0);
    while field < index("a1") {
        let format = FIELDS[field].format;
        let mut place = 0;
        while place <= format.width() {
            let (range, range2) = match (format, place) {
                (_, last) if last == format.width() => ((b':', 0), (b':', 0)),
                (FieldFormat::ThreadId, 0) => ((b'0', 0), (b'0', 0)),
                (FieldFormat::ThreadId, 1) => ((b'x', 0), (b'x', 0)),
                (FieldFormat::ThreadId, _) => ((b'0', 9), (b'a', 5)),
                (FieldFormat::Which, _) => ((b'0', 2), (b'0', 2)),
                _ => ((b'0', 9), (b'0', 9)),
            };
            (ranges.low[start + place], ranges.span[start + place]) = range;
            (ranges.low2[start + place], ranges.span2[start + place]) = range2;
            place += 1;
        }
        start += place;
        field += 1;
    }
    ranges
}

/// True if the text of an argument may contain this byte: a decimal or lower-case hex digit, `x` or `-`.
pub const fn is_argument_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'x' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    const LINE: &[u8] = b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:-7:110:0";

    /// Every byte; Miri, which is slow, tries some.
    fn bytes() -> impl Iterator<Item = u8> {
        (0..=255).step_by(if cfg!(miri) { 29 } else { 1 })
    }

    /// Whether [`FIXED_PART`] accepts `byte` at `place`.
    fn accepts(place: usize, byte: u8) -> bool {
        let ByteRanges { low, span, low2, span2 } = &FIXED_PART;
        byte.wrapping_sub(low[place]) <= span[place] || byte.wrapping_sub(low2[place]) <= span2[place]
    }

    #[test]
    fn the_fixed_part_accepts_what_the_decoder_accepts() {
        for place in 0..A1_OFFSET {
            for byte in bytes() {
                let mut line = LINE.to_vec();
                line[place] = byte;
                assert_eq!(accepts(place, byte), Record::parse(&line).is_ok(), "{byte} at {place}");
            }
        }
        assert!((A1_OFFSET..64).all(|place| bytes().all(|byte| accepts(place, byte))));
    }

    #[test]
    fn arguments_have_argument_bytes_only() {
        for place in A1_OFFSET..LINE.len() {
            for byte in bytes() {
                let mut line = LINE.to_vec();
                line[place] = byte;
                let valid = Record::parse(&line).is_ok();
                assert!(!valid || is_argument_byte(byte) || byte == b':', "{byte} at {place}");
            }
        }
        assert!(LINE[A1_OFFSET..].iter().all(|&byte| is_argument_byte(byte) || byte == b':'));
    }

    #[test]
    fn fields_are_at_their_offsets() {
        let column = |offset: usize, width: usize| &LINE[offset..offset + width];
        assert_eq!(column(0, TIME1_WIDTH), b"1795174740");
        assert_eq!(column(TIME2_OFFSET, TIME2_WIDTH), b"544763329");
        assert_eq!(column(LWPID_OFFSET, LWPID_WIDTH), b"0019955");
        assert_eq!(column(PID_OFFSET, PID_WIDTH), b"0019953");
        assert_eq!(column(TID_OFFSET, TID_WIDTH), b"0x7fc5de3f86c0");
        assert_eq!(column(EVENT1_OFFSET, EVENT_TEXT_WIDTH), b"02:02:1:");
        assert_eq!((column(EVENT2_OFFSET, 2), column(WHICH_OFFSET, 1)), (&b"02"[..], &b"1"[..]));
        assert_eq!(column(A1_OFFSET, 14), b"0x559469ed90a0");
    }
}
