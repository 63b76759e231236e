//! One record: its widths and its fields, decoded.
//!
//! ```text
//! 1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n
//! time1      time2     lwpid   pid     tid            e1 e2 w a1             a2 … a5
//! 0          11        21      29      37             52 55 58
//! ```

use crate::tables::{Event, RecordKind};

/// Bytes of `time1:time2`: the printed time, which sorts as text.
pub const TIME_WIDTH: usize = 20;
/// Bytes before `event1` when `tid` has its usual twelve digits.
pub const EVENT1_OFFSET: usize = 52;
/// Bytes before `event1` when `tid` has sixteen digits, the most there can be.
pub const EVENT1_OFFSET_MAX: usize = EVENT1_OFFSET + 4;
/// The widest argument: `-9223372036854775808` or `18446744073709551615`.
pub const ARGUMENT_WIDTH_MAX: usize = 20;
/// The longest record there can be, its newline included.
pub const RECORD_LEN_MAX: usize = EVENT1_OFFSET_MAX + 8 + 5 * ARGUMENT_WIDTH_MAX + 4 + 1;
/// The shortest record there can be, its newline included.
pub const RECORD_LEN_MIN: usize = EVENT1_OFFSET + 8 + 5 + 4 + 1;

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// One argument as it stands in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A decimal number without a minus, or `0`, whatever its column's base.
    Decimal(u64),
    /// A decimal number with a minus.
    Negative(i64),
    /// A `0x` number.
    Hex(u64),
}

impl Argument {
    /// The 64 bits that were recorded, whatever the base.
    pub const fn bits(self) -> u64 {
        match self {
            Argument::Decimal(bits) | Argument::Hex(bits) => bits,
            Argument::Negative(number) => number as u64,
        }
    }
}

/// A decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since the Epoch.
    pub time: u64,
    /// The kernel thread ID of the calling thread.
    pub lwpid: u32,
    /// The process ID.
    pub pid: u32,
    /// `pthread_self()` of the calling thread.
    pub tid: u64,
    /// Category.
    pub event1: u8,
    /// Event within the category.
    pub event2: u8,
    /// 0 the only record of its call, 1 the first of two, 2 the second.
    pub which: u8,
    /// a1 to a5.
    pub arguments: [Argument; 5],
}

/// What is wrong with a line that is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The line ends within this field (0 is time1, 12 is a5).
    Short(u8),
    /// This field is not what it has to be.
    Field(u8),
    /// Something follows the thirteenth field.
    Long,
}

impl core::fmt::Display for RecordError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        const FIELDS: [&str; 13] =
            ["time1", "time2", "lwpid", "pid", "tid", "event1", "event2", "which", "a1", "a2", "a3", "a4", "a5"];
        let name = |field: u8| FIELDS.get(usize::from(field)).copied().unwrap_or("?");
        match *self {
            RecordError::Short(field) => write!(out, "the line ends in {}", name(field)),
            RecordError::Field(field) => write!(out, "{} is not valid", name(field)),
            RecordError::Long => write!(out, "something follows a5"),
        }
    }
}

/// Walks the fields of a line.
struct Fields<'a> {
    rest: Option<&'a [u8]>,
    next: u8,
}

impl<'a> Fields<'a> {
    /// The next field and its index, up to the next colon or the end of the line.
    fn take(&mut self) -> Result<(&'a [u8], u8), RecordError> {
        let field = self.next;
        self.next += 1;
        let rest = self.rest.ok_or(RecordError::Short(field))?;
        let mut halves = rest.splitn(2, |&byte| byte == b':');
        let head = halves.next().unwrap_or(rest);
        self.rest = halves.next();
        Ok((head, field))
    }

    /// A decimal of exactly `width` digits.
    fn fixed(&mut self, width: usize) -> Result<u64, RecordError> {
        let (text, field) = self.take()?;
        if text.len() < width && self.rest.is_none() {
            return Err(RecordError::Short(field));
        }
        if text.len() != width {
            return Err(RecordError::Field(field));
        }
        decimal(text).ok_or(RecordError::Field(field))
    }

    /// An argument in either base.
    fn value(&mut self) -> Result<Argument, RecordError> {
        let (text, field) = self.take()?;
        if text.is_empty() && self.rest.is_none() {
            return Err(RecordError::Short(field));
        }
        value(text).ok_or(RecordError::Field(field))
    }
}

