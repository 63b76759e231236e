//! A record, decoded from its line.

use super::columns::{
    EVENT_WIDTH, FIELDS, HEX_DIGITS_MAX, LWPID_WIDTH, NANOS_PER_SECOND, PID_WIDTH, TID_WIDTH, TIME1_WIDTH, TIME2_WIDTH,
};
use crate::digits::hex_value;
use crate::tables::{Event, RecordKind};

/// The value of an argument, in the base that its text has.
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
    /// Decodes the text of an argument; `None` if it is not one that [`FIELDS`] allows.
    pub fn parse(text: &[u8]) -> Option<Argument> {
        match text {
            [b'0', b'x', digits @ ..] => hex(digits).map(Argument::Hex),
            [b'-', digits @ ..] => {
                let number = decimal(digits)?;
                // -0 is never written, and -2^63 is the least number.
                (1..=1 << 63).contains(&number).then(|| Argument::Negative((number as i64).wrapping_neg()))
            }
            digits => decimal(digits).map(Argument::Decimal),
        }
    }

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
    /// The category.
    pub event1: u8,
    /// The event's number within the category.
    pub event2: u8,
    /// 0 for the only record of a call, 1 for the first of two, 2 for the second.
    pub which: u8,
    /// a1 to a5.
    pub arguments: [Argument; 5],
}

/// What is wrong with a line that is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The line ends within this field (0 is time1, 12 is a5).
    Short(u8),
    /// The text of this field is not one that [`FIELDS`] allows.
    Field(u8),
    /// Something follows the thirteenth field.
    Long,
}

impl core::fmt::Display for RecordError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name = |field: u8| FIELDS.get(usize::from(field)).map_or("?", |field| field.name);
        match *self {
            RecordError::Short(field) => write!(out, "the line ends in {}", name(field)),
            RecordError::Field(field) => write!(out, "{} is not valid", name(field)),
            RecordError::Long => write!(out, "something follows a5"),
        }
    }
}

/// Reads the fields of a line one after the other.
struct FieldReader<'a> {
    /// What follows the last field and its colon; `None` after the last field of the line.
    remaining: Option<&'a [u8]>,
    /// The index of the next field.
    next: u8,
}

impl<'a> FieldReader<'a> {
    /// The text of the next field, up to the next colon or the end of the line, and the field's index.
    fn text(&mut self) -> Result<(&'a [u8], u8), RecordError> {
        let field = self.next;
        self.next += 1;
        let remaining = self.remaining.ok_or(RecordError::Short(field))?;
        let mut split = remaining.splitn(2, |&byte| byte == b':');
        let text = split.next().unwrap_or(remaining);
        self.remaining = split.next();
        Ok((text, field))
    }

    /// What is wrong with a field whose text is not valid: the line may end in it.
    fn error(&self, field: u8, is_too_short: bool) -> RecordError {
        if is_too_short && self.remaining.is_none() { RecordError::Short(field) } else { RecordError::Field(field) }
    }

    /// A decimal number of exactly `width` digits.
    fn decimal(&mut self, width: usize) -> Result<u64, RecordError> {
        let (text, field) = self.text()?;
        decimal(text).filter(|_| text.len() == width).ok_or(self.error(field, text.len() < width))
    }

    fn thread_id(&mut self) -> Result<u64, RecordError> {
        let (text, field) = self.text()?;
        match text {
            [b'0', b'x', digits @ ..] if text.len() >= TID_WIDTH => hex(digits).ok_or(RecordError::Field(field)),
            _ => Err(self.error(field, true)),
        }
    }

    /// A number from 0 to 2.
    fn which(&mut self) -> Result<u8, RecordError> {
        let field = self.next;
        match self.decimal(1)? {
            which @ 0..=2 => Ok(which as u8),
            _ => Err(RecordError::Field(field)),
        }
    }

    fn argument(&mut self) -> Result<Argument, RecordError> {
        let (text, field) = self.text()?;
        Argument::parse(text).ok_or(self.error(field, text.is_empty()))
    }
}

/// One or more decimal digits whose number fits 64 bits.
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

/// One to [`HEX_DIGITS_MAX`] lower-case hex digits.
fn hex(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > HEX_DIGITS_MAX {
        return None;
    }
    text.iter().try_fold(0, |number, &digit| Some(number << 4 | u64::from(hex_value(digit)?)))
}

impl Record {
    /// Decodes one line, without its newline.
    ///
    /// # Errors
    /// A [`RecordError`] that names the first field that is not valid. Events that the table does not have are valid:
    /// programs record their own, and later versions add some.
    pub fn parse(line: &[u8]) -> Result<Record, RecordError> {
        let mut fields = FieldReader { remaining: Some(line), next: 0 };
        let seconds = fields.decimal(TIME1_WIDTH)?;
        let nanoseconds = fields.decimal(TIME2_WIDTH)?;
        let record = Record {
            // Ten digits of seconds times 10^9 stay below 2^64.
            time: seconds * NANOS_PER_SECOND + nanoseconds,
            lwpid: fields.decimal(LWPID_WIDTH)? as u32,
            pid: fields.decimal(PID_WIDTH)? as u32,
            tid: fields.thread_id()?,
            event1: fields.decimal(EVENT_WIDTH)? as u8,
            event2: fields.decimal(EVENT_WIDTH)? as u8,
            which: fields.which()?,
            arguments: [
                fields.argument()?,
                fields.argument()?,
                fields.argument()?,
                fields.argument()?,
                fields.argument()?,
            ],
        };
        if fields.remaining.is_some() { Err(RecordError::Long) } else { Ok(record) }
    }

    /// The event, if the table has it.
    pub fn event(&self) -> Option<&'static Event> {
        Event::find(self.event1, self.event2)
    }

    /// The record kind, which describes the columns, if the table has it.
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
    fn every_prefix_is_an_error() {
        // A prefix that ends within the last argument could be a shorter number; here that argument has one digit.
        for end in 0..LINE.len() {
            assert!(Record::parse(&LINE[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn every_changed_separator_is_an_error() {
        for (index, &byte) in LINE.iter().enumerate() {
            if byte == b':' {
                let mut line = LINE.to_vec();
                line[index] = b';';
                assert!(Record::parse(&line).is_err(), "{index}");
            }
        }
    }

    #[test]
    fn text_after_the_last_field_is_an_error() {
        let mut line = LINE.to_vec();
        line.extend_from_slice(b":0");
        assert_eq!(Record::parse(&line), Err(RecordError::Long));
        line.truncate(LINE.len());
        line.push(b'\r');
        assert_eq!(Record::parse(&line), Err(RecordError::Field(12)));
    }
}
