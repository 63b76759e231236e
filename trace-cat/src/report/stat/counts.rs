//! The counts of `--stat`.

use std::collections::{BTreeMap, HashMap, HashSet};

use spec::event_numbers::TRACE_STACK;
use spec::id;
use spec::tables::CATEGORIES;

use crate::calls::pairing::{CallKey, OPEN_CALLS_MAX, OpenCalls};
use crate::calls::wait_rules::{WaitRule, wait_rules};
use crate::filter::OpenCallTable;
use crate::record::event_table::EventTable;
use crate::record::fields::{Fields, bits};
use crate::record::record_kinds::RecordKindTable;
use crate::trace::file_names::FileGroup;

/// The most objects, of all kinds together, that are counted.
pub const OBJECTS_MAX: usize = 1 << 21;
/// Categories whose objects are counted, and the name of the column a1 if it is such an object.
const OBJECT_COLUMNS: [(u8, &str); 7] =
    [(2, "mutex"), (3, "cond"), (4, "sem"), (5, "rwlock"), (6, "mutex"), (7, "barrier"), (9, "spin")];

/// The counts so far.
#[derive(Debug)]
pub struct TraceCounts {
    /// The files of the trace, which have its processes' commands.
    pub groups: Vec<FileGroup>,
    /// How many runs there are, if known.
    pub runs: Option<usize>,
    /// A line for each run, if there are several.
    pub run_lines: String,
    /// How many more processes each process ID stands for, if there are any.
    pub shared_numbers: BTreeMap<u32, usize>,
    /// They are printed as a JSON document, not as tables.
    pub as_document: bool,
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
    /// Semaphores that were initialised or opened, by process ID and address, and whether processes share them.
    semaphores: HashMap<(u32, u64), bool>,
    wait_rules: EventTable<WaitRule>,
    open_calls: OpenCalls<CallEntry>,
    /// Until when open calls lasted, if conditions on calls selected them.
    selected_open: OpenCallTable,
    /// Until when processes have run that run still.
    running: HashMap<u32, u64>,
    /// Lost records that no loss record counts, by process ID, of processes that were selected.
    unreported_losses: Vec<(u32, u64)>,
}

/// What the counts need of an entry record.
#[derive(Clone, Copy, Debug)]
struct CallEntry {
    time: u64,
    shows_wait: bool,
}

#[derive(Debug, Default)]
pub struct ProcessCounts {
    pub threads: HashSet<u32>,
    /// Records of all its threads.
    pub records: u64,
    /// Lost records, according to the loss records, and those that a process lost before it died without writing one.
    pub lost: u64,
    /// The times of the first and the last record.
    pub span: (u64, u64),
}

#[derive(Debug, Default)]
pub struct EventCounts {
    pub records: u64,
    /// Its calls: a call with two records counts once, and so does one of which only one of them was selected.
    pub calls: u64,
    /// Calls that waited, as `--blocked` selects them.
    pub blocked: u64,
    /// Calls with an entry record only.
    pub open: u64,
    /// The sum of the times that its calls lasted, of open ones until
    /// the present if their process runs, else until its last record.
    pub nanoseconds: u64,
}

impl TraceCounts {
    /// Counts of zero for a trace in `groups`, which have this many `runs`.
    pub fn new(groups: Vec<FileGroup>, runs: Option<usize>) -> TraceCounts {
        TraceCounts {
            groups,
            runs,
            run_lines: String::new(),
            shared_numbers: BTreeMap::new(),
            as_document: false,
            table: RecordKindTable::default(),
            records: 0,
            processes: HashMap::new(),
            events: HashMap::new(),
            objects: HashMap::new(),
            object_count: 0,
            semaphores: HashMap::new(),
            wait_rules: wait_rules(),
            open_calls: OpenCalls::default(),
            selected_open: OpenCallTable::default(),
            running: HashMap::new(),
            unreported_losses: Vec::new(),
        }
    }

    /// With what is known of open calls, and of processes that run.
    pub fn with_open_calls(mut self, selected_open: OpenCallTable, running: Vec<(u32, u64)>) -> TraceCounts {
        (self.selected_open, self.running) = (selected_open, running.into_iter().collect());
        self
    }

    /// With the records that processes lost before they died, which no loss record counts. Nobody knows when and in which
    /// thread, so only the choice of processes applies to them.
    pub fn with_unreported_losses(mut self, losses: Vec<(u32, u64)>) -> TraceCounts {
        self.unreported_losses = losses;
        self
    }

