//! One line of `-F text`: its columns and colours.

use super::kind_layout::KindLayout;
use super::line_names::LineNames;
use super::line_plan::LineLabel;
use super::short_text::ShortText;
use super::time_column::TimeColumn;
use crate::calls::process_ends::{OpenReason, OpenUntil};
use crate::output::terminal_style::{self, Highlight};
use crate::record::errno_names::errno;
use crate::record::fields::{Fields, bits};
use crate::support::duration::write_duration;

/// The column of the result, if the call is not wider.
const RESULT_COLUMN: usize = 70;
/// The column after the duration, if the texts before it are not wider.
const DURATION_END: usize = 92;
/// More spaces than are usually added at once.
const SPACES: [u8; 64] = [b' '; 64];

/// How far what is in a span or a function is indented, and in how many at most.
const INDENTATION: u32 = 2;
const DEPTH_MAX: u32 = 20;

/// The marker before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMarker {
    /// The line has the complete call.
    None,
    /// `>`: the call begins.
    Begins,
    /// `<`: the call returns.
    Returns,
}

/// A line in progress.
pub struct TextLine<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) names: &'a LineNames,
    pub(super) time: u64,
    coloured: bool,
    /// Where the line begins in `out`.
    start: usize,
    /// Bytes of the line that take no column.
    hidden: usize,
    /// How many columns more than usual the time takes, and the indentation.
    extra_width: usize,
}

impl<'a> TextLine<'a> {
    /// Appends the beginning of a line for a record of this `time`, up to the call. A line with the date comes before it, if
    /// the time column wants one.
    pub fn new(
        coloured: bool,
        names: &'a LineNames,
        time: u64,
        clock: &mut TimeColumn,
        label: LineLabel,
        marker: CallMarker,
        out: &'a mut Vec<u8>,
    ) -> TextLine<'a> {
        clock.put_date(time, out);
        let start = out.len();
        let mut line = TextLine { out, names, time, coloured, start, hidden: 0, extra_width: 0 };
        line.begin_colour(Highlight::Time);
        line.extra_width = clock.put_time(time, line.out);
        line.end_colour();
        line.put(if label.is_uncertain { b"~" } else { b" " });
        line.put(label.text);
        line.hidden += label.hidden;
        if label.depth > 0 {
            let indentation = (label.depth.min(DEPTH_MAX) * INDENTATION) as usize;
            line.put(&SPACES[..indentation]);
            line.extra_width += indentation;
        }
        line.put(match marker {
            CallMarker::None => b"   ",
            CallMarker::Begins => b" > ",
            CallMarker::Returns => b" < ",
        });
        line
    }

    /// Appends the result of the call.
    pub fn put_result(&mut self, kind: Option<&KindLayout>, fields: &Fields) {
        let Some([result, error]) = kind.and_then(|kind| kind.result) else { return };
        let error = fields.argument(error);
        self.pad_to(RESULT_COLUMN);
        self.put(b"= ");
        match errno(bits(error)).filter(|_| error != b"0") {
            Some(name) => self.put_coloured(Highlight::Error, name.as_bytes()),
            None => self.put(fields.argument(result)),
        }
    }

    /// Appends that the call does not return, how long it lasted at least, and why.
    pub fn put_open(&mut self, until: OpenUntil) {
        self.pad_to(RESULT_COLUMN);
        self.put(b"open");
        self.put_duration(Some(until.time.saturating_sub(self.time)));
        self.pad_to(DURATION_END + 1);
        let reason: &[u8] = match until.reason {
            OpenReason::Ended => b"at end",
            OpenReason::Runs => b"running",
            OpenReason::LastSeen => b"or more",
            OpenReason::CutOff => b"cut off",
        };
        self.put_coloured(Highlight::Wait, reason);
    }

    /// Appends how long the call took, if that is known.
    pub fn put_duration(&mut self, nanoseconds: Option<u64>) {
        let Some(nanoseconds) = nanoseconds else { return };
        let mut text = [0; 24];
        let length = write_duration(nanoseconds, &mut text);
        self.pad_to(DURATION_END - length);
        self.put(&text[..length]);
    }

    /// Appends the answers: a text for each column that is a question (its name ends in `?`) and is not 0.
    pub fn put_answers(&mut self, kind: Option<&KindLayout>, fields: &Fields) {
        for (index, answer) in kind.map_or(&[][..], |kind| &kind.answers) {
            if fields.argument(*index) != b"0" {
                self.pad_to(DURATION_END + 1);
                self.put_coloured(Highlight::Wait, answer.bytes());
            }
        }
    }

    pub fn end_line(&mut self) {
        self.put(b"\n");
    }

    #[inline(always)]
    pub(super) fn put(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    pub(super) fn put_short(&mut self, short: &ShortText) {
        let end = self.out.len() + short.length();
        self.out.extend_from_slice(short.padded());
        self.out.truncate(end);
    }

    pub(super) fn put_coloured(&mut self, highlight: Highlight, text: &[u8]) {
        self.begin_colour(highlight);
        self.put(text);
        self.end_colour();
    }

    pub(super) fn begin_colour(&mut self, highlight: Highlight) {
        if self.coloured {
            self.put(highlight.begin());
            self.hidden += highlight.begin().len();
        }
    }

    pub(super) fn end_colour(&mut self) {
        if self.coloured {
            self.put(terminal_style::END);
            self.hidden += terminal_style::END.len();
        }
    }

    /// Columns of the line so far.
    fn width(&self) -> usize {
        self.out.len() - self.start - self.hidden
    }

    /// Columns of the line so far if the time took no more than usual and nothing was indented.
    pub fn usual_width(&self) -> usize {
        self.width() - self.extra_width
    }

    /// Appends spaces up to a column, at least one.
    fn pad_to(&mut self, column: usize) {
        let count = column.saturating_sub(self.width()).max(1);
        let end = self.out.len() + count;
        // A fixed number of bytes is copied without a call.
        self.out.extend_from_slice(&SPACES);
        self.out.resize(end, b' ');
    }
}
