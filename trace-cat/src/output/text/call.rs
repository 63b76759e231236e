//! A call: the event's name, and its arguments.

use spec::record::NANOS_PER_SECOND;

use super::kind_layout::{CALLER, ColumnLayout, KindLayout};
use super::known_threads::ArgumentText;
use super::line::TextLine;
use super::short_text::ShortText;
use crate::output::terminal_style::Highlight;
use crate::record::errno_names::errno;
use crate::record::fields::{Fields, bits};
use crate::record::record_kinds;
use crate::record::signal_names::signal;
use crate::support::duration::write_duration;

/// A time limit that is further away than this, in nanoseconds, is not on the wall clock.
const FAR: u64 = 366 * 24 * 3600 * NANOS_PER_SECOND;

impl TextLine<'_> {
    /// Opens the call of a form that is in the table; returns where its arguments begin.
    fn open(&mut self, form: &KindLayout) -> usize {
        self.begin(Highlight::Event);
        self.short(&form.name);
        self.finish();
        self.put(b"(");
        self.out.len()
    }

    /// The name and the arguments: those of the record, and those of the call's second record if that is known too.
    pub fn call(&mut self, form: Option<&KindLayout>, fields: &Fields, second: Option<(&KindLayout, &Fields)>) {
        let Some(form) = form else { return self.unknown(fields) };
        let open = self.open(form);
        self.arguments(open, &form.arguments, fields);
        if let Some((form, fields)) = second {
            self.arguments(open, &form.more, fields);
        }
        self.put(b")");
    }

    /// The name and the arguments of a record that ends a call, and what the call's first record was about.
    pub fn returned(&mut self, form: Option<&KindLayout>, fields: &Fields, object: Option<&ArgumentText>) {
        let Some(form) = form else { return self.unknown(fields) };
        let open = self.open(form);
        if let Some(object) = object.filter(|_| form.lacks_object) {
            self.put(object.bytes());
        }
        self.arguments(open, &form.arguments, fields);
        self.put(b")");
    }

    /// What the table does not know is shown as it is, without the zeros behind it.
    fn unknown(&mut self, fields: &Fields) {
        self.coloured(Highlight::Event, &record_kinds::name(fields));
        self.put(b"(");
        let open = self.out.len();
        let count = fields.arguments().iter().rposition(|text| *text != b"0").map_or(0, |last| last + 1);
        for text in &fields.arguments()[..count] {
            self.separate(open);
            self.put(text);
        }
        self.put(b")");
    }

    /// The arguments of one record.
    fn arguments(&mut self, open: usize, shown: &[ColumnLayout; 5], fields: &Fields) {
        for (index, show) in shown.iter().enumerate() {
            if matches!(show, ColumnLayout::Nothing) {
                continue;
            }
            let text = fields.argument(index);
            match show {
                ColumnLayout::Nothing => {}
                ColumnLayout::Value => {
                    self.separate(open);
                    self.put(text);
                }
                ColumnLayout::Object(_) if self.out.len() == open => self.put(text),
                ColumnLayout::Unusual(_) if text == b"0" => {}
                ColumnLayout::Object(label) | ColumnLayout::Labelled(label) | ColumnLayout::Unusual(label) => {
                    self.label(open, label);
                    self.put(text);
                }
                ColumnLayout::Name => {
                    let halves = [text, next(fields, index)];
                    let name = halves.map(|text| bits(text).to_be_bytes()).concat();
                    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                    self.label(open, &ShortText::label("name"));
                    self.put(format!("\"{}\"", name[..length].escape_ascii()).as_bytes());
                }
                ColumnLayout::LimitParts => {
                    let nanoseconds = bits(next(fields, index));
                    let limit = bits(text).saturating_mul(NANOS_PER_SECOND).saturating_add(nanoseconds);
                    self.limit(open, limit);
                }
                ColumnLayout::Limit => self.limit(open, bits(text)),
                ColumnLayout::Signal(label) => self.named(open, label, text, signal),
                ColumnLayout::Errno(label) => self.named(open, label, text, errno),
            }
        }
    }

    /// Where the call was made, if the record tells (THR_TRACE_DETAIL).
    pub fn caller(&mut self, form: Option<&KindLayout>, fields: &Fields) {
        if form.is_some_and(|form| form.has_caller) {
            let text = fields.argument(CALLER);
            if text != b"0" {
                self.put(b" from ");
                self.put(text);
            }
        }
    }

    fn separate(&mut self, open: usize) {
        if self.out.len() > open {
            self.put(b", ");
        }
    }

    fn label(&mut self, open: usize, label: &ShortText) {
        // The comma and the space only stand between arguments.
        self.short(label);
        if self.out.len() == open + label.length() {
            self.out.drain(open..open + 2);
        }
    }

    fn named(&mut self, open: usize, label: &ShortText, text: &[u8], name: fn(u64) -> Option<&'static str>) {
        self.label(open, label);
        self.put(name(bits(text)).map_or(text, str::as_bytes));
    }

    /// A time limit, from the record's time if it is on the wall clock, else as it is.
    fn limit(&mut self, open: usize, limit: u64) {
        self.label(open, &ShortText::label("limit"));
        let distance = limit.abs_diff(self.now);
        if distance < FAR {
            let mut text = [0; 24];
            let length = write_duration(distance, &mut text);
            self.put(if limit < self.now { b"-" } else { b"+" });
            self.put(&text[..length]);
        } else {
            // Of another clock, to the microsecond: all digits would not fit the line.
            let text = format!("{}.{:06}", limit / NANOS_PER_SECOND, limit % NANOS_PER_SECOND / 1000);
            self.put(text.as_bytes());
        }
    }
}

/// The column behind one.
fn next<'a>(fields: &Fields<'a>, index: usize) -> &'a [u8] {
    if index < 4 { fields.argument(index + 1) } else { b"" }
}
