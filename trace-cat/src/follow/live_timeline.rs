//! A timeline for a viewer, of a trace that grows: a file that has the output so far can be opened.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::export::{EventSelection, NameSources, TimelineExport, timeline_sink};
use crate::options::{OutputFormat, Selection};
use crate::output::file_groups;
use crate::record::columns;
use crate::report::contention::{Analysis, NumericRecord};
use crate::report::process_info::processes_in_groups;
use crate::report::recorded_process::RecordedProcess;
use crate::symbols::Symbolizer;
use crate::trace::interned_names::InternedNames;

/// Bytes of records that wait for the rest of their time, or for the next round.
const PENDING_MAX: usize = 1 << 20;
/// How often the beginnings of what goes on are written, nanoseconds.
const MOMENT: u64 = 250_000_000;

/// The way of records to a format. A thread of its own has the analysis, because readers of debug information cannot be shared.
pub struct LiveTimeline {
    requests: Sender<TimelineRequest>,
    /// The bytes that each request leads to.
    answers: Receiver<io::Result<Vec<u8>>>,
    /// Records that are to be sent.
    pending: Vec<u8>,
    /// The latest time of one of them.
    time: u64,
}

/// What the thread gets.
enum TimelineRequest {
    /// The time of the trace's first record, from which the selected times count, and before which time records are left out.
    Begin(u64, u64),
    Records(Vec<u8>),
    /// The present, and the running processes.
    Moment(u64, Vec<(u32, u64)>),
    /// The end, with the running processes.
    End(Vec<(u32, u64)>),
}

