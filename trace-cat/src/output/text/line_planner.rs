//! Goes through the records in order and plans the lines. It does as little as possible, because threads cannot share this
//! work.

use std::collections::VecDeque;

use spec::event_numbers::{FUNC_ENTER, FUNC_LEAVE, THR_SETNAME};

use super::host_order::HostOrder;
use super::known_threads::{KnownThreads, OpenCall, THREADS_MAX, ends_span, name_bytes};
use super::line_plan::{BatchRecords, CarriedRecord, LineKind, LinePlan, PlannedLine};
use super::time_column::TimeColumn;
use crate::output::terminal_style::{self, Highlight};
use crate::record::call_stack::CallStack;
use crate::record::fields::Fields;

/// Whether a return record, if it is the end of a span, is that of this entry record.
fn is_same_span(entry: Option<Fields>, ret: &Fields) -> bool {
    !ends_span(ret) || entry.is_some_and(|entry| entry.argument(0) == ret.argument(0))
}

/// What is remembered from record to record.
#[derive(Debug)]
pub struct LinePlanner {
    /// The time column after the lines that were planned. The caller advances it.
    pub clock: TimeColumn,
    threads: KnownThreads,
    /// Records that name a thread, with their times, which the planned records have not reached.
    names: VecDeque<(u64, Box<[u8]>)>,
    coloured: bool,
    /// An entry record whose line depends on the next record.
    held: Option<HeldEntry>,
    /// The copy of that record, from batch to batch.
    carried: CarriedRecord,
    /// Changes when a label of any thread changes, or when a plan without labels begins.
    label_version: u64,
    /// The hosts of the records, if there are several.
    hosts: Option<HostOrder>,
}

/// An entry record of which no line is planned yet.
#[derive(Clone, Copy, Debug)]
struct HeldEntry {
    thread: usize,
    event: (u8, u8),
    /// As [`PlannedLine::record`].
    record: u32,
    is_uncertain: bool,
}

impl LinePlanner {
    /// A planner that knows no thread, except those that `threads` has.
    pub fn new(clock: TimeColumn, threads: KnownThreads, coloured: bool) -> LinePlanner {
        let (names, carried) = (VecDeque::new(), CarriedRecord::default());
        let hosts = threads.has_hosts().then(HostOrder::default);
        LinePlanner { clock, threads, names, coloured, held: None, carried, label_version: 0, hosts }
    }

    /// Takes a record that names a thread, whose name holds for records after its time.
    pub fn add_name(&mut self, line: &[u8]) {
        let Some(fields) = Fields::new(line) else { return };
        self.names.push_back((fields.time(), line.into()));
        if self.names.len() > THREADS_MAX {
            self.take_names(|_, count| count > THREADS_MAX);
        }
    }

    /// Gives threads the first of the names that wait, for as long as `is_due` of the time and of how many wait.
    fn take_names(&mut self, is_due: impl Fn(u64, usize) -> bool) {
        while self.names.front().is_some_and(|(time, _)| is_due(*time, self.names.len())) {
            if let Some((_, line)) = self.names.pop_front()
                && let Some(fields) = Fields::new(&line)
            {
                self.set_name(&fields);
            }
        }
    }

    /// Gives the thread that a thr_setname names its name, if the call succeeded.
    fn set_name(&mut self, fields: &Fields) {
        if fields.event() == THR_SETNAME && fields.argument(3) == b"0" {
            let [tid, high, low, ..] = fields.arguments();
            self.threads.set_name(fields.pid(), tid, &name_bytes(high, low));
            self.label_version += 1;
        }
    }

    /// Takes the entry record of a call that has no line of its own.
    pub fn begin_call(&mut self, entry: &Fields) {
        let known = self.threads.find(entry).or_else(|| (!self.threads.is_full()).then(|| self.threads.add(entry)));
        if let Some(thread) = known {
            self.threads.begin_call(thread, OpenCall::of(entry));
        }
    }

    /// Plans the lines of the next records. If the last one is an entry record, it is left for the next batch.
    pub fn plan(&mut self, records: &BatchRecords, plan: &mut LinePlan) {
        self.begin(plan);
        for (index, record) in records.iter().enumerate() {
            let number = index as u32 + 1;
            match record {
                Ok(fields) => self.add_record(fields, number, records, plan),
                // The file changed after it was checked. The line is shown as it is.
                Err(_) => {
                    self.release_held(records, plan);
                    plan.lines.push(PlannedLine {
                        record: number,
                        label: 0,
                        depth: 0,
                        is_uncertain: false,
                        kind: LineKind::Single,
                    });
                }
            }
        }
        if let Some(held) = &mut self.held {
            match plan.record(records, held.record) {
                Some(fields) => self.carried.keep(&fields, plan.stack(held.record)),
                None => self.held = None,
            }
        }
        if let Some(held) = &mut self.held {
            held.record = 0;
        }
    }

