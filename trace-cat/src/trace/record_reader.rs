//! Reads the records of a range of text one after the other, in bounded memory whatever the text holds.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memchr2};
use spec::RecordError;
use spec::record::RECORD_LEN_MAX;

use super::record_text::RecordText;
use crate::record::plain_records::MARGIN;
use crate::record::{columns, validation};

/// The least size of a buffer, bytes.
pub const BUFFER_MIN: usize = 4096;

const _: () = assert!(BUFFER_MIN > 2 * RECORD_LEN_MAX && BUFFER_MIN > 2 * MARGIN);

/// Why some bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextDamage {
    /// A line is not a record.
    Fault(RecordError),
    /// A line ends with CR LF.
    CarriageReturn,
    /// A line has this many bytes, more than any record.
    Long(u64),
    /// The text ends in the middle of a line.
    Torn,
    /// This many NUL bytes where a record should begin.
    Nuls(u64),
}

impl fmt::Display for TextDamage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextDamage::Fault(fault) => write!(out, "not a record: {fault}"),
            TextDamage::CarriageReturn => write!(out, "not a record: it ends with a carriage return"),
            TextDamage::Long(length) => write!(out, "not a record: {length} bytes long, {RECORD_LEN_MAX} are the most"),
            TextDamage::Torn => write!(out, "incomplete record"),
            TextDamage::Nuls(count) => write!(out, "{count} NUL bytes"),
        }
    }
}

/// What [`RecordReader::next`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordItem {
    /// A record with its printed time, nanoseconds since the Epoch; [`RecordReader::line`] has its bytes.
    Record { time: u64 },
    /// Bytes that are not a record.
    Damage(TextDamage),
}

/// A reader of one range of text.
pub struct RecordReader {
    /// The text that is read.
    pub text: Arc<RecordText>,
    buffer: Vec<u8>,
    /// The current line within `buffer`, its newline included.
    current: Range<usize>,
    /// The end of the unread bytes in `buffer`; they begin where `current` ends.
    filled: usize,
    /// The end of the last item in the text; the next item begins there or after a gap.
    pub position: u64,
    /// The end of the gapless stretch that is read.
    stretch_end: u64,
    /// The end of the range.
    range_end: u64,
    /// Beyond this, the buffer is filled by small reads.
    expected_end: u64,
    /// The beginning of the last item in the text.
    pub item_start: u64,
    /// The line number of the last item; 1 is the line where reading began.
    pub line_number: u64,
    next_line: u64,
    /// The last item ended with a newline, or none was read yet.
    pub at_line: bool,
}

impl RecordReader {
    /// Reads `range` of `text`, which begins where a line does, through `buffer`, whose length is its size.
    pub fn new(text: Arc<RecordText>, range: Range<u64>, mut buffer: Vec<u8>) -> RecordReader {
        buffer.resize(buffer.len().max(BUFFER_MIN), 0);
        RecordReader {
            text,
            buffer,
            current: 0..0,
            filled: 0,
            position: range.start,
            stretch_end: range.start,
            range_end: range.end,
            expected_end: range.end,
            item_start: range.start,
            line_number: 0,
            next_line: 1,
            at_line: true,
        }
    }

    /// Makes reads beyond `expected_end` small, since little of what is there will be used.
    pub fn expect_end(mut self, expected_end: u64) -> RecordReader {
        self.expected_end = expected_end;
        self
    }

    /// Gives the buffer back.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The current record with its newline.
    pub fn line(&self) -> &[u8] {
        &self.buffer[self.current.clone()]
    }

    /// How many lines have ended.
    pub fn lines(&self) -> u64 {
        self.next_line - 1
    }

