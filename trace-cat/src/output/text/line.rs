//! One line: its columns and colours.

use super::kind_layout::Form;
use super::line_plan::Who;
use super::time_column::Clock;
use crate::output::terminal_style;
use crate::output::terminal_style::Part;
use crate::record::errno_names::errno;
use crate::record::fields::{Fields, bits};

/// Where things begin, in columns, when what stands before them is not too wide.
const RESULT_AT: usize = 70;
const TOOK_END: usize = 92;
/// As many spaces as are usually wanted at once, and some more.
const SPACES: [u8; 64] = [b' '; 64];

/// What stands before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is shown whole.
    None,
    /// It begins here.
    Begins,
    /// It began before.
    Returns,
}

/// A text that is put often. It has a fixed length behind which it is cut off, so that it is copied without a call.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    text: [u8; 32],
    length: u8,
}

impl Short {
    /// A text of up to 32 bytes; more are left out.
    pub fn new(text: &str) -> Short {
        Short::join(&[text])
    }

    /// What stands before an argument that is not the first: `, name=`.
    pub fn label(name: &str) -> Short {
        Short::join(&[", ", name, "="])
    }

    fn join(parts: &[&str]) -> Short {
        let (mut text, mut length) = ([0; 32], 0);
        for (place, byte) in text.iter_mut().zip(parts.iter().flat_map(|part| part.bytes())) {
            (*place, length) = (byte, length + 1);
        }
        Short { text, length }
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.text[..self.length()]
    }

    /// How many bytes it has.
    pub fn length(&self) -> usize {
        usize::from(self.length)
    }
}

/// A line being written.
pub struct Line<'a> {
    pub(super) out: &'a mut Vec<u8>,
    /// The record's time.
    pub(super) now: u64,
    coloured: bool,
    /// Where the line begins in `out`.
    start: usize,
    /// Bytes of it that take no column.
    hidden: usize,
    /// Columns of the time beyond what it usually takes.
    wide: usize,
}

impl<'a> Line<'a> {
    /// A line for a record of the time `now`, behind what is in `out`, up to the call. The date stands before it, if that is to
    /// be told.
    pub fn new(coloured: bool, now: u64, clock: &mut Clock, who: Who, mark: Mark, out: &'a mut Vec<u8>) -> Line<'a> {
        clock.date(now, out);
        let start = out.len();
        let mut line = Line { out, now, coloured, start, hidden: 0, wide: 0 };
        line.begin(Part::Time);
        line.wide = clock.put(now, line.out);
        line.finish();
        line.put(who.text);
        line.hidden += who.hidden;
        line.put(match mark {
            Mark::None => b"   ",
            Mark::Begins => b" > ",
            Mark::Returns => b" < ",
        });
        line
    }

    /// What the call returned.
    pub fn result(&mut self, form: Option<&Form>, fields: &Fields) {
        let Some(index) = form.and_then(|form| form.result) else { return };
        let text = fields.argument(index);
        self.pad_to(RESULT_AT);
        if text == b"0" {
            return self.put(b"= 0");
        }
        self.put(b"= ");
        match bits(text).and_then(errno) {
            Some(name) => self.coloured(Part::Error, name.as_bytes()),
            None => self.put(text),
        }
    }

    /// How long it took, in nanoseconds.
    pub fn took(&mut self, nanoseconds: Option<u64>) {
        let Some(nanoseconds) = nanoseconds else { return };
        let mut text = [0; 24];
        let length = duration(nanoseconds, &mut text);
        self.pad_to(TOOK_END - length);
        self.put(&text[..length]);
    }

    /// What the answers say that say yes.
    pub fn answers(&mut self, form: Option<&Form>, fields: &Fields) {
        for (index, answer) in form.map_or(&[][..], |form| &form.answers) {
            if fields.argument(*index) != b"0" {
                self.pad_to(TOOK_END + 1);
                self.coloured(Part::Wait, answer.bytes());
            }
        }
    }

    /// Ends the line.
    pub fn end(&mut self) {
        self.put(b"\n");
    }

    #[inline(always)]
    pub(super) fn put(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    pub(super) fn short(&mut self, short: &Short) {
        let end = self.out.len() + short.length();
        self.out.extend_from_slice(&short.text);
        self.out.truncate(end);
    }

    pub(super) fn coloured(&mut self, part: Part, text: &[u8]) {
        self.begin(part);
        self.put(text);
        self.finish();
    }

    pub(super) fn begin(&mut self, part: Part) {
        if self.coloured {
            self.put(part.begin());
            self.hidden += part.begin().len();
        }
    }

    pub(super) fn finish(&mut self) {
        if self.coloured {
            self.put(terminal_style::END);
            self.hidden += terminal_style::END.len();
        }
    }

    /// The columns that it takes so far.
    pub fn width(&self) -> usize {
        self.out.len() - self.start - self.hidden
    }

    /// The same, whatever the time takes.
    pub fn usual_width(&self) -> usize {
        self.width() - self.wide
    }

    /// Fills with spaces up to a column, with one at least.
    fn pad_to(&mut self, column: usize) {
        let count = column.saturating_sub(self.width()).max(1);
        let end = self.out.len() + count;
        // A fixed number needs no call.
        self.out.extend_from_slice(&SPACES);
        self.out.resize(end, b' ');
    }
}

/// Writes a duration with the unit that leaves one to three digits before the point; returns its length.
pub fn duration(nanoseconds: u64, text: &mut [u8; 24]) -> usize {
    let (unit, name): (u64, &[u8]) = match nanoseconds {
        0..1_000 => (1, b" ns"),
        1_000..1_000_000 => (1_000, b" us"),
        1_000_000..1_000_000_000 => (1_000_000, b" ms"),
        _ => (1_000_000_000, b" s"),
    };
    let mut digits = itoa::Buffer::new();
    let whole = digits.format(nanoseconds / unit).as_bytes();
    let mut length = 0;
    let mut put = |part: &[u8]| {
        text[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    };
    put(whole);
    if unit > 1 {
        let thousandths = (nanoseconds % unit * 1000 / unit) as u16;
        put(b".");
        put(&[100, 10, 1].map(|place| b'0' + (thousandths / place % 10) as u8));
    }
    put(name);
    length
}
