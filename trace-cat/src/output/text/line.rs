//! One line: its columns and colours.

use super::kind_layout::KindLayout;
use super::line_plan::LineLabel;
use super::short_text::ShortText;
use super::time_column::TimeColumn;
use crate::output::terminal_style;
use crate::output::terminal_style::Highlight;
use crate::record::errno_names::errno;
use crate::record::fields::{Fields, bits};
use crate::support::duration::write_duration;

/// Where things begin, in columns, when what stands before them is not too wide.
const RESULT_AT: usize = 70;
const TOOK_END: usize = 92;
/// As many spaces as are usually wanted at once, and some more.
const SPACES: [u8; 64] = [b' '; 64];

/// What stands before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMarker {
    /// It is shown whole.
    None,
    /// It begins here.
    Begins,
    /// It began before.
    Returns,
}

/// A line being written.
pub struct TextLine<'a> {
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

impl<'a> TextLine<'a> {
    /// A line for a record of the time `now`, behind what is in `out`, up to the call. The date stands before it, if that is to
    /// be told.
    pub fn new(
        coloured: bool,
        now: u64,
        clock: &mut TimeColumn,
        who: LineLabel,
        mark: CallMarker,
        out: &'a mut Vec<u8>,
    ) -> TextLine<'a> {
        clock.date(now, out);
        let start = out.len();
        let mut line = TextLine { out, now, coloured, start, hidden: 0, wide: 0 };
        line.begin(Highlight::Time);
        line.wide = clock.put(now, line.out);
        line.finish();
        line.put(who.text);
        line.hidden += who.hidden;
        line.put(match mark {
            CallMarker::None => b"   ",
            CallMarker::Begins => b" > ",
            CallMarker::Returns => b" < ",
        });
        line
    }

    /// What the call returned.
    pub fn result(&mut self, form: Option<&KindLayout>, fields: &Fields) {
        let Some(index) = form.and_then(|form| form.result) else { return };
        let text = fields.argument(index);
        self.pad_to(RESULT_AT);
        if text == b"0" {
            return self.put(b"= 0");
        }
        self.put(b"= ");
        match errno(bits(text)) {
            Some(name) => self.coloured(Highlight::Error, name.as_bytes()),
            None => self.put(text),
        }
    }

    /// How long it took, in nanoseconds.
    pub fn took(&mut self, nanoseconds: Option<u64>) {
        let Some(nanoseconds) = nanoseconds else { return };
        let mut text = [0; 24];
        let length = write_duration(nanoseconds, &mut text);
        self.pad_to(TOOK_END - length);
        self.put(&text[..length]);
    }

    /// What the answers say that say yes.
    pub fn answers(&mut self, form: Option<&KindLayout>, fields: &Fields) {
        for (index, answer) in form.map_or(&[][..], |form| &form.answers) {
            if fields.argument(*index) != b"0" {
                self.pad_to(TOOK_END + 1);
                self.coloured(Highlight::Wait, answer.bytes());
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

    pub(super) fn short(&mut self, short: &ShortText) {
        let end = self.out.len() + short.length();
        self.out.extend_from_slice(short.padded());
        self.out.truncate(end);
    }

    pub(super) fn coloured(&mut self, part: Highlight, text: &[u8]) {
        self.begin(part);
        self.put(text);
        self.finish();
    }

    pub(super) fn begin(&mut self, part: Highlight) {
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