    /// Adds those losses to the counts of their processes.
    pub fn count_unreported_losses(&mut self) {
        // A process of whose records none was counted has no line of its own: its losses stay in the list.
        self.unreported_losses.retain(|(pid, lost)| match self.processes.get_mut(pid) {
            Some(process) => {
                process.lost += lost;
                false
            }
            None => true,
        });
    }

    /// Lost records of all processes.
    pub fn lost(&self) -> u64 {
        let of_processes = self.processes.values().map(|process| process.lost);
        of_processes.chain(self.unreported_losses.iter().map(|(_, lost)| *lost)).sum()
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
        self.events.entry(event).or_default().records += 1;
        self.count_call(fields);
        self.count_object(fields, pid);
    }

    /// Counts the call of a record: when it returns, or when it has only one record.
    fn count_call(&mut self, fields: &Fields) {
        let (event, which) = (fields.event(), fields.which());
        if event == TRACE_STACK {
            return;
        }
        let call = CallKey::of(fields.line(), (event.0, event.1, which));
        let rule = self.wait_rules.get(event.0, event.1);
        let shows_wait = rule.record_shows_wait(which, fields.line());
        let counts = self.events.entry(event).or_default();
        match which {
            1 => {
                self.open_calls.begin(call, CallEntry { time: fields.time(), shows_wait });
                if self.open_calls.len() > OPEN_CALLS_MAX {
                    self.count_open_calls();
                }
            }
            2 => {
                let entry = self.open_calls.end(call);
                let duration = entry.map_or(0, |entry| fields.time().saturating_sub(entry.time));
                counts.calls += 1;
                counts.nanoseconds = counts.nanoseconds.saturating_add(duration);
                let entry_shows_wait = entry.is_some_and(|entry| entry.shows_wait);
                counts.blocked += u64::from(rule.waited(entry_shows_wait, shows_wait, duration));
            }
            _ => counts.calls += 1,
        }
    }

    /// How many objects of a category there are. A semaphore that processes share is one object of the process that made it and
    /// of those that descend from that; `parent` returns a process's parent.
    pub fn count_objects(&self, category: u8, parent: impl Fn(u32) -> Option<u32>) -> usize {
        let Some(objects) = self.objects.get(&category) else { return 0 };
        if category != id::SEMA_INIT.event().category {
            return objects.len();
        }
        let maker = |&(pid, address): &(u32, u64)| {
            let mut ancestor = pid;
            // A damaged trinfo can make a circle.
            for _ in 0..=self.processes.len() {
                match self.semaphores.get(&(ancestor, address)) {
                    Some(true) => return (ancestor, address),
                    Some(false) => break,
                    None => match parent(ancestor) {
                        Some(parent) => ancestor = parent,
                        None => break,
                    },
                }
            }
            (pid, address)
        };
        objects.iter().map(maker).collect::<HashSet<_>>().len()
    }

    /// True if the calls of an event can wait.
    pub fn can_wait(&self, (category, number): (u8, u8)) -> bool {
        self.wait_rules.get(category, number).can_wait()
    }

    /// Counts the calls without a return record. Those that can wait do wait.
    pub fn count_open_calls(&mut self) {
        for (call, CallEntry { time, .. }) in std::mem::take(&mut self.open_calls).into_open_calls() {
            let last_record = || self.processes.get(&call.pid).map(|process| process.span.1);
            let selected = self.selected_open.find(call, time).map(|until| until.time);
            let until = selected.or_else(|| self.running.get(&call.pid).copied()).or_else(last_record).unwrap_or(time);
            let counts = self.events.entry((call.category, call.number)).or_default();
            counts.calls += 1;
            counts.open += 1;
            counts.blocked += u64::from(self.wait_rules.get(call.category, call.number).can_wait());
            counts.nanoseconds = counts.nanoseconds.saturating_add(until.saturating_sub(time));
        }
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
            if fields.argument(4) == b"0" {
                if fields.event() == numbers(id::SEMA_INIT) {
                    self.semaphores.insert((pid, address), fields.argument(1) != b"0");
                } else if fields.event() == numbers(id::SEMA_OPEN) {
                    self.semaphores.insert((pid, address), true);
                }
            }
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
