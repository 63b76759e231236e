//! `-F text`: a line for each record, for people.
//!
//! ```text
//!   0.000001204 19953/19955   mutex_lock(mutex=0x559469ed90a0)             ...
//!   0.001235710 19953/19955   mutex_lock(mutex=0x559469ed90a0)             = 0       1.234 ms blocked
//! ```
//!
//! Time since the first record shown, process and LWP, the call, its result, how long it took, and what the columns
//! that answer a question (`block?`) say when they say yes. `...` marks the first of two records.

use std::collections::HashMap;

use spec::record::SECOND;
use spec::{Column, Event, Form, Record};

use super::View;
use crate::names;

/// Where things begin, in columns, when what stands before them is not too wide.
const SECONDS: usize = 3;
const CALL_AT: usize = 28;
const RESULT_AT: usize = 73;
const DURATION_END: usize = 91;
/// Calls of one thread and event that may be begun and not ended, one in another; more are forgotten.
const DEPTH: usize = 64;
/// Threads and events whose calls are remembered; when there are more, all are forgotten.
const REMEMBERED: usize = 1 << 18;

/// The view for people.
#[derive(Default)]
pub struct Text {
    start: Option<u64>,
    /// The calls that have begun and not ended.
    begun: HashMap<Call, Vec<Begun>>,
}

/// A call that a thread may be in, by process, LWP, category and event.
type Call = (u32, u32, u8, u8);

/// The first of two records.
#[derive(Clone, Copy)]
struct Begun {
    time: u64,
    /// The text of a1: in most calls, the object.
    object: Argument,
}

/// The text of an argument, which is at most twenty bytes.
#[derive(Clone, Copy)]
struct Argument {
    text: [u8; spec::record::ARGUMENT_MAX],
    length: u8,
}

impl Argument {
    fn new(bytes: &[u8]) -> Argument {
        let mut text = [0; spec::record::ARGUMENT_MAX];
        let length = bytes.len().min(text.len());
        text[..length].copy_from_slice(&bytes[..length]);
        Argument { text, length: length as u8 }
    }

    fn bytes(&self) -> &[u8] {
        &self.text[..usize::from(self.length)]
    }
}

/// A record with what the table knows of it.
struct Shown<'a> {
    record: Record,
    /// The texts of a1 to a5.
    texts: [&'a [u8]; 5],
    event: Option<&'static Event>,
    form: Option<&'static Form>,
}

impl<'a> Shown<'a> {
    fn new(line: &'a [u8]) -> Option<Shown<'a>> {
        let record = Record::parse(line).ok()?;
        let mut texts: [&[u8]; 5] = [b"0"; 5];
        for (place, text) in texts.iter_mut().rev().zip(line.rsplitn(6, |&byte| byte == b':')) {
            *place = text;
        }
        let event = record.event();
        Some(Shown { texts, event, form: event.and_then(|event| event.form(record.which)), record })
    }

    /// Which column says whether the call worked.
    fn result(&self) -> Option<usize> {
        let columns = &self.form?.columns;
        columns.iter().position(|column| column.is_some_and(|column| column.name == "rval"))
    }
}

impl View for Text {
    fn record(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let Some(shown) = Shown::new(line) else {
            // The file changed under the reader: better shown as it is than not at all.
            out.extend_from_slice(line);
            return out.push(b'\n');
        };
        let began = self.pair(&shown);
        let time = shown.record.time;
        let since = time.saturating_sub(*self.start.get_or_insert(time));
        let mut line = Line { start: out.len(), out };
        line.head(since, &shown.record);
        line.call(&shown, began.map(|began| began.object));
        line.result(&shown);
        if let Some(began) = began {
            line.duration(time.saturating_sub(began.time));
        }
        line.answers(&shown);
        line.put("\n");
    }
}

impl Text {
    /// Remembers the first of two records; finds it again for the second.
    fn pair(&mut self, shown: &Shown) -> Option<Begun> {
        let record = &shown.record;
        let call = (record.pid, record.lwpid, record.event1, record.event2);
        match record.which {
            1 => {
                if self.begun.len() >= REMEMBERED {
                    self.begun.clear();
                }
                let calls = self.begun.entry(call).or_default();
                if calls.len() == DEPTH {
                    calls.remove(0);
                }
                calls.push(Begun { time: record.time, object: Argument::new(shown.texts[0]) });
                None
            }
            // A signal handler's call began last and ends first.
            2 => self.begun.get_mut(&call)?.pop(),
            _ => None,
        }
    }
}

fn is_answer(column: &Column) -> bool {
    column.name.ends_with('?')
}

/// A line of output being written.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    /// Where the line begins in `out`.
    start: usize,
}

