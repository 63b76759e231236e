//! `THR_TRACE_STACK`: the call stacks of calls that waited or failed.

mod faults;
mod frame_pointers;
mod hostile;
mod libraries;
mod records;
mod reloads;
mod shapes;

use crate::harness::{Record, TestDirectory, Trace};

/// As a last address: the stack could not be followed further.
const CUT: u64 = 1;

/// A stack of a trace: its addresses, innermost first.
#[derive(Clone, Debug, Default)]
struct Stack {
    addresses: Vec<u64>,
    is_cut: bool,
}

impl Stack {
    /// Adds the addresses of a `trace_stack` record.
    fn add(&mut self, record: &Record) {
        assert!(!self.is_cut, "{}", record.line);
        let addresses = record.fields.arguments.map(|argument| argument.bits());
        self.addresses.extend(addresses.iter().take_while(|&&address| address > CUT));
        self.is_cut = addresses.contains(&CUT);
    }
}

/// The records of one thread, each with its stack.
fn with_stacks(records: &[&Record]) -> Vec<(Record, Option<Stack>)> {
    let mut calls: Vec<(Record, Option<Stack>)> = Vec::new();
    for record in records {
        if !record.is("trace_stack") {
            calls.push(((*record).clone(), None));
            continue;
        }
        let (call, stack) = calls.last_mut().expect("a stack stands behind a record");
        assert_eq!(call.fields.time, record.fields.time, "{}", record.line);
        assert_eq!(record.fields.which == 1, stack.is_none(), "{}", record.line);
        stack.get_or_insert_default().add(record);
    }
    calls
}

/// The stacks of the calls of this event, in all threads, in the order of time.
fn stacks_of(trace: &Trace, event: &str) -> Vec<Stack> {
    let mut lwps: Vec<u32> = trace.records.iter().map(|record| record.fields.lwpid).collect();
    lwps.sort_unstable();
    lwps.dedup();
    let mut calls: Vec<_> = lwps.iter().flat_map(|lwp| with_stacks(&trace.of_lwp(*lwp))).collect();
    calls.sort_by_key(|(record, _)| record.fields.time);
    calls.into_iter().filter(|(record, _)| record.is(event)).filter_map(|(_, stack)| stack).collect()
}

/// The names of the frames of failed tries, as trace-cat shows them, up to `main`; in brackets what is none.
fn names_of_frames(test: &TestDirectory) -> Vec<String> {
    let output = test.trace_cat().args(["-F", "text", "--stack", "-e", "mutex_trylock"]).run();
    let text = output.success().stdout_text();
    let lines = text.lines().map(str::trim_start).filter(|line| line.starts_with('#'));
    let frame = |line: &str| {
        let name = line.split_once(' ').expect("a frame has a name").1.trim_start();
        let end = if name.starts_with('[') { None } else { name.find(' ') };
        name[..end.unwrap_or(name.len())].to_owned()
    };
    let mut names: Vec<String> = lines.map(frame).collect();
    let end = names.iter().position(|name| name == "main").map_or(names.len(), |main| main + 1);
    names.truncate(end);
    names
}
