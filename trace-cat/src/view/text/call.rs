//! A call: the event's name, and its arguments.

use spec::Column;
use spec::record::SECOND;

use super::line::{Line, duration};
use super::threads::Argument;
use crate::names;
use crate::view::event;
use crate::view::fields::{Fields, bits};
use crate::view::style::Part;

/// Columns that people know by a shorter name.
const SHORT: [(&str, &str); 4] =
    [("start_routine", "start"), ("once_control", "once"), ("init_routine", "init"), ("exit_status", "status")];
/// A time limit that is further away than this, in nanoseconds, is not on the wall clock.
const FAR: u64 = 366 * 24 * 3600 * SECOND;

impl Line<'_> {
    /// The name and the arguments: those of the record, those of the call's second record if that is known too, and of one
    /// that ends a call also what the first was about.
    pub fn call(&mut self, fields: &Fields, second: Option<&Fields>, object: Option<Argument>) {
        let known = self.events.find(fields).copied();
        match known {
            Some(known) => self.coloured(Part::Event, known.name.as_bytes()),
            None => self.coloured(Part::Event, &event::name(fields)),
        }
        self.put(b"(");
        let open = self.out.len();
        let Some(known) = known else {
            // What the table does not know is shown as it is, without the zeros behind it.
            let count = fields.arguments().iter().rposition(|text| *text != b"0").map_or(0, |last| last + 1);
            for text in &fields.arguments()[..count] {
                self.separate(open);
                self.put(text);
            }
            return self.put(b")");
        };
        if let Some(object) = object
            && let Some(first) = known.event.form(1).and_then(|form| form.columns[0])
            && !known.columns.iter().flatten().any(|column| column.name == first.name)
        {
            self.put(object.bytes());
        }
        self.arguments(open, known.columns, fields, &[None; 5]);
        if let Some((second, later)) = second.and_then(|second| Some((second, self.events.find(second)?.columns))) {
            self.arguments(open, later, second, known.columns);
        }
        self.put(b")");
    }

    /// The arguments of one record, without those that `shown` has.
    fn arguments(&mut self, open: usize, columns: &[Option<Column>; 5], fields: &Fields, shown: &[Option<Column>; 5]) {
        let is_shown = |name: &str| shown.iter().flatten().any(|column| column.name == name);
        for (index, (column, text)) in columns.iter().zip(fields.arguments()).enumerate() {
            let Some(column) = column else {
                if text != b"0" && !is_caller(fields, index) {
                    self.label(open, detail(fields, index));
                    self.put(text);
                }
                continue;
            };
            match column.name {
                "rval" | "limit_nsec" | "name_8_15" => {}
                name if name.ends_with('?') || is_shown(name) => {}
                "name_0_7" => {
                    let halves = [text, fields.arguments().get(index + 1).copied().unwrap_or_default()];
                    let name = halves.map(|text| bits(text).unwrap_or(0).to_be_bytes()).concat();
                    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                    self.label(open, "name");
                    self.put(format!("\"{}\"", name[..length].escape_ascii()).as_bytes());
                }
                "limit_sec" => {
                    let nanoseconds = fields.arguments().get(index + 1).and_then(|text| bits(text)).unwrap_or(0);
                    let limit = bits(text).unwrap_or(0).saturating_mul(SECOND).saturating_add(nanoseconds);
                    self.limit(open, limit);
                }
                "limit_ns" => self.limit(open, bits(text).unwrap_or(0)),
                // Attributes that are not there, and the clock that is meant if none is said.
                "attr" | "clock" if text == b"0" => {}
                "signal" => self.named(open, column.name, text, names::signal),
                "errno" | "cause" => self.named(open, column.name, text, names::errno),
                name => {
                    // The first argument is what the call is about; its name would only say what the event's does. As
                    // well known is what belongs to a condition variable.
                    if (index > 0 || self.out.len() > open || !is_object(column)) && name != "mutex" {
                        self.label(open, short(name));
                    } else {
                        self.separate(open);
                    }
                    self.put(text);
                }
            }
        }
    }

    /// Where the call was made, if the record tells (THR_TRACE_DETAIL).
    pub fn caller(&mut self, fields: &Fields) {
        let is_empty = self.events.find(fields).is_some_and(|known| known.columns[CALLER].is_none());
        let text = fields.argument(CALLER);
        if is_empty && is_caller(fields, CALLER) && text != b"0" {
            self.put(b" from ");
            self.put(text);
        }
    }

    fn separate(&mut self, open: usize) {
        if self.out.len() > open {
            self.put(b", ");
        }
    }

    fn label(&mut self, open: usize, name: &str) {
        self.separate(open);
        self.put(name.as_bytes());
        self.put(b"=");
    }

    fn named(&mut self, open: usize, column: &str, text: &[u8], name: fn(u64) -> Option<&'static str>) {
        self.label(open, column);
        self.put(bits(text).and_then(name).map_or(text, str::as_bytes));
    }

    /// A time limit, from the record's time if it is on the wall clock, else as it is.
    fn limit(&mut self, open: usize, limit: u64) {
        self.label(open, "limit");
        let distance = limit.abs_diff(self.now);
        if distance < FAR {
            let mut text = [0; 24];
            let length = duration(distance, &mut text);
            self.put(if limit < self.now { b"-" } else { b"+" });
            self.put(&text[..length]);
        } else {
            let text = format!("{}.{:09}", limit / SECOND, limit % SECOND);
            self.put(text.as_bytes());
        }
    }
}

/// The column in which THR_TRACE_DETAIL puts the return address of the call, a5, if it has no other use.
const CALLER: usize = 4;

fn is_caller(fields: &Fields, index: usize) -> bool {
    index == CALLER && fields.which() != 2
}

/// What THR_TRACE_DETAIL puts into a column that is empty otherwise.
fn detail(fields: &Fields, index: usize) -> &'static str {
    match (fields.event(), fields.which(), index) {
        ((2 | 5 | 6, _), 1, 3) => "holder",
        ((5, 4), 0, 3) => "write",
        ((1, 18), 0, 3) => "key",
        _ => ["a1", "a2", "a3", "a4", "a5"][index],
    }
}

/// Whether a column holds an address or a thread.
fn is_object(column: &Column) -> bool {
    matches!(column.base, spec::Base::Hex | spec::Base::Thread) && !column.name.ends_with("status")
}

fn short(name: &'static str) -> &'static str {
    SHORT.iter().find(|(long, _)| *long == name).map_or(name, |(_, short)| short)
}