    /// The stack of the entry record that was left, if one was.
    pub fn held_stack(&mut self) -> Option<&mut CallStack> {
        self.held.map(|_| &mut self.carried.stack)
    }

    /// Plans the line of the entry record that was left.
    pub fn pause(&mut self, plan: &mut LinePlan) {
        self.begin(plan);
        self.release_held(&[], plan);
    }

    fn begin(&mut self, plan: &mut LinePlan) {
        plan.clock = self.clock;
        std::mem::swap(&mut plan.carried, &mut self.carried);
        if plan.has_no_labels() {
            self.label_version += 1;
        }
    }

    fn add_record(&mut self, fields: &Fields, number: u32, records: &BatchRecords, plan: &mut LinePlan) {
        if !self.names.is_empty() {
            self.take_names(|time, _| time < fields.time());
        }
        let thread = self.thread(fields, records, plan);
        let event = fields.event();
        let is_uncertain = match &mut self.hosts {
            Some(hosts) => hosts.is_uncertain(self.threads.host(thread), fields.time()),
            None => false,
        };
        match fields.which() {
            1 => {
                self.release_held(records, plan);
                self.held = Some(HeldEntry { thread, event, record: number, is_uncertain });
            }
            2 => {
                let entry = self.held.filter(|held| (held.thread, held.event) == (thread, event));
                if entry.is_some_and(|held| is_same_span(plan.record(records, held.record), fields)) {
                    self.held = None;
                    let is_uncertain = is_uncertain || entry.is_some_and(|entry| entry.is_uncertain);
                    return self.add_line(thread, number, is_uncertain, LineKind::Complete, plan);
                }
                self.release_held(records, plan);
                let call = self.threads.end_call(thread, fields).map(|call| {
                    plan.open_calls.push(call);
                    plan.open_calls.len() as u32 - 1
                });
                self.add_line(thread, number, is_uncertain, LineKind::Return(call), plan);
            }
            _ => {
                self.release_held(records, plan);
                if event == FUNC_LEAVE {
                    self.threads.leave_function(thread, fields);
                }
                self.add_line(thread, number, is_uncertain, LineKind::Single, plan);
                if event == FUNC_ENTER {
                    self.threads.enter_function(thread, fields);
                }
                self.set_name(fields);
            }
        }
    }

    /// The thread of a record, which becomes known.
    fn thread(&mut self, fields: &Fields, records: &BatchRecords, plan: &mut LinePlan) -> usize {
        if let Some(thread) = self.threads.find(fields) {
            return thread;
        }
        if self.threads.is_full() {
            self.release_held(records, plan);
            self.threads.clear();
        }
        let width = self.threads.width;
        let thread = self.threads.add(fields);
        if self.threads.width != width {
            self.label_version += 1;
        }
        thread
    }

    /// Plans the line of the held entry record: another record comes before its call returns.
    fn release_held(&mut self, records: &BatchRecords, plan: &mut LinePlan) {
        let Some(HeldEntry { thread, record, is_uncertain, .. }) = self.held.take() else { return };
        let Some(fields) = plan.record(records, record) else { return };
        let call = OpenCall::of(&fields);
        self.add_line(thread, record, is_uncertain, LineKind::Entry, plan);
        self.threads.begin_call(thread, call);
    }

    fn add_line(&mut self, thread: usize, record: u32, is_uncertain: bool, kind: LineKind, plan: &mut LinePlan) {
        let label = match self.threads.label_cache(thread) {
            (version, label) if *version == self.label_version => *label,
            _ => {
                let label = plan.add_label(|out| self.append_label(thread, out));
                *self.threads.label_cache(thread) = (self.label_version, label);
                label
            }
        };
        plan.lines.push(PlannedLine { record, label, depth: self.threads.depth(thread), is_uncertain, kind });
    }

    /// Appends a thread's label in its colour and the spaces after it. Returns how many bytes take no column.
    fn append_label(&self, thread: usize, out: &mut Vec<u8>) -> usize {
        let (label, start) = (self.threads.label(thread), out.len());
        let colour =
            if self.coloured { [Highlight::Thread(thread).begin(), terminal_style::END] } else { [&b""[..]; 2] };
        [colour[0], label.text.as_bytes(), colour[1]].iter().for_each(|text| out.extend_from_slice(text));
        let spaces = self.threads.width.saturating_sub(label.width);
        out.resize(out.len() + spaces, b' ');
        out.len() - start - label.width - spaces
    }
}
