//! The counts of `--stat`.

use std::collections::{HashMap, HashSet};

use spec::id;
use spec::tables::CATEGORIES;

use crate::record::fields::{Fields, bits};
use crate::record::record_kinds::RecordKindTable;
use crate::trace::file_names::FileGroup;

/// The most objects, of all kinds together, that are counted.
pub const OBJECTS_MAX: usize = 1 << 21;
/// Categories whose objects are counted, and the name of the column a1 if it is such an object.
const OBJECT_COLUMNS: [(u8, &str); 7] =
    [(2, "mutex"), (3, "cond"), (4, "sem"), (5, "rwlock"), (6, "mutex"), (7, "barrier"), (9, "spin")];

/// The counts so far.
#[derive(Debug, Default)]
pub struct TraceCounts {
    /// The files of the trace, which have its processes' commands.
    pub groups: Vec<FileGroup>,
    /// How many runs there are, if known.
    pub runs: Option<usize>,
    /// A line for each run, if there are several.
    pub run_lines: String,
    table: RecordKindTable,
    /// Records of all processes.
    pub records: u64,
    /// By process ID.
    pub processes: HashMap<u32, ProcessCounts>,
    /// By category and number of the event.
    pub events: HashMap<(u8, u8), EventCounts>,
    /// By category: process ID and address of each object.
    pub objects: HashMap<u8, HashSet<(u32, u64)>>,
    /// How many objects there are in all categories.
    pub object_count: usize,
    /// Times of entry records by process ID, LWP ID, category and number of the event.
    open_calls: HashMap<(u32, u32, u8, u8), u64>,
}

#[derive(Debug, Default)]
pub struct ProcessCounts {
    pub threads: HashSet<u32>,
    /// Records of all its threads.
    pub records: u64,
    /// Lost records, according to the loss records.
    pub lost: u64,
    /// The times of the first and the last record.
    pub span: (u64, u64),
}

#[derive(Debug, Default)]
pub struct EventCounts {
    pub records: u64,
    /// Its calls: a call with two records counts once.
    pub calls: u64,
    /// Calls that blocked, according to `block?`.
    pub blocked: u64,
    /// The sum of the times between the two records of its calls.
    pub nanoseconds: u64,
}

impl TraceCounts {
    /// Counts of zero for a trace in `groups`, which have this many `runs`.
    pub fn new(groups: Vec<FileGroup>, runs: Option<usize>) -> TraceCounts {
        TraceCounts { groups, runs, ..TraceCounts::default() }
    }

    /// The times of the first and the last record of the trace.
    pub fn span(&self) -> Option<(u64, u64)> {
        let spans = self.processes.values().map(|process| process.span);
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

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
        let call = (pid, lwpid, event.0, event.1);
        match fields.which() {
            1 => drop(self.open_calls.insert(call, time)),
            2 => {
                let since = self.open_calls.remove(&call).unwrap_or(time);
                counts.nanoseconds = counts.nanoseconds.saturating_add(time.saturating_sub(since));
                let columns = self.table.find(fields).map(|known| *known.columns).unwrap_or_default();
                let block = columns.iter().position(|column| column.is_some_and(|column| column.name == "block?"));
                counts.blocked += u64::from(block.is_some_and(|index| fields.argument(index) != b"0"));
            }
            _ => {}
        }
        self.count_object(fields, pid);
    }

    /// Counts the object of a record, if it is new.
    fn count_object(&mut self, fields: &Fields, pid: u32) {
        let (category, _) = fields.event();
        if fields.which() == 2 || self.object_count >= OBJECTS_MAX {
            return;
        }
        let Some((_, name)) = OBJECT_COLUMNS.iter().find(|(kind, _)| *kind == category) else { return };
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

/// The name of a category, `unknown` if the table does not have it.
pub fn category(number: u8) -> &'static str {
    CATEGORIES.get(usize::from(number)).copied().unwrap_or("unknown")
}
