//! Runs the analysis and gives what is drawn to a format.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use spec::tables::USER;

use super::event_selection::EventSelection;
use super::scene::TimelineScene;
use super::sink::TimelineSink;
use super::waiting_counts::WaitingCounts;
use crate::report::contention::{Analysis, ImageEnd, NumericRecord, TimelineEvent};
use crate::report::object_names::ObjectNames;
use crate::report::recorded_process::RecordedProcess;
use crate::report::trace_names::{TraceNames, name_futex_site};
use crate::symbols::Symbolizer;

/// The way from records to a format.
pub struct TimelineExport {
    analysis: Analysis,
    selection: EventSelection,
    recorded: HashMap<u32, RecordedProcess>,
    symbols: Symbolizer,
    object_names: RefCell<ObjectNames>,
    counts: WaitingCounts,
    sink: Box<dyn TimelineSink>,
    has_begun: bool,
    /// Something selected was drawn.
    pub has_drawn: bool,
}

/// Where the bytes of a format go.
pub type ByteConsumer<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

impl TimelineExport {
    /// An export of what `analysis`, which has no record yet, and `selection` select.
    pub fn new(
        mut analysis: Analysis,
        selection: EventSelection,
        recorded: HashMap<u32, RecordedProcess>,
        symbols: Symbolizer,
        sink: Box<dyn TimelineSink>,
    ) -> TimelineExport {
        analysis.begin_timeline();
        TimelineExport {
            analysis,
            selection,
            recorded,
            symbols,
            object_names: RefCell::default(),
            counts: WaitingCounts::new(),
            sink,
            has_begun: false,
            has_drawn: false,
        }
    }

    /// Appends the next record, in the order of time, in the sink's format.
    ///
    /// # Errors
    /// The failure of a temporary file.
    pub fn add(&mut self, record: &NumericRecord, out: &mut Vec<u8>) -> io::Result<()> {
        if !self.has_begun {
            self.has_begun = true;
            self.sink.begin(record.time, out);
        }
        self.analysis.add(record);
        name_futex_site(&mut self.analysis, &self.recorded, &self.symbols);
        // Others are drawn by what they lead to.
        if record.event.0 >= USER {
            let thread = self.analysis.thread_of_record(record);
            if let Some(thread) = thread.filter(|thread| self.selection.wants_record(record, *thread, &self.analysis)) {
                let scene = scene(&self.analysis, &self.recorded, &self.symbols, &self.object_names);
                self.sink.record(record, thread, &scene, out);
            }
        }
        self.draw(out)
    }

    /// Takes what a process's trinfo shows by now; before its first record the first time.
    pub fn know(&mut self, pid: u32, recorded: RecordedProcess) {
        self.analysis.knowledge.insert(pid, recorded.knowledge);
        self.recorded.insert(pid, recorded);
    }

    /// Appends the beginnings of what goes on at `now`, so that a file whose trace grows shows it.
    pub fn append_open(&mut self, now: u64, out: &mut Vec<u8>) {
        let scene = scene(&self.analysis, &self.recorded, &self.symbols, &self.object_names);
        for thread in 0..self.analysis.threads.len() as u32 {
            let process = &self.analysis.processes[self.analysis.threads[thread as usize].process as usize];
            if process.end == ImageEnd::Exec {
                continue;
            }
            for interval in self.analysis.open_intervals(thread, now) {
                if self.selection.wants(&interval, &self.analysis) {
                    self.sink.open_interval(&interval, &scene, out);
                }
            }
        }
        self.sink.moment(&scene, out);
    }

    /// Gives the sink what the analysis has found.
    fn draw(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(mut events) = self.analysis.timeline.take_if(|events| !events.is_empty()) else { return Ok(()) };
        let scene = scene(&self.analysis, &self.recorded, &self.symbols, &self.object_names);
        for event in events.drain(..).filter(|event| self.selection.wants(event, &self.analysis)) {
            let times = &self.analysis.selection.times;
            match event {
                TimelineEvent::Wait(wait) => self.counts.add_wait(wait.object, wait.from, wait.to)?,
                TimelineEvent::ThreadEnd { thread, time } => {
                    let begin = scene.thread(thread).begin.max(times.start);
                    self.counts.add_life(begin, time.min(times.end).max(begin))?;
                }
                _ => {}
            }
            self.has_drawn |= !matches!(event, TimelineEvent::ThreadBegin { .. } | TimelineEvent::ThreadEnd { .. });
            self.sink.event(&event, &scene, out);
        }
        self.analysis.timeline = Some(events);
        Ok(())
    }

    /// Appends what is behind the last record. `running` are the numbers of the processes that run, each with the present in the
    /// time of its records.
    ///
    /// # Errors
    /// Any failure of the output or of a temporary file.
    pub fn finish(mut self, running: &[(u32, u64)], write: &mut ByteConsumer) -> io::Result<bool> {
        self.analysis.finish(running);
        let mut out = Vec::new();
        self.draw(&mut out)?;
        write(&out)?;
        out.clear();
        let scene = scene(&self.analysis, &self.recorded, &self.symbols, &self.object_names);
        let (counts, sink) = (std::mem::take(&mut self.counts), &mut self.sink);
        counts.finish(&mut |sample| sink.count(&sample, &scene, &mut out))?;
        write(&out)?;
        self.sink.end(&scene, write)?;
        Ok(self.has_drawn)
    }
}

fn scene<'b>(
    analysis: &'b Analysis,
    recorded: &'b HashMap<u32, RecordedProcess>,
    symbols: &'b Symbolizer,
    object_names: &'b RefCell<ObjectNames>,
) -> TimelineScene<'b> {
    TimelineScene { names: TraceNames { analysis, recorded, symbols }, object_names }
}
