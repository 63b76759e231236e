//! The report as a JSON document. Times are nanoseconds since `origin`, durations nanoseconds. What is not known is null.

use serde_json::{Map, Value, json};
use spec::record::NANOS_PER_SECOND;

use super::path_summary::{path_entry, selected_paths};
use super::view::{PairRow, ReportView, SiteRow};
use crate::options::ReportTable;
use crate::report::contention::{DurationSummary, Holder, ImageEnd, ObjectKind};
use crate::symbols::CodeFrame;

/// The version of the document.
const FORMAT: u32 = 1;
/// The most entries of a list.
pub const LIST_MAX: usize = 10_000;

/// Appends the document.
pub fn append_document(view: &ReportView, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{:#}\n", document(view)).as_bytes());
}

/// The document.
pub fn document(view: &ReportView) -> Value {
    let mut document = Document::new(view, LIST_MAX);
    let [thread_time, contention, idleness] = view.thread_sums();
    let origin = format!("{:010}.{:09}", document.origin / NANOS_PER_SECOND, document.origin % NANOS_PER_SECOND);
    let processes = document.processes();
    let objects = document.list("objects", &view.objects, Document::object);
    let listed = || view.objects.iter().take(LIST_MAX);
    let blamed: u64 = listed().map(|object| surplus(&view.object(*object).figures.blamed)).sum();
    let limits = &view.analysis.blame_limits;
    document.leave_out("objects.blamed", limits.blamed_left_out + blamed);
    let wakers: u64 = listed().map(|object| surplus(&view.object(*object).figures.wakers)).sum();
    document.leave_out("objects.wakers", limits.wakers_left_out + wakers);
    let threads = document.list("threads", &view.threads, Document::thread);
    let sites = document.sites();
    let pairs = document.pairs();
    let (deadlocks, stuck, cycles) = (document.deadlocks(), document.stuck(), document.cycles());
    let misuse = document.misuse();
    let paths = selected_paths(view);
    let critical_paths =
        document.list("critical_path", &paths, |document, path| path_entry(document.view, path, LIST_MAX));
    let selection = &view.analysis.selection;
    let given = |time: u64, default: u64| (time != default).then(|| document.time(time));
    let [since, until] = [given(selection.times.start, 0), given(selection.times.end, u64::MAX)];
    let comparison = view.comparison.as_ref().map(|comparison| document.against(comparison));
    let mut value = json!({
        "format": FORMAT,
        "origin": view.analysis.span.map(|_| origin),
        "span": view.analysis.span.map(|(start, end)| end - start),
        "thread_time": thread_time,
        "contention": contention,
        "idleness": document.idleness(idleness),
        "since": since,
        "until": until,
        "processes": processes,
        "incomplete": document.incomplete(),
        "objects": objects,
        "threads": threads,
        "sites": sites,
        "pairs": pairs,
        "deadlocks": deadlocks,
        "stuck": stuck,
        "cycles": cycles,
        "misuse": misuse,
        "critical_path": critical_paths,
        "left_out": document.left_out,
    });
    if let Some(comparison) = comparison {
        value["against"] = comparison;
    }
    value
}

/// The first `top` rows of a table, as the document has them.
pub fn table_rows(view: &ReportView, table: ReportTable, top: usize) -> Vec<Value> {
    let mut document = Document::new(view, top);
    match table {
        ReportTable::Object => document.list("objects", &view.objects, Document::object),
        ReportTable::Thread => document.list("threads", &view.threads, Document::thread),
        ReportTable::Site => document.sites(),
        ReportTable::Pair => document.pairs(),
    }
}

pub struct Document<'a> {
    pub view: &'a ReportView<'a>,
    /// The time of the first record.
    origin: u64,
    /// The most entries of a list.
    list_max: usize,
    /// How many entries each list lacks.
    left_out: Map<String, Value>,
}

