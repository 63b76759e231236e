//! `-F text`: for people.
//!
//! ```text
//!   0.000000000 handoff/26705     mutex_lock(0x7ffc8f1c1b70)            = 0
//!   0.000002392 handoff/26705   > cond_wait(0x7ffc8f1c1b40, 0x7ffc8f1c1b70)
//!   0.008556826 handoff/26704     mutex_unlock(0x7ffc8f1c1b70)          = 0
//!   0.008562367 handoff/26704     cond_signal(0x7ffc8f1c1b40)           = 0                   waiters
//!   0.008574315 handoff/26705   < cond_wait(0x7ffc8f1c1b40)             = 0          8.571 ms
//! ```
//!
//! A line is a call. When nothing else comes between its two records, it is shown once, at the time of the first; else
//! `>` marks where it began and `<` where it came back, as far apart as they were. Then come the result, how long it took
//! (if not both records have the same time), and what the columns that answer a question say when they say yes.
//!
//! ```text
//! clock    the column of the time (local: where clocks show what)
//! threads  who is who, and which calls they are in
//! line     one line, its columns and colours
//! call     an event's name with its arguments
//! ```

mod call;
mod clock;
mod line;
mod threads;

use std::path::PathBuf;

use super::View;
use super::event::Table;
use super::fields::{Cuts, Fields, bits};
use crate::args::Time;
use clock::Clock;
pub use line::duration;
use line::{Line, Mark};
use threads::{Argument, Begun, Threads};

/// Columns of a terminal that lines keep to, as far as they can.
const WIDTH: usize = 100;

/// The view for people.
#[derive(Debug)]
pub struct Text {
    events: Table,
    clock: Clock,
    threads: Threads,
    coloured: bool,
    /// The first of two records, which waits for what comes next.
    held: Option<Held>,
    /// Its text, kept apart so that its memory is used again.
    held_line: Vec<u8>,
}

/// A call that has begun, and of which nothing is printed yet.
#[derive(Clone, Copy, Debug)]
struct Held {
    thread: usize,
    cuts: Cuts,
}

impl Text {
    /// `directories` are those of the trace, in which its processes' names are found.
    pub fn new(time: Time, coloured: bool, directories: Vec<PathBuf>) -> Text {
        Text {
            events: Table::default(),
            clock: Clock::new(time),
            threads: Threads::new(directories),
            coloured,
            held: None,
            held_line: Vec::new(),
        }
    }

    /// Prints what was held back: the call goes on while others do something.
    fn release(&mut self, out: &mut Vec<u8>) {
        let Some(Held { thread, cuts }) = self.held.take() else { return };
        let text = std::mem::take(&mut self.held_line);
        let fields = Fields::again(&text, cuts);
        let begun = Begun { event: fields.event(), time: fields.time(), object: Argument::new(fields.argument(0)) };
        self.threads.begin(thread, begun);
        let mut line = self.line(&fields, thread, Mark::Begins, out);
        line.call(&fields, None, None);
        line.caller(&fields);
        line.end();
        self.held_line = text;
    }

    /// Prints the call that was held back, of which both records are known now, if that fits a line.
    fn whole(&mut self, held: Held, second: &Fields, out: &mut Vec<u8>) -> bool {
        let text = std::mem::take(&mut self.held_line);
        let first = Fields::again(&text, held.cuts);
        let (start, clock) = (out.len(), self.clock);
        let took = second.time().saturating_sub(first.time());
        let mut line = self.line(&first, held.thread, Mark::None, out);
        line.call(&first, Some(second), None);
        line.result(second);
        line.took((took > 0).then_some(took));
        line.answers(second);
        let fits = line.width() <= WIDTH;
        if fits {
            line.caller(&first);
            line.end();
            self.held = None;
        } else {
            out.truncate(start);
            self.clock = clock;
        }
        self.held_line = text;
        fits
    }

    /// A line with its columns up to the call.
    fn line<'a>(&'a mut self, fields: &Fields, thread: usize, mark: Mark, out: &'a mut Vec<u8>) -> Line<'a> {
        let width = self.threads.width();
        let mut line = Line::new(&self.events, self.coloured, fields.time(), out);
        line.time(&mut self.clock);
        line.thread(self.threads.label(thread), width, thread, mark);
        line
    }
}

impl View for Text {
    fn record(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let Some(fields) = Fields::new(line) else {
            // The file changed under the reader: better shown somehow than not at all.
            self.release(out);
            out.extend(line.strip_suffix(b"\n").unwrap_or(line).escape_ascii());
            return out.push(b'\n');
        };
        let thread = self.threads.find(fields.pid(), fields.lwpid(), fields.tid());
        let event = fields.event();
        match fields.which() {
            1 => {
                self.release(out);
                self.held_line.clear();
                self.held_line.extend_from_slice(line);
                self.held = Some(Held { thread, cuts: fields.cuts() });
            }
            2 => {
                if let Some(held) = self.held
                    && (held.thread, held.cuts.event()) == (thread, event)
                    && self.whole(held, &fields, out)
                {
                    return;
                }
                self.release(out);
                let begun = self.threads.end(thread, event);
                let mut line = self.line(&fields, thread, Mark::Returns, out);
                line.call(&fields, None, begun.map(|begun| begun.object));
                line.result(&fields);
                line.took(begun.map(|begun| fields.time().saturating_sub(begun.time)));
                line.answers(&fields);
                line.end();
            }
            _ => {
                self.release(out);
                let mut line = self.line(&fields, thread, Mark::None, out);
                line.call(&fields, None, None);
                line.result(&fields);
                line.answers(&fields);
                line.caller(&fields);
                line.end();
                if event == threads::SET_NAME && fields.argument(3) == b"0" {
                    let [tid, high, low, ..] = fields.arguments();
                    let name = [high, low].map(|text| bits(text).unwrap_or(0).to_be_bytes()).concat();
                    self.threads.name(fields.pid(), tid, &name);
                }
            }
        }
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        self.release(out);
    }
}

#[cfg(test)]
mod tests;