impl LiveTimeline {
    /// A timeline of records of `paths`; `None` if the format is none.
    ///
    /// # Errors
    /// There cannot be another thread.
    pub fn new(format: OutputFormat, selection: &Selection, paths: &[PathBuf]) -> io::Result<Option<LiveTimeline>> {
        if !format.is_timeline() {
            return Ok(None);
        }
        let (selection, paths) = (selection.clone(), paths.to_owned());
        let (requests, pending) = channel();
        let (results, answers) = channel();
        let run = move || {
            let mut export = LiveExport {
                format,
                selection,
                paths,
                export: None,
                known: HashMap::new(),
                complete_from: 0,
                time: 0,
                moment: 0,
            };
            for request in pending {
                if results.send(export.answer(request)).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("timeline".to_owned()).spawn(run)?;
        Ok(Some(LiveTimeline { requests, answers, pending: Vec::new(), time: 0 }))
    }

    /// Takes the time of the trace's first record, and before which time records are left out.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn begin(&self, start: u64, complete_from: u64) -> io::Result<()> {
        self.ask(TimelineRequest::Begin(start, complete_from), &mut Vec::new())
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// The failure of a temporary file.
    pub fn add(&mut self, line: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let time = columns::time(line).unwrap_or(0);
        // A stack comes after its record and is needed with it.
        if self.pending.len() >= PENDING_MAX && time > self.time {
            self.take_pending(out)?;
        }
        self.time = self.time.max(time);
        self.pending.extend_from_slice(line);
        Ok(())
    }

    /// Appends what the records so far lead to.
    ///
    /// # Errors
    /// The failure of a temporary file.
    pub fn take_pending(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let records = mem::take(&mut self.pending);
        if records.is_empty() { Ok(()) } else { self.ask(TimelineRequest::Records(records), out) }
    }

    /// Appends what the records so far lead to and, now and then, the beginnings of what goes on at `now` in the processes `running`.
    ///
    /// # Errors
    /// The failure of a temporary file.
    pub fn append_moment(&mut self, now: u64, running: &[(u32, u64)], out: &mut Vec<u8>) -> io::Result<()> {
        self.take_pending(out)?;
        self.ask(TimelineRequest::Moment(now, running.to_owned()), out)
    }

    /// Appends what is behind the last record.
    ///
    /// # Errors
    /// The failure of a temporary file.
    pub fn finish(mut self, running: &[(u32, u64)], out: &mut Vec<u8>) -> io::Result<()> {
        self.take_pending(out)?;
        self.ask(TimelineRequest::End(running.to_owned()), out)
    }

    fn ask(&self, request: TimelineRequest, out: &mut Vec<u8>) -> io::Result<()> {
        let ended = || io::Error::other("the thread of the timeline has ended");
        self.requests.send(request).map_err(|_| ended())?;
        out.append(&mut self.answers.recv().map_err(|_| ended())??);
        Ok(())
    }
}

/// What the thread has.
struct LiveExport {
    format: OutputFormat,
    selection: Selection,
    paths: Vec<PathBuf>,
    /// From the first record on.
    export: Option<TimelineExport>,
    /// The trinfo files of each known process, with their sizes when they were read.
    known: HashMap<u32, Vec<(PathBuf, u64)>>,
    complete_from: u64,
    /// The time of the last record.
    time: u64,
    /// When the beginnings of what goes on were last written.
    moment: u64,
}

impl LiveExport {
    fn answer(&mut self, request: TimelineRequest) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        match request {
            TimelineRequest::Begin(start, complete_from) => {
                let analysis = Analysis::new(HashMap::new(), EventSelection::waits(&self.selection, start));
                let (selection, symbols) = (EventSelection::new(&self.selection), Symbolizer::new(Vec::new(), &[]));
                let (recorded, interned) = (HashMap::new(), InternedNames::new(file_groups(&self.paths)));
                let sources = NameSources { recorded, symbols, interned, objects: RefCell::default() };
                let sink = timeline_sink(self.format);
                self.export = Some(TimelineExport::new(analysis, selection, sources, sink));
                self.complete_from = complete_from;
            }
            TimelineRequest::Records(lines) => self.add(&lines, &mut out)?,
            TimelineRequest::Moment(now, running) if now >= self.moment.saturating_add(MOMENT) => {
                self.learn_changes(running.iter().map(|(pid, _)| *pid).collect());
                self.moment = now;
                if let Some(export) = &mut self.export {
                    export.append_open(now, &mut out);
                }
            }
            TimelineRequest::Moment(..) => {}
            TimelineRequest::End(running) => {
                self.learn_changes(self.known.keys().copied().collect());
                let write = &mut |bytes: &[u8]| {
                    out.extend_from_slice(bytes);
                    Ok(())
                };
                self.export.take().map(|export| export.finish(&running, write)).transpose()?;
            }
        }
        Ok(out)
    }

    fn add(&mut self, lines: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let mut records = Vec::new();
        NumericRecord::append_lines(lines, &mut records);
        // What these are in may be in the place of a library that was closed.
        self.learn_changes(self.known.keys().copied().collect());
        for mut record in NumericRecord::of_bytes(&records) {
            // One that arrived late is drawn where it arrived: what is written stays.
            self.time = record.time.max(self.time);
            record.time = self.time;
            if !self.known.contains_key(&record.pid) {
                self.learn(&[record.pid]);
            }
            if let Some(export) = &mut self.export {
                export.add(&record, out)?;
            }
        }
        Ok(())
    }

    /// Reads the files again of those processes that have executed another program, or got libraries or names.
    fn learn_changes(&mut self, mut pids: Vec<u32>) {
        pids.retain(|pid| self.has_changed(*pid));
        self.learn(&pids);
    }

    /// Whether the trinfo of a known process has grown.
    fn has_changed(&self, pid: u32) -> bool {
        let known = self.known.get(&pid);
        known.is_some_and(|files| {
            files.is_empty()
                || files.iter().any(|(path, size)| fs::metadata(path).is_ok_and(|info| info.len() != *size))
        })
    }

    /// Reads what the files show of these processes.
    fn learn(&mut self, pids: &[u32]) {
        let Some(export) = self.export.as_mut().filter(|_| !pids.is_empty()) else { return };
        let processes = processes_in_groups(&file_groups(&self.paths));
        for pid in pids {
            let info = processes.get(pid);
            let paths = info.map(|info| info.info_paths()).unwrap_or_default();
            // The sizes first: what is appended meanwhile is read again.
            let sizes = paths.into_iter().filter_map(|path| Some((path.clone(), fs::metadata(path).ok()?.len())));
            self.known.insert(*pid, sizes.collect());
            if let Some(info) = info {
                let mut recorded = RecordedProcess::read(info);
                recorded.add_incompleteness(self.complete_from);
                export.know(*pid, recorded);
            }
        }
    }
}