/// One or more decimal digits that fit 64 bits.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// One to sixteen lower-case hex digits.
fn hex(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(digit))
    })
}

/// An argument: a decimal number, perhaps negative, or `0x` hex.
fn value(text: &[u8]) -> Option<Argument> {
    match text {
        [b'0', b'x', digits @ ..] => hex(digits).map(Argument::Hex),
        [b'-', digits @ ..] => {
            let number = decimal(digits)?;
            // -0 is never written, and -2^63 is the least there is.
            (1..=1 << 63).contains(&number).then(|| Argument::Negative((number as i64).wrapping_neg()))
        }
        digits => decimal(digits).map(Argument::Decimal),
    }
}

impl Record {
    /// Decodes one line, without its newline.
    ///
    /// # Errors
    /// A [`RecordError`] that names the first field that is not as the format has it. Numbers of events that the table
    /// does not know are no fault: programs record their own, and later versions add some.
    pub fn parse(line: &[u8]) -> Result<Record, RecordError> {
        let mut fields = Fields { rest: Some(line), next: 0 };
        let seconds = fields.fixed(10)?;
        let nanoseconds = fields.fixed(9)?;
        let lwpid = fields.fixed(7)? as u32;
        let pid = fields.fixed(7)? as u32;
        let tid = match fields.take()? {
            ([b'0', b'x', digits @ ..], field) if digits.len() >= 12 => hex(digits).ok_or(RecordError::Field(field))?,
            (_, field) if fields.rest.is_none() => return Err(RecordError::Short(field)),
            (_, field) => return Err(RecordError::Field(field)),
        };
        let event1 = fields.fixed(2)? as u8;
        let event2 = fields.fixed(2)? as u8;
        let which = match fields.fixed(1)? {
            which @ 0..=2 => which as u8,
            _ => return Err(RecordError::Field(7)),
        };
        let mut arguments = [Argument::Decimal(0); 5];
        for argument in &mut arguments {
            *argument = fields.value()?;
        }
        if fields.rest.is_some() {
            return Err(RecordError::Long);
        }
        // Ten digits of seconds times 10^9 stay below 2^64.
        Ok(Record { time: seconds * NANOS_PER_SECOND + nanoseconds, lwpid, pid, tid, event1, event2, which, arguments })
    }

    /// The event, if the table has it.
    pub fn event(&self) -> Option<&'static Event> {
        Event::find(self.event1, self.event2)
    }

    /// The row of `events.tsv` that says what the columns are, if there is one.
    pub fn kind(&self) -> Option<&'static RecordKind> {
        self.event()?.kind(self.which)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:-7:110:0";

    #[test]
    fn a_record_decodes() {
        let record = Record::parse(LINE).unwrap();
        assert_eq!(record.time, 1_795_174_740_544_763_329);
        assert_eq!((record.lwpid, record.pid, record.tid), (19955, 19953, 0x7fc5_de3f_86c0));
        assert_eq!((record.event1, record.event2, record.which), (2, 2, 1));
        let bits = record.arguments.map(Argument::bits);
        assert_eq!(bits, [0x5594_69ed_90a0, 0, -7i64 as u64, 110, 0]);
        assert_eq!(record.event().unwrap().name, "mutex_lock");
    }

    #[test]
    fn a_wider_tid_decodes() {
        let line = b"1795174740:544763329:0019955:0019953:0xff7fc5de3f86c0:02:02:1:0:0:0:0:0";
        assert_eq!(Record::parse(line).unwrap().tid, 0xff_7fc5_de3f_86c0);
    }

    #[test]
    fn every_prefix_is_a_fault() {
        // Within the last argument a prefix cannot be told from a shorter number; here it has one digit.
        for end in 0..LINE.len() {
            assert!(Record::parse(&LINE[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn every_changed_separator_is_a_fault() {
        for (index, &byte) in LINE.iter().enumerate() {
            if byte == b':' {
                let mut line = LINE.to_vec();
                line[index] = b';';
                assert!(Record::parse(&line).is_err(), "{index}");
            }
        }
    }

    #[test]
    fn what_follows_is_a_fault() {
        let mut line = LINE.to_vec();
        line.extend_from_slice(b":0");
        assert_eq!(Record::parse(&line), Err(RecordError::Long));
        line.truncate(LINE.len());
        line.push(b'\r');
        assert_eq!(Record::parse(&line), Err(RecordError::Field(12)));
    }
}
