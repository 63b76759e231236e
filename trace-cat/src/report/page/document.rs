//! The report as a JSON document. Times are nanoseconds since `origin`, durations nanoseconds. What is not known is null.

use std::io;

use serde_json::{Map, Value, json};
use spec::record::NANOS_PER_SECOND;

use super::document_sink::{DocumentSink, DocumentText};
use super::object_rows::{ListedObjects, ObjectRow};
use super::path_summary::{path_entry, selected_paths};
use super::view::{PairRow, ReportView, SiteRow};
use crate::options::ReportTable;
use crate::report::contention::{BlockedThread, ChainEnd, ImageEnd};
use crate::report::critical_path::CriticalPath;
use crate::symbols::CodeFrame;

/// The version of the document.
const FORMAT: u32 = 1;
/// The most entries of a list.
pub const LIST_MAX: usize = 10_000;

/// Writes the document.
///
/// # Errors
/// Those of `write`.
pub fn write_document(view: &ReportView, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut text = DocumentText::new(&mut write);
    Document::new(view, &ListedObjects::separate(view), [LIST_MAX; 2]).add_to(&mut text)?;
    text.finish()
}

/// The document with lists of at most so many entries, of holders and wakers of an object at most the second number. The lives of an
/// object are one.
pub fn summed_document(view: &ReportView, objects: &ListedObjects, most: [usize; 2]) -> Map<String, Value> {
    let mut members = Map::new();
    let added = Document::new(view, objects, most).add_to(&mut members);
    added.expect("memory takes all");
    members
}

/// Gives the first `top` rows of a table, as the document has them, one after the other: a hundred thousand take much memory.
pub fn for_each_row(view: &ReportView, table: ReportTable, top: usize, take: impl FnMut(Value)) {
    let objects = ListedObjects::separate(view);
    let mut document = Document::new(view, &objects, [top, LIST_MAX]);
    match table {
        ReportTable::Object => document.rows().map(|row| document.object(row)).for_each(take),
        ReportTable::Thread => document.list("threads", &view.threads, Document::thread).for_each(take),
        ReportTable::Site => document.list("sites", &view.sites(), Document::site).for_each(take),
        ReportTable::Pair => document.rows_of_pairs().iter().map(|pair| document.pair(pair)).for_each(take),
    }
}

pub struct Document<'a> {
    pub view: &'a ReportView<'a>,
    /// The time of the first record.
    origin: u64,
    /// The most entries of a list.
    list_max: usize,
    /// The same of an object's lists of holders and wakers.
    pub callers_max: usize,
    objects: &'a ListedObjects,
    /// How many entries each list lacks.
    left_out: Map<String, Value>,
}

