//! A call in a line of `-F text`: the event's name and the arguments.

use spec::Event;
use spec::record::NANOS_PER_SECOND;

use super::kind_layout::{CALLER, ColumnLayout, KindLayout};
use super::known_threads::name_bytes;
use super::line::TextLine;
use super::short_text::ShortText;
use crate::output::terminal_style::Highlight;
use crate::record::errno_names::errno;
use crate::record::fields::{Fields, bits};
use crate::record::futex_operations::operation_name;
use crate::record::record_kinds;
use crate::record::signal_names::signal;
use crate::support::duration::write_duration;
use crate::support::visible_text::visible;

/// A time limit that is further away than this, in nanoseconds, is on another clock than the wall clock.
const WALL_CLOCK_DISTANCE_MAX: u64 = 366 * 24 * 3600 * NANOS_PER_SECOND;

/// The name of the event with these numbers: 100 times the category and the event.
fn event(numbers: u64) -> Option<&'static str> {
    let category = u8::try_from(numbers / 100).ok()?;
    Event::find(category, (numbers % 100) as u8).map(|event| event.name)
}

impl TextLine<'_> {
    /// Appends the name of a call and the opening parenthesis. Returns where the arguments begin.
    fn put_name(&mut self, kind: &KindLayout) -> usize {
        self.begin_colour(Highlight::Event);
        self.put_short(&kind.name);
        self.end_colour();
        self.put(b"(");
        self.out.len()
    }

    /// Appends the name and the arguments: those of the record, and those that the return record adds if it is given.
    pub fn put_call(&mut self, kind: Option<&KindLayout>, fields: &Fields, ret: Option<(&KindLayout, &Fields)>) {
        let Some(kind) = kind else { return self.put_unknown(fields) };
        let start = self.put_name(kind);
        self.put_arguments(start, &kind.arguments, fields);
        if let Some((kind, fields)) = ret {
            self.put_arguments(start, &kind.added, fields);
        }
        self.put(b")");
    }

    /// Appends the name and the arguments of a return record, the object of the entry record before them if it is known.
    pub fn put_return(&mut self, kind: Option<&KindLayout>, fields: &Fields, object: Option<&ShortText>) {
        let Some(kind) = kind else { return self.put_unknown(fields) };
        let start = self.put_name(kind);
        if let Some(object) = object.filter(|_| kind.lacks_object) {
            self.put(object.bytes());
        }
        self.put_arguments(start, &kind.arguments, fields);
        self.put(b")");
    }

    /// Appends a record of an unknown kind: its arguments as they are, without trailing zeros.
    fn put_unknown(&mut self, fields: &Fields) {
        self.put_coloured(Highlight::Event, &record_kinds::event_name(fields));
        self.put(b"(");
        let start = self.out.len();
        let count = fields.arguments().iter().rposition(|text| *text != b"0").map_or(0, |last| last + 1);
        for text in &fields.arguments()[..count] {
            self.put_separator(start);
            self.put(text);
        }
        self.put(b")");
    }

    /// Appends the arguments of one record. `start` is where the arguments of the call begin, here and below.
    fn put_arguments(&mut self, start: usize, layouts: &[ColumnLayout; 5], fields: &Fields) {
        for (index, layout) in layouts.iter().enumerate() {
            if matches!(layout, ColumnLayout::Nothing) {
                continue;
            }
            let text = fields.argument(index);
            match layout {
                ColumnLayout::Nothing => {}
                ColumnLayout::Value => {
                    self.put_separator(start);
                    self.put(text);
                }
                ColumnLayout::Object(_) if self.out.len() == start => self.put(text),
                ColumnLayout::Unusual(_) if text == b"0" => {}
                ColumnLayout::Object(label) | ColumnLayout::Labelled(label) | ColumnLayout::Unusual(label) => {
                    self.put_label(start, label);
                    self.put(text);
                }
                ColumnLayout::Name => {
                    let name = name_bytes(text, next(fields, index));
                    self.put_label(start, &ShortText::label("name"));
                    self.put(format!("\"{}\"", name.escape_ascii()).as_bytes());
                }
                ColumnLayout::InternedName => {
                    self.put_separator(start);
                    match self.names.interned.text(fields.pid(), bits(text)) {
                        Some(name) => {
                            let name = name.replace('\\', r"\\").replace('"', r#"\""#);
                            self.put(format!("\"{}\"", visible(&name)).as_bytes());
                        }
                        None => self.put(text),
                    }
                }
                ColumnLayout::Function => {
                    self.put_separator(start);
                    let name = self.names.function(fields.pid(), bits(text), fields.time());
                    self.put(name.as_bytes());
                }
                ColumnLayout::LimitTimespec => {
                    let nanoseconds = bits(next(fields, index));
                    let limit = bits(text).saturating_mul(NANOS_PER_SECOND).saturating_add(nanoseconds);
                    self.put_limit(start, limit);
                }
                ColumnLayout::FutexOperation => {
                    self.put_separator(start);
                    match operation_name(bits(text)) {
                        Some(name) => self.put(name.as_bytes()),
                        None => self.put(text),
                    }
                }
                // There is none.
                ColumnLayout::Limit if text == b"0" => {}
                ColumnLayout::Limit => self.put_limit(start, bits(text)),
                ColumnLayout::Signal(label) => self.put_named(start, label, text, signal),
                ColumnLayout::Errno(label) => self.put_named(start, label, text, errno),
                ColumnLayout::Event(label) => self.put_named(start, label, text, event),
            }
        }
    }

    /// Appends the return address of the call, if the record has it (THR_TRACE_DETAIL).
    pub fn put_caller(&mut self, kind: Option<&KindLayout>, fields: &Fields) {
        if kind.is_some_and(|kind| kind.has_caller) {
            let text = fields.argument(CALLER);
            if text != b"0" {
                self.put(b" from ");
                self.put(text);
            }
        }
    }

    fn put_separator(&mut self, start: usize) {
        if self.out.len() > start {
            self.put(b", ");
        }
    }

    fn put_label(&mut self, start: usize, label: &ShortText) {
        // A label begins with a comma and a space, which the first argument does not have.
        self.put_short(label);
        if self.out.len() == start + label.length() {
            self.out.drain(start..start + 2);
        }
    }

    fn put_named(&mut self, start: usize, label: &ShortText, text: &[u8], name: fn(u64) -> Option<&'static str>) {
        self.put_label(start, label);
        self.put(name(bits(text)).map_or(text, str::as_bytes));
    }

    /// Appends a time limit: relative to the record's time if it is on the wall clock, else as it is.
    fn put_limit(&mut self, start: usize, limit: u64) {
        self.put_label(start, &ShortText::label("limit"));
        let distance = limit.abs_diff(self.time);
        if distance < WALL_CLOCK_DISTANCE_MAX {
            let mut text = [0; 24];
            let length = write_duration(distance, &mut text);
            self.put(if limit < self.time { b"-" } else { b"+" });
            self.put(&text[..length]);
        } else {
            // To the microsecond: all digits would not fit into the line.
            let text = format!("{}.{:06}", limit / NANOS_PER_SECOND, limit % NANOS_PER_SECOND / 1000);
            self.put(text.as_bytes());
        }
    }
}

/// The column after `index`.
fn next<'a>(fields: &Fields<'a>, index: usize) -> &'a [u8] {
    if index < 4 { fields.argument(index + 1) } else { b"" }
}