impl<'a> Document<'a> {
    fn new(view: &'a ReportView<'a>, list_max: usize) -> Document<'a> {
        Document { view, origin: view.analysis.span.map_or(0, |span| span.0), list_max, left_out: Map::new() }
    }

    /// At most `list_max` entries of a list, the others of which are counted.
    pub fn list<T: Copy>(&mut self, name: &str, entries: &[T], entry: impl Fn(&Self, T) -> Value) -> Vec<Value> {
        self.leave_out(name, entries.len().saturating_sub(self.list_max) as u64);
        entries.iter().take(self.list_max).map(|value| entry(self, *value)).collect()
    }

    pub fn leave_out(&mut self, name: &str, count: u64) {
        if count > 0 {
            self.left_out.insert(name.to_owned(), count.into());
        }
    }

    pub fn time(&self, time: u64) -> u64 {
        time.saturating_sub(self.origin)
    }

    /// Idleness, which is not known if it is left out.
    fn idleness(&self, time: u64) -> Option<u64> {
        (!self.view.analysis.selection.only_contention).then_some(time)
    }

    pub fn lwp(&self, thread: u32) -> u32 {
        self.view.thread(thread).lwp
    }

    /// The process of a thread.
    pub fn pid(&self, thread: u32) -> u32 {
        self.view.pid(self.view.thread(thread).process)
    }

    fn processes(&mut self) -> Vec<Value> {
        let wanted = |process: u32| self.view.analysis.selection.wants_process(self.view.pid(process));
        let indexes: Vec<u32> = (0..self.view.analysis.processes.len() as u32).filter(|index| wanted(*index)).collect();
        self.list("processes", &indexes, |document, index| {
            let process = &document.view.analysis.processes[index as usize];
            let recorded = document.view.recorded.get(&process.pid);
            let program = recorded.and_then(|recorded| recorded.program(process.image));
            let ended = match process.end {
                ImageEnd::Exit => Some("exit"),
                ImageEnd::Exec => Some("exec"),
                ImageEnd::Running => Some("running"),
                ImageEnd::Unknown => recorded.filter(|recorded| recorded.has_ends()).map(|_| "killed"),
            };
            let has_end = matches!(process.end, ImageEnd::Exit | ImageEnd::Exec);
            json!({
                "pid": process.pid,
                "image": process.image,
                "exe": program.map(|program| &program.exe),
                "command": document.view.known.get(&process.pid).map(|known| &known.command),
                "begin": document.time(process.begin),
                "end": has_end.then(|| document.time(process.last)),
                "last_seen": document.time(process.last),
                "ended": ended,
                "threads": process.threads.len(),
                "records": process.records,
                "lost": process.lost,
            })
        })
    }

    fn incomplete(&self) -> Vec<Value> {
        let analysis = self.view.analysis;
        let entry = |kind: &str, pid: Option<u32>, until: Option<u64>, count: Option<u64>| json!({ "kind": kind, "pid": pid, "thread": null, "from": null, "until": until, "count": count });
        let mut entries = Vec::new();
        for process in &analysis.processes {
            let pid = Some(process.pid);
            if process.lost > 0 {
                entries.push(entry("lost", pid, None, Some(process.lost)));
            }
            if process.changes > 0 {
                entries.push(entry("changed", pid, None, Some(process.changes)));
            }
            if process.complete_from > 0 {
                let until = (process.complete_from < u64::MAX).then(|| self.time(process.complete_from));
                entries.push(entry("ring", pid, until, None));
            }
            if process.knowledge.only_blocked {
                entries.push(entry("level", pid, None, None));
            }
            if process.knowledge.is_partial {
                entries.push(entry("events", pid, None, None));
            }
        }
        let missing = analysis.missing;
        let counts = [
            ("release", missing.releases),
            ("acquisition", missing.acquisitions),
            ("entry", missing.entries),
            ("return", missing.returns),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        entries.extend(counts.map(|(kind, count)| entry(kind, None, None, Some(count))));
        entries
    }

    fn object(&self, index: u32) -> Value {
        let object = self.view.object(index);
        let figures = &object.figures;
        let has_holds = self.view.has_holds(object);
        let has_blame = ReportView::has_blame(object);
        let only_blocked = self.view.analysis.processes[object.process as usize].knowledge.only_blocked;
        let place = |site: u32| self.view.place(site);
        let blamed = self.view.blamed(index).into_iter().take(LIST_MAX).map(|(Holder { thread, site }, time)| {
            json!({ "thread": self.lwp(thread), "pid": self.pid(thread), "site": place(site), "time": time })
        });
        let blamed: Vec<Value> = blamed.collect();
        let wakers = self.view.wakers(index).into_iter().take(LIST_MAX).map(|((thread, site), count)| {
            json!({ "thread": self.lwp(thread), "pid": self.pid(thread), "site": place(site), "count": count })
        });
        let worst = figures.worst.iter().map(|wait| {
            json!({
                "time": self.time(wait.time),
                "thread": self.lwp(wait.thread),
                "pid": self.pid(wait.thread),
                "waited": wait.waited,
                "holder": wait.holder.map(|holder| self.lwp(holder)),
                "site": place(wait.site),
            })
        });
        let wasted = object.kind == ObjectKind::Cond && !only_blocked;
        let waiters = has_blame.then_some(figures.max_waiters);
        json!({
            "object": self.view.object_name(index),
            "pid": self.view.pid(object.process),
            "address": format!("{:#x}", object.address),
            "kind": object.kind.name(),
            "lock": object.futex_lock().map(|lock| lock.name),
            "name": self.view.source_name(index),
            "site": place(object.site),
            "others": object.others,
            "calls": figures.calls,
            "waits": figures.wait.count(),
            "waited": figures.wait.sum(),
            "failed_tries": figures.failed_tries,
            "timeouts": figures.timeouts,
            "owner_changes": has_holds.then_some(figures.owner_changes),
            "wait": figures.wait.summary().map(summary),
            "holds": has_holds.then(|| figures.hold.count() + figures.lost_holds),
            "held": has_holds.then(|| figures.hold.sum()),
            "hold": figures.hold.summary().filter(|_| has_holds).map(summary),
            "max_waiters": waiters,
            "handoff": has_blame.then_some(figures.handoff),
            "unknown": has_blame.then_some(figures.unknown),
            "blamed": has_blame.then_some(blamed),
            "wakers": wakers.collect::<Vec<Value>>(),
            "wasted_signals": wasted.then_some(figures.wasted_signals),
            "worst": worst.collect::<Vec<Value>>(),
        })
    }

    fn thread(&self, index: u32) -> Value {
        let thread = self.view.thread(index);
        let process = &self.view.analysis.processes[thread.process as usize];
        let has_end = thread.has_exited || matches!(process.end, ImageEnd::Exit | ImageEnd::Exec);
        json!({
            "thread": thread.lwp,
            "pid": process.pid,
            "name": self.view.thread_name(index),
            "start": thread.start.map(|start| self.view.function_name(thread.process, start)),
            "begin": self.time(thread.begin),
            "end": has_end.then(|| self.time(self.view.thread_end(thread))),
            "contention": thread.contention,
            "idleness": self.idleness(thread.idleness),
            "waits": thread.waits,
            "caused": thread.caused,
        })
    }

    fn site(&self, site: &SiteRow) -> Value {
        json!({
            "site": site.place,
            "stack": self.view.frames(site.site).iter().map(frame).collect::<Vec<Value>>(),
            "calls": site.calls,
            "waits": site.waits,
            "contention": site.contention,
            "idleness": self.idleness(site.idleness),
            "held": site.held,
            "blamed": site.blamed,
        })
    }

    fn sites(&mut self) -> Vec<Value> {
        let sites = self.view.sites();
        let rows: Vec<&SiteRow> = sites.iter().collect();
        self.list("sites", &rows, Document::site)
    }

    fn pairs(&mut self) -> Vec<Value> {
        let pairs = self.view.pairs();
        self.leave_out(
            "pairs",
            self.view.analysis.blame_limits.pairs_left_out + pairs.len().saturating_sub(self.list_max) as u64,
        );
        let pair = |row: &PairRow| {
            json!({
                "waiter": self.lwp(row.waiter),
                "holder": self.lwp(row.holder),
                "object": self.view.object_name(row.object),
                "waits": row.waits,
                "waited": row.waited,
            })
        };
        pairs.iter().take(self.list_max).map(pair).collect()
    }
}

/// A function that a site is in.
fn frame(frame: &CodeFrame) -> Value {
    json!({ "function": frame.function, "file": frame.file, "line": frame.line })
}

/// How many entries of an inner list are left out.
pub fn surplus<T>(list: &[T]) -> u64 {
    list.len().saturating_sub(LIST_MAX) as u64
}

fn summary(DurationSummary { mean, p50, p90, p99, max }: DurationSummary) -> Value {
    json!({ "mean": mean, "p50": p50, "p90": p90, "p99": p99, "max": max })
}