impl<'a> Document<'a> {
    fn new(view: &'a ReportView<'a>, objects: &'a ListedObjects, most: [usize; 2]) -> Document<'a> {
        let [list_max, callers_max] = most;
        let origin = view.analysis.span.map_or(0, |span| span.0);
        Document { view, origin, list_max, callers_max, objects, left_out: Map::new() }
    }

    /// Adds all members. What is left out comes last, when that is known.
    fn add_to(mut self, sink: &mut impl DocumentSink) -> io::Result<()> {
        let view = self.view;
        let [thread_time, contention, idleness] = view.thread_sums();
        let origin = format!("{:010}.{:09}", self.origin / NANOS_PER_SECOND, self.origin % NANOS_PER_SECOND);
        let span = view.analysis.span;
        let times = &view.analysis.selection.times;
        let given = |time: u64, default: u64| (time != default).then(|| self.time(time));
        for (name, value) in [
            ("format", json!(FORMAT)),
            ("origin", json!(span.map(|_| origin))),
            ("span", json!(span.map(|(start, end)| end - start))),
            ("thread_time", json!(thread_time)),
            ("contention", json!(contention)),
            ("idleness", json!(self.idleness(idleness))),
            ("since", json!(given(times.start, 0))),
            ("until", json!(given(times.end, u64::MAX))),
        ] {
            sink.member(name, value)?;
        }
        sink.list("processes", self.processes().into_iter())?;
        sink.list("incomplete", self.incomplete().into_iter())?;
        self.leave_out_inner_lists();
        let rows = self.objects.rows.len();
        self.leave_out("objects", rows.saturating_sub(self.list_max) as u64);
        sink.list("objects", self.rows().map(|row| self.object(row)))?;
        sink.list("threads", self.list("threads", &view.threads, Document::thread))?;
        let sites = view.sites();
        self.leave_out("sites.calls", view.analysis.sites.calls_at_others());
        sink.list("sites", self.list("sites", &sites, Document::site))?;
        drop(sites);
        let pairs = self.rows_of_pairs();
        sink.list("pairs", pairs.iter().map(|pair| self.pair(pair)))?;
        drop(pairs);
        sink.list("deadlocks", self.deadlocks().into_iter())?;
        sink.list("stuck", self.stuck().into_iter())?;
        let cycles = self.cycles();
        sink.member("cycles", json!(cycles))?;
        sink.list("misuse", self.misuse().into_iter())?;
        let paths = selected_paths(view);
        let entry = |document: &Document, path: &&CriticalPath| path_entry(view, document.objects, path, LIST_MAX);
        sink.list("critical_path", self.list("critical_path", &paths, entry))?;
        if let Some(comparison) = &view.comparison {
            let against = self.against(comparison);
            sink.member("against", against)?;
        }
        sink.member("left_out", self.left_out.into())
    }

    /// Counts what lists within the entries of objects lack.
    fn leave_out_inner_lists(&mut self) {
        let (mut blamed, mut wakers) = (0, 0);
        for index in self.rows().flat_map(|row| &row.objects) {
            let figures = &self.view.object(*index).figures;
            (blamed, wakers) =
                (blamed + surplus(figures.blamed.in_order()), wakers + surplus(figures.wakers.in_order()));
        }
        let limits = &self.view.analysis.blame_limits;
        self.leave_out("objects.blamed", limits.blamed_left_out + blamed);
        self.leave_out("objects.wakers", limits.wakers_left_out + wakers);
    }

    /// The listed objects.
    fn rows(&self) -> impl Iterator<Item = &ObjectRow> {
        self.objects.rows.iter().take(self.list_max)
    }

    /// The name by which an object is listed.
    pub fn object_name(&self, index: u32) -> String {
        self.objects.name(self.view, index)
    }

    /// At most `list_max` entries of a list, the others of which are counted.
    pub fn list<'b, T>(
        &'b mut self,
        name: &str,
        entries: &'b [T],
        entry: impl Fn(&Self, &T) -> Value + 'b,
    ) -> impl Iterator<Item = Value> + 'b {
        self.leave_out(name, entries.len().saturating_sub(self.list_max) as u64);
        let document: &'b Document<'a> = self;
        entries.iter().take(document.list_max).map(move |value| entry(document, value))
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
        let entries = self.list("processes", &indexes, |document, index| {
            let process = &document.view.analysis.processes[*index as usize];
            let recorded = document.view.recorded.get(&process.pid);
            let program = recorded.and_then(|recorded| recorded.program(document.view.image(process)));
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
                "command": document.view.known.get(&process.pid).map(|_| document.view.command(process)),
                "begin": document.time(process.begin),
                "end": has_end.then(|| document.time(process.last)),
                "last_seen": document.time(process.last),
                "ended": ended,
                "threads": process.threads.len(),
                "records": process.records,
                "lost": process.lost,
            })
        });
        entries.collect()
    }

    fn incomplete(&self) -> Vec<Value> {
        let analysis = self.view.analysis;
        let entry = |kind: &str, pid: Option<u32>, until: Option<u64>, count: Option<u64>| json!({ "kind": kind, "pid": pid, "thread": null, "from": null, "until": until, "count": count });
        // A wait that lasts, of a thread or of some of a process.
        let wait = |kind: &str, (pid, thread): (u32, Option<u32>), from: Option<u64>, count: Option<usize>| {
            let from = from.map(|from| self.time(from));
            json!({ "kind": kind, "pid": pid, "thread": thread, "from": from, "until": null, "count": count })
        };
        let of_thread = |thread: u32| (self.pid(thread), Some(self.lwp(thread)));
        let unread = self.view.unread_processes().into_iter();
        let mut entries: Vec<Value> = unread.map(|pid| entry("lost", Some(pid), None, None)).collect();
        for process in &analysis.processes {
            let pid = Some(process.pid);
            if process.lost > 0 || process.lacks_newest {
                // Of what nobody can read nobody knows how much it is.
                let count = Some(process.lost).filter(|_| !process.lacks_newest);
                entries.push(entry("lost", pid, None, count));
            }
            if process.changes > 0 {
                entries.push(entry("changed", pid, None, Some(process.changes)));
            }
            let recorded = self.view.recorded.get(&process.pid);
            // What is complete from no time on may have no rings, but losses.
            let has_ring = process.complete_from < u64::MAX || recorded.is_none_or(|recorded| recorded.ring.is_some());
            if process.complete_from > 0 && has_ring {
                let until = (process.complete_from < u64::MAX).then(|| self.time(process.complete_from));
                entries.push(entry("ring", pid, until, None));
            }
            if process.knowledge.only_blocked {
                entries.push(entry("level", pid, None, None));
            }
            if process.knowledge.lacks_settings {
                entries.push(entry("settings", pid, None, None));
            }
            let mut unknown = self.view.graph.unknown_holders.iter().filter(|unknown| !unknown.waits.is_empty());
            let waits = unknown.any(|unknown| self.view.pid(unknown.process) == process.pid);
            let knowledge = &process.knowledge;
            if knowledge.is_partial || knowledge.misses_waits || knowledge.misses_forks && waits {
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
        let graph = self.view.graph;
        for unknown in graph.unknown_holders.iter().filter(|unknown| !unknown.waits.is_empty()) {
            let from = unknown.waits.iter().map(|(_, call)| call.entry).min();
            entries.push(wait("holder", (self.view.pid(unknown.process), None), from, Some(unknown.waits.len())));
        }
        let routines = graph.unknown_routines.iter();
        entries.extend(routines.map(|(thread, call)| wait("routine", of_thread(*thread), Some(call.entry), None)));
        for circle in &graph.undecided {
            let value = |kind: &str, blocked: &BlockedThread| {
                wait(kind, of_thread(blocked.thread), Some(blocked.call.entry), Some(circle.len()))
            };
            let may_have_left = circle.iter().filter(|blocked| blocked.may_have_left(analysis));
            entries.extend(may_have_left.map(|blocked| value("jump", blocked)));
            entries.extend(
                circle.iter().filter(|one| one.doubtful_owner.is_some()).map(|blocked| value("owner", blocked)),
            );
        }
        let perhaps_stuck = graph.perhaps_stuck.iter();
        entries.extend(perhaps_stuck.map(|stuck| {
            let kind = match stuck.end {
                ChainEnd::Cancelled(..) => "cancelled",
                ChainEnd::Left(..) => "left",
                ChainEnd::MayBeWoken { .. } => "waker",
                ChainEnd::Robust(_) => "robust",
                ChainEnd::Killed(_) => "killed",
                ChainEnd::HandedOn(_) => "unlocked",
                _ => "ending",
            };
            wait(kind, of_thread(stuck.thread), Some(stuck.call.entry), None)
        }));
        entries
    }

    fn thread(&self, index: &u32) -> Value {
        let thread = self.view.thread(*index);
        let process = &self.view.analysis.processes[thread.process as usize];
        let has_end = thread.has_ended() || matches!(process.end, ImageEnd::Exit | ImageEnd::Exec);
        json!({
            "thread": thread.lwp,
            "pid": process.pid,
            "name": self.view.thread_name(*index),
            "start": thread.start.map(|start| self.view.function_name(thread.process, start, thread.begin)),
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

    /// The listed pairs; the others are counted.
    fn rows_of_pairs(&mut self) -> Vec<PairRow> {
        let mut pairs = self.objects.pairs(self.view);
        let left_out = self.view.analysis.blame_limits.pairs_left_out;
        self.leave_out("pairs", left_out + pairs.len().saturating_sub(self.list_max) as u64);
        pairs.truncate(self.list_max);
        pairs
    }

    fn pair(&self, row: &PairRow) -> Value {
        json!({
            "waiter": self.lwp(row.waiter),
            "holder": self.lwp(row.holder),
            "object": self.object_name(row.object),
            "waits": row.waits,
            "waited": row.waited,
        })
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