    /// The bytes in the buffer that follow the last item.
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.current.end..self.filled]
    }

    /// Skips `lines` records, which are the first `bytes` unread bytes.
    pub fn skip(&mut self, bytes: usize, lines: u64) {
        self.advance(bytes.min(self.unread().len()));
        (self.line_number, self.at_line) = (self.next_line, true);
        self.next_line += lines;
    }

    /// Skips the complete lines in the buffer that are not needed; `true` if there was any. `unneeded` returns how many bytes of
    /// such lines the unread bytes begin with. The last ones are the current line then. They have no line numbers.
    pub fn skip_lines(&mut self, unneeded: impl Fn(&[u8]) -> usize) -> bool {
        let mut any = false;
        while let length @ 1.. = unneeded(self.unread()) {
            self.advance(length);
            any = true;
        }
        self.at_line |= any;
        any
    }

    /// Skips `count` unread bytes.
    fn advance(&mut self, count: usize) {
        self.current = self.current.end..self.current.end + count;
        self.position += count as u64;
    }

    /// Reads more bytes into the buffer; `false` if the stretch has no more, or the buffer is full.
    pub fn refill(&mut self) -> io::Result<bool> {
        let unread = self.unread().len();
        let from = self.position + unread as u64;
        let limit = self.stretch_end.min(self.range_end);
        let wanted = limit.min(self.expected_end.max(from + BUFFER_MIN as u64)).saturating_sub(from);
        if wanted == 0 {
            return Ok(false);
        }
        self.buffer.copy_within(self.current.end..self.filled, 0);
        (self.current, self.filled) = (0..0, unread);
        let room = (self.buffer.len() - unread).min(usize::try_from(wanted).unwrap_or(usize::MAX));
        let length = self.text.read_at(&mut self.buffer[unread..unread + room], from)?;
        self.filled += length;
        Ok(length > 0)
    }

    /// The next record or the next damage; `None` at the end.
    ///
    /// # Errors
    /// The failure to read. The reader does not advance then.
    pub fn next(&mut self) -> io::Result<Option<RecordItem>> {
        loop {
            if let Some(newline) = memchr(b'\n', self.unread()) {
                return self.complete_line(newline + 1).map(Some);
            }
            if self.unread().len() > RECORD_LEN_MAX {
                return self.damaged(None).map(Some);
            }
            if self.refill()? {
                continue;
            }
            if !self.unread().is_empty() {
                return self.damaged(None).map(Some);
            }
            match self.text.stretch(self.position).filter(|stretch| stretch.start < self.range_end) {
                Some(stretch) => (self.position, self.stretch_end) = (stretch.start, stretch.end),
                None => return Ok(None),
            }
        }
    }

    /// The item of the line that the unread bytes begin with, which has `length` bytes with its newline.
    fn complete_line(&mut self, length: usize) -> io::Result<RecordItem> {
        let line = &self.unread()[..length];
        if length > RECORD_LEN_MAX {
            return self.damaged(None);
        }
        match (validation::validate(&line[..length - 1]), columns::time(line)) {
            (Ok(()), Some(time)) => {
                (self.item_start, self.line_number) = (self.position, self.next_line);
                self.next_line += 1;
                self.at_line = true;
                self.advance(length);
                Ok(RecordItem::Record { time })
            }
            (fault, _) => self.damaged(Some(fault.err().unwrap_or(RecordError::Field(0)))),
        }
    }

    /// Skips bytes that are not a record: a run of NUL bytes, or a line up to its end or to the first NUL byte.
    fn damaged(&mut self, fault: Option<RecordError>) -> io::Result<RecordItem> {
        (self.item_start, self.line_number) = (self.position, self.next_line);
        if self.unread().first() == Some(&0) {
            return self.nuls();
        }
        let mut length = 0;
        let mut last = 0;
        loop {
            let unread = self.unread();
            let end = memchr2(b'\n', 0, unread);
            let count = end.unwrap_or(unread.len());
            last = if count > 0 { unread[count - 1] } else { last };
            let newline = end.is_some_and(|at| unread[at] == b'\n');
            self.advance(count + usize::from(newline));
            length += count as u64 + u64::from(newline);
            let damage = match (newline, end, fault) {
                (true, ..) if length > RECORD_LEN_MAX as u64 => TextDamage::Long(length),
                (true, ..) if last == b'\r' => TextDamage::CarriageReturn,
                (true, _, Some(fault)) => TextDamage::Fault(fault),
                // A line without a fault is one whose newline was not in the buffer, so it is long.
                (true, _, None) => TextDamage::Long(length),
                (false, Some(_), _) => TextDamage::Torn,
                (false, None, _) if self.refill()? => continue,
                (false, None, _) if length > RECORD_LEN_MAX as u64 => TextDamage::Long(length),
                (false, None, _) => TextDamage::Torn,
            };
            self.next_line += u64::from(newline);
            self.at_line = newline;
            return Ok(RecordItem::Damage(damage));
        }
    }

    /// Skips a run of NUL bytes.
    fn nuls(&mut self) -> io::Result<RecordItem> {
        self.at_line = false;
        let mut total = 0;
        loop {
            let count = self.unread().iter().position(|&byte| byte != 0);
            let run = count.unwrap_or(self.unread().len());
            self.advance(run);
            total += run as u64;
            if count.is_some() || !self.refill()? {
                return Ok(RecordItem::Damage(TextDamage::Nuls(total)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::{SeededRandom, fuzz_time};
    use crate::testing::test_trace::text_of;
    use std::time::Instant;

    const LINE: &str = "1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n";

    /// Every item as text: the line number, and `ok` for the record [`LINE`] or the damage.
    fn items(bytes: &[u8]) -> Vec<String> {
        let (_trace, text) = text_of(bytes);
        let mut records = RecordReader::new(text, 0..bytes.len() as u64, Vec::new());
        let mut items = Vec::new();
        while let Some(item) = records.next().unwrap() {
            items.push(match item {
                RecordItem::Record { time } => {
                    assert_eq!(columns::time(records.line()), Some(time));
                    format!("{}: {}", records.line_number, if records.line() == LINE.as_bytes() { "ok" } else { "?" })
                }
                RecordItem::Damage(what) => format!("{}: {what}", records.line_number),
            });
        }
        items
    }

    #[test]
    fn damage_is_reported_by_line_and_skipped() {
        let long = "x".repeat(100_000);
        let crlf = LINE.replace('\n', "\r\n");
        let torn = &LINE[..40];
        for (bytes, expected) in [
            (String::new(), vec![]),
            (LINE.repeat(2), vec!["1: ok", "2: ok"]),
            (format!("\n{LINE}"), vec!["1: not a record: the line ends in time1", "2: ok"]),
            (format!("{LINE}{torn}"), vec!["1: ok", "2: incomplete record"]),
            (format!("{crlf}{LINE}"), vec!["1: not a record: it ends with a carriage return", "2: ok"]),
            (format!("{long}\n{LINE}"), vec!["1: not a record: 100001 bytes long, 169 are the most", "2: ok"]),
            (format!("{LINE}{long}"), vec!["1: ok", "2: not a record: 100000 bytes long, 169 are the most"]),
            (format!("{}\n{LINE}", &long[..200]), vec!["1: not a record: 201 bytes long, 169 are the most", "2: ok"]),
            (format!("{}{LINE}", "\0".repeat(9999)), vec!["1: 9999 NUL bytes", "1: ok"]),
            (format!("{torn}\0\0{LINE}{LINE}"), vec!["1: incomplete record", "1: 2 NUL bytes", "1: ok", "2: ok"]),
            (format!("{long}\0{LINE}"), vec!["1: incomplete record", "1: 1 NUL bytes", "1: ok"]),
            (format!("{LINE}\0"), vec!["1: ok", "2: 1 NUL bytes"]),
            (format!("{torn}{LINE}{LINE}"), vec!["1: not a record: tid is not valid", "2: ok"]),
        ] {
            assert_eq!(items(bytes.as_bytes()), expected, "{:.100}", bytes.escape_debug());
        }
    }

    #[test]
    fn records_that_straddle_buffers_are_complete() {
        let bytes = LINE.repeat(1000);
        assert!(items(bytes.as_bytes()).iter().enumerate().all(|(index, item)| *item == format!("{}: ok", index + 1)));
        assert_eq!(items(bytes.as_bytes()).len(), 1000);
    }

    #[test]
    fn mutated_text_never_panics_and_loses_no_byte() {
        let mut random = SeededRandom::seeded("records", 2);
        let until = fuzz_time();
        let mut round = 0;
        while round < 300 || until.is_some_and(|end| Instant::now() < end) {
            round += 1;
            let mut bytes = LINE.repeat(1 + random.below(90)).into_bytes();
            for _ in 0..random.below(6) {
                random.mutate(&mut bytes, b"\n\r\0:0x1");
            }
            let (_trace, text) = text_of(&bytes);
            let mut records = RecordReader::new(text, 0..bytes.len() as u64, Vec::new());
            let mut at = 0;
            while let Some(item) = records.next().unwrap() {
                assert_eq!(records.item_start, at);
                if let RecordItem::Record { .. } = item {
                    let line = records.line();
                    assert_eq!(line, &bytes[at as usize..][..line.len()]);
                    assert!(spec::Record::parse(&line[..line.len() - 1]).is_ok());
                }
                at = records.position;
                assert_eq!(records.at_line, at == 0 || bytes[at as usize - 1] == b'\n');
            }
            assert_eq!(at, bytes.len() as u64);
            assert_eq!(records.lines(), bytes.iter().filter(|&&byte| byte == b'\n').count() as u64);
        }
    }
}
