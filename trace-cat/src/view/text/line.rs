//! One line: its columns and colours.

use super::clock::Clock;
use super::threads::Label;
use crate::names;
use crate::view::event::Table;
use crate::view::fields::{Fields, bits};
use crate::view::style::{self, Part};

/// Where things begin, in columns, when what stands before them is not too wide.
const RESULT_AT: usize = 70;
const TOOK_END: usize = 92;

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

/// A line being written.
pub struct Line<'a> {
    pub(super) events: &'a Table,
    pub(super) out: &'a mut Vec<u8>,
    /// The record's time.
    pub(super) now: u64,
    coloured: bool,
    /// Where the line begins in `out`.
    start: usize,
    /// Bytes of it that take no column.
    hidden: usize,
}

impl<'a> Line<'a> {
    /// A line for a record of that time, behind what is in `out`.
    pub fn new(events: &'a Table, coloured: bool, now: u64, out: &'a mut Vec<u8>) -> Line<'a> {
        let start = out.len();
        Line { events, out, now, coloured, start, hidden: 0 }
    }

    /// The time, and before it the date if that is to be told.
    pub fn time(&mut self, clock: &mut Clock) {
        clock.date(self.now, self.out);
        self.start = self.out.len();
        self.begin(Part::Time);
        clock.put(self.now, self.out);
        self.finish();
    }

    /// The thread in a column of that width, and the mark.
    pub fn thread(&mut self, label: &Label, width: usize, number: usize, mark: Mark) {
        self.put(b" ");
        self.begin(Part::Thread(number));
        self.put(label.text.as_bytes());
        self.hidden += label.text.len() - label.width;
        self.finish();
        let mark: &[u8] = match mark {
            Mark::None => b"   ",
            Mark::Begins => b" > ",
            Mark::Returns => b" < ",
        };
        self.out.resize(self.out.len() + width - label.width.min(width), b' ');
        self.put(mark);
    }

    /// What the call returned.
    pub fn result(&mut self, fields: &Fields) {
        let Some(known) = self.events.find(fields) else { return };
        let index = known.columns.iter().position(|column| column.is_some_and(|column| column.name == "rval"));
        let Some(index) = index else { return };
        let text = fields.argument(index);
        self.pad_to(RESULT_AT);
        self.put(b"= ");
        if text == b"0" {
            return self.put(text);
        }
        match bits(text).and_then(names::errno) {
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
    pub fn answers(&mut self, fields: &Fields) {
        let Some(known) = self.events.find(fields) else { return };
        for (column, text) in known.columns.iter().zip(fields.arguments()) {
            let Some(question) = column.and_then(|column| column.name.strip_suffix('?')) else { continue };
            if text != b"0" {
                self.pad_to(TOOK_END + 1);
                self.coloured(Part::Wait, if question == "block" { b"blocked" } else { question.as_bytes() });
            }
        }
    }

    /// Ends the line.
    pub fn end(&mut self) {
        self.put(b"\n");
    }

    pub(super) fn put(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    pub(super) fn coloured(&mut self, part: Part, text: &[u8]) {
        self.begin(part);
        self.put(text);
        self.finish();
    }

    fn begin(&mut self, part: Part) {
        if self.coloured {
            self.put(part.begin());
            self.hidden += part.begin().len();
        }
    }

    fn finish(&mut self) {
        if self.coloured {
            self.put(style::END);
            self.hidden += style::END.len();
        }
    }

    /// The columns that it takes so far.
    pub fn width(&self) -> usize {
        self.out.len() - self.start - self.hidden
    }

    /// Fills with spaces up to a column, with one at least.
    fn pad_to(&mut self, column: usize) {
        let count = column.saturating_sub(self.width()).max(1);
        self.out.resize(self.out.len() + count, b' ');
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
