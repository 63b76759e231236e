//! The counts.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use spec::id;
use spec::tables::CATEGORIES;

use crate::record::fields::{Fields, bits};
use crate::record::record_kinds::RecordKindTable;

/// Objects that are told apart, all kinds together.
pub const OBJECTS: usize = 1 << 21;
/// Categories whose records' first column is an object, as its name there says.
const KINDS: [(u8, &str); 7] =
    [(2, "mutex"), (3, "cond"), (4, "sem"), (5, "rwlock"), (6, "mutex"), (7, "barrier"), (9, "spin")];

/// The counts so far.
#[derive(Debug, Default)]
pub struct TraceCounts {
    /// Where processes are looked up.
    pub directories: Vec<PathBuf>,
    /// How many runs there are, if that is known.
    pub runs: Option<usize>,
    table: RecordKindTable,
    pub records: u64,
    pub processes: HashMap<u32, ProcessCounts>,
    /// By category and event: calls and records.
    pub events: HashMap<(u8, u8), EventCounts>,
    /// By category: process and address of each object.
    pub objects: HashMap<u8, HashSet<(u32, u64)>>,
    pub object_count: usize,
    /// Waits by LWP, category and event, since when.
    waits: HashMap<(u32, u32, u8, u8), u64>,
}

#[derive(Debug, Default)]
pub struct ProcessCounts {
    pub threads: HashSet<u32>,
    pub records: u64,
    pub lost: u64,
    /// Times of the first and the last record.
    pub span: (u64, u64),
}

#[derive(Debug, Default)]
pub struct EventCounts {
    pub records: u64,
    pub calls: u64,
    /// Calls that had to wait, as `block?` says.
    pub blocked: u64,
    /// Between the two records of its calls, all together.
    pub nanoseconds: u64,
}

impl TraceCounts {
    /// Nothing is counted yet. Commands of processes are found in `directories`, in which there are so many `runs`.
    pub fn new(directories: Vec<PathBuf>, runs: Option<usize>) -> TraceCounts {
        TraceCounts { directories, runs, ..TraceCounts::default() }
    }

    /// The times of the first and the last record.
    pub fn span(&self) -> Option<(u64, u64)> {
        let spans = self.processes.values().map(|process| process.span);
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Counts a record.
    pub fn count(&mut self, fields: &Fields) {
        let (time, pid, lwpid, event) = (fields.time(), fields.pid(), fields.lwpid(), fields.event());
        self.records += 1;
        let process = self
            .processes
            .entry(pid)
            .or_insert_with(|| ProcessCounts { span: (time, time), ..ProcessCounts::default() });
        process.records += 1;
        process.threads.insert(lwpid);
        process.span = (process.span.0.min(time), process.span.1.max(time));
        if event == numbers(id::TRACE_LOST) {
            process.lost += bits(fields.argument(0));
        }
        let counts = self.events.entry(event).or_default();
        counts.records += 1;
        counts.calls += u64::from(fields.which() != 2);
        let wait = (pid, lwpid, event.0, event.1);
        match fields.which() {
            1 => drop(self.waits.insert(wait, time)),
            2 => {
                let since = self.waits.remove(&wait).unwrap_or(time);
                counts.nanoseconds = counts.nanoseconds.saturating_add(time.saturating_sub(since));
                let columns = self.table.find(fields).map(|known| *known.columns).unwrap_or_default();
                let block = columns.iter().position(|column| column.is_some_and(|column| column.name == "block?"));
                counts.blocked += u64::from(block.is_some_and(|index| fields.argument(index) != b"0"));
            }
            _ => {}
        }
        self.object(fields, pid);
    }

    /// Notes the object that a record is about.
    fn object(&mut self, fields: &Fields, pid: u32) {
        let (category, _) = fields.event();
        if fields.which() == 2 || self.object_count >= OBJECTS {
            return;
        }
        let Some((_, name)) = KINDS.iter().find(|(kind, _)| *kind == category) else { return };
        let first = self.table.find(fields).and_then(|known| known.columns[0]);
        if first.is_some_and(|column| column.name == *name) {
            let address = bits(fields.argument(0));
            let is_new = self.objects.entry(category).or_default().insert((pid, address));
            self.object_count += usize::from(is_new);
        }
    }
}

fn numbers(event: spec::EventId) -> (u8, u8) {
    (event.event().category, event.event().number)
}

/// The name of a category.
pub fn category(number: u8) -> &'static str {
    CATEGORIES.get(usize::from(number)).copied().unwrap_or("unknown")
}