impl Line<'_> {
    fn put(&mut self, text: impl AsRef<[u8]>) {
        self.out.extend_from_slice(text.as_ref());
    }

    fn number(&mut self, number: u64) {
        let mut digits = itoa::Buffer::new();
        self.put(digits.format(number));
    }

    /// Fills with spaces up to a column; at least one where something stands before it.
    fn pad_to(&mut self, column: usize) {
        let width = self.out.len() - self.start;
        self.out.resize(self.out.len() + column.saturating_sub(width).max(1), b' ');
    }

    /// Time, process and LWP.
    fn head(&mut self, since: u64, record: &Record) {
        let mut digits = itoa::Buffer::new();
        let seconds = digits.format(since / SECOND);
        self.out.resize(self.out.len() + SECONDS.saturating_sub(seconds.len()), b' ');
        self.put(seconds);
        self.put(".");
        // Ten digits, of which the first is a 1 that keeps the zeros.
        let mut digits = itoa::Buffer::new();
        self.put(&digits.format(SECOND + since % SECOND)[1..]);
        self.put(" ");
        self.number(u64::from(record.pid));
        self.put("/");
        self.number(u64::from(record.lwpid));
        self.pad_to(CALL_AT);
    }

    /// The event's name and its arguments; of the second of two records also what the first was about.
    fn call(&mut self, shown: &Shown, object: Option<Argument>) {
        self.name(shown);
        self.put("(");
        let open = self.out.len();
        let first = shown.event.and_then(|event| event.form(1)).and_then(|form| form.columns[0]);
        if let (Some(object), Some(first)) = (object, first)
            && !shown.form.is_some_and(|form| form.columns.iter().flatten().any(|column| column.name == first.name))
        {
            self.argument(open, &first, object.bytes());
        }
        match shown.form {
            Some(form) => self.named(open, form, shown),
            None => {
                // What the table does not know is shown as it is, without the zeros behind it.
                let count = shown.texts.iter().rposition(|text| *text != b"0").map_or(0, |last| last + 1);
                for text in &shown.texts[..count] {
                    self.separate(open);
                    self.put(text);
                }
            }
        }
        self.put(")");
    }

    fn name(&mut self, shown: &Shown) {
        let Record { event1, event2, .. } = shown.record;
        if let Some(event) = shown.event {
            return self.put(event.name);
        }
        match spec::event::CATEGORIES.get(usize::from(event1)) {
            Some(category) => self.put(category),
            None => self.number(u64::from(event1)),
        }
        self.put([b'.', b'0' + event2 / 10 % 10, b'0' + event2 % 10]);
    }

    fn named(&mut self, open: usize, form: &Form, shown: &Shown) {
        let result = shown.result();
        for (index, (column, text)) in form.columns.iter().zip(&shown.texts).enumerate() {
            match column {
                Some(column) if result == Some(index) || is_answer(column) => {}
                Some(column) if column.name == "name_0_7" => {
                    let name = [1, 2].map(|index| shown.record.arguments[index].bits().to_be_bytes()).concat();
                    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                    self.separate(open);
                    self.put(format!("name=\"{}\"", name[..length].escape_ascii()));
                }
                Some(column) if column.name == "name_8_15" => {}
                Some(column) => self.argument(open, column, text),
                // Empty columns may be filled (THR_TRACE_DETAIL); nothing is hidden.
                None if *text != b"0" => {
                    self.separate(open);
                    self.put([b'a', b'1' + index as u8, b'=']);
                    self.put(text);
                }
                None => {}
            }
        }
    }

    fn separate(&mut self, open: usize) {
        if self.out.len() > open {
            self.put(", ");
        }
    }

    fn argument(&mut self, open: usize, column: &Column, text: &[u8]) {
        self.separate(open);
        self.put(column.name);
        self.put("=");
        let number = || std::str::from_utf8(text).ok()?.parse().ok();
        let name = match column.name {
            "signal" => number().and_then(names::signal),
            "errno" | "cause" => number().and_then(names::errno),
            _ => None,
        };
        self.put(name.map_or(text, str::as_bytes));
    }

    /// What the call returned, or that it has only begun.
    fn result(&mut self, shown: &Shown) {
        if shown.record.which == 1 {
            self.pad_to(RESULT_AT);
            return self.put("...");
        }
        if let Some(index) = shown.result() {
            self.pad_to(RESULT_AT);
            self.put("= ");
            let name = names::errno(shown.record.arguments[index].bits());
            self.put(name.map_or(shown.texts[index], str::as_bytes));
        }
    }

    /// How long a call took, right-aligned.
    fn duration(&mut self, nanoseconds: u64) {
        let text = duration(nanoseconds);
        self.pad_to(DURATION_END - text.len().min(DURATION_END));
        self.put(text);
    }

    /// What the answers say that say yes.
    fn answers(&mut self, shown: &Shown) {
        let Some(form) = shown.form else { return };
        for (column, value) in form.columns.iter().zip(shown.record.arguments) {
            let Some(question) = column.and_then(|column| column.name.strip_suffix('?')) else { continue };
            if value.bits() != 0 {
                self.pad_to(DURATION_END + 1);
                self.put(if question == "block" { "blocked" } else { question });
            }
        }
    }
}

/// A duration with the unit that leaves one to three digits before the point.
fn duration(nanoseconds: u64) -> String {
    let (unit, name) = match nanoseconds {
        0..1_000 => return format!("{nanoseconds} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    format!("{}.{:03} {name}", nanoseconds / unit, nanoseconds % unit * 1000 / unit)
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
