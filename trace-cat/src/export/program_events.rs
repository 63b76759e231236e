//! Makes spans, marks and counters of the records of the program's own events and of its functions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use foldhash::fast::RandomState;
use spec::event_numbers::{FUNC_ENTER, FUNC_LEAVE, USER_COUNTER, USER_MARK, USER_OBJECT, USER_SPAN};
use spec::tables::{FUNC, USER};

use super::open_spans::OpenSpans;
use super::program_event::{ProgramEvent, ProgramSpan, ProgramText};
use crate::report::contention::NumericRecord;
use crate::report::trace_names::TraceNames;

/// The spans in progress, by thread.
#[derive(Debug, Default)]
pub struct ProgramEvents {
    threads: HashMap<u32, OpenSpans, RandomState>,
    /// The selected time has begun.
    has_begun: bool,
    functions: FunctionNames,
    ended: Vec<ProgramSpan>,
}

/// The symbol of a process's code at an address from a time on, which is a return address or the beginning of a function.
type SymbolCache = HashMap<(u32, u64, u64, bool), Option<Rc<str>>, RandomState>;

/// The function that a return address, or else an address that is the beginning of one, is in.
#[derive(Debug, Default)]
struct FunctionNames {
    known: RefCell<SymbolCache>,
}

impl ProgramEvents {
    /// Takes a record, and appends what it leads to. Spans are as the records have them, whatever is selected.
    pub fn add(&mut self, record: &NumericRecord, thread: u32, names: TraceNames, out: &mut Vec<ProgramEvent>) {
        self.begin_selection(record.time, &names.analysis.selection.times);
        let [a1, a2, ..] = record.arguments;
        let time = record.time;
        let text = match record.event {
            (FUNC, _) => ProgramText::Function(names.analysis.threads[thread as usize].process, a1, 0),
            USER_SPAN | USER_MARK | USER_COUNTER => ProgramText::Name(a1),
            USER_OBJECT => return,
            (USER, number) => ProgramText::Number(number),
            _ => return,
        };
        let spans = self.threads.entry(thread).or_default();
        let mut has_begin = true;
        match (text, record.event, record.which) {
            (ProgramText::Function(process, function, _), FUNC_ENTER, _) => {
                let is_in = |process, function, site| self.functions.has(process, function, (site, time), names);
                spans.enter((process, function, a2), (thread, time), &is_in, &mut self.ended);
            }
            (ProgramText::Function(..), FUNC_LEAVE, _) => {
                has_begin = spans.leave((text, a2), thread, time, &mut self.ended)
            }
            (ProgramText::Function(..), ..) => {}
            (_, _, 1) => spans.begin(text, time),
            (_, _, 2) => has_begin = spans.end(text, thread, time, &mut self.ended),
            (_, USER_COUNTER, _) => out.push(ProgramEvent::Count { thread, time, text, value: a2 as i64 }),
            (_, USER_MARK, _) => {
                out.push(ProgramEvent::Mark { thread, time, text, values: [a2 as i64, 0, 0, 0, 0] });
            }
            _ => {
                let values = record.arguments.map(|argument| argument as i64);
                out.push(ProgramEvent::Mark { thread, time, text, values });
            }
        }
        let span = |span: ProgramSpan| ProgramSpan { text: text_at(span.text, span.from, names), ..span };
        out.extend(self.ended.drain(..).map(|ended| ProgramEvent::Span(span(ended))));
        if !has_begin {
            let text = text_at(text, time, names);
            out.push(ProgramEvent::MissingBegin { thread, time, text });
        }
    }

    /// Ends the spans of a thread that has ended at `time`.
    pub fn end_thread(&mut self, thread: u32, time: u64, names: TraceNames, out: &mut Vec<ProgramEvent>) {
        if let Some(mut spans) = self.threads.remove(&thread) {
            spans.end_all(thread, time, &mut self.ended);
            let span = |span: ProgramSpan| ProgramSpan { text: text_at(span.text, span.from, names), ..span };
            out.extend(self.ended.drain(..).map(|ended| ProgramEvent::Span(span(ended))));
        }
    }

    fn begin_selection(&mut self, time: u64, times: &Range<u64>) {
        if !self.has_begun && time >= times.start {
            self.has_begun = true;
            self.threads.values_mut().for_each(OpenSpans::separate_lanes);
        }
    }
}

/// A text as it is at a time: where libraries were closed, other functions may have the same address at other times.
fn text_at(text: ProgramText, time: u64, names: TraceNames) -> ProgramText {
    match text {
        ProgramText::Function(process, address, _) => {
            ProgramText::Function(process, address, names.unchanged_since(process, address, time))
        }
        _ => text,
    }
}

impl FunctionNames {
    /// Whether a return address is in a function at a time.
    fn has(&self, process: u32, function: u64, (site, time): (u64, u64), names: TraceNames) -> bool {
        let found = |address, is_return| {
            let since = names.unchanged_since(process, address, time);
            let mut known = self.known.borrow_mut();
            let find = || names.function_symbol(process, address, time, is_return).map(Rc::from);
            known.entry((process, address, since, is_return)).or_insert_with(find).clone()
        };
        found(function, false).is_some_and(|function| found(site, true) == Some(function))
    }
}
