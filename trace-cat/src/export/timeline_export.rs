//! Runs the analysis and gives what is drawn to a format.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use super::event_selection::EventSelection;
use super::program_event::ProgramEvent;
use super::program_events::ProgramEvents;
use super::scene::TimelineScene;
use super::sink::TimelineSink;
use super::waiting_counts::WaitingCounts;
use crate::report::contention::{Analysis, ImageEnd, NumericRecord, TimelineEvent};
use crate::report::object_names::ObjectNames;
use crate::report::recorded_process::RecordedProcess;
use crate::report::trace_names::{TraceNames, answer_questions};
use crate::symbols::Symbolizer;
use crate::trace::interned_names::InternedNames;

/// The way from records to a format.
pub struct TimelineExport {
    analysis: Analysis,
    selection: EventSelection,
    program_events: ProgramEvents,
    /// Those of the record in progress.
    found: Vec<ProgramEvent>,
    sources: NameSources,
    counts: WaitingCounts,
    sink: Box<dyn TimelineSink>,
    has_begun: bool,
    /// Something selected was drawn.
    pub has_drawn: bool,
}

/// Where names come from.
pub struct NameSources {
    pub recorded: HashMap<u32, RecordedProcess>,
    pub symbols: Symbolizer,
    pub interned: InternedNames,
    pub objects: RefCell<ObjectNames>,
}

/// Where the bytes of a format go.
pub type ByteConsumer<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

impl TimelineExport {
    /// An export of what `analysis`, which has no record yet, and `selection` select.
    pub fn new(
        mut analysis: Analysis,
        selection: EventSelection,
        sources: NameSources,
        sink: Box<dyn TimelineSink>,
    ) -> TimelineExport {
        analysis.begin_timeline();
        TimelineExport {
            analysis,
            selection,
            program_events: ProgramEvents::default(),
            found: Vec::new(),
            sources,
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
        answer_questions(&mut self.analysis, &self.sources.recorded, &self.sources.symbols);
        if let Some(thread) = self.analysis.thread_of_record(record) {
            let names = self.sources.scene(&self.analysis).names;
            self.program_events.add(record, thread, names, &mut self.found);
            self.draw_program_events(out);
        }
        self.draw(out)
    }

    /// Takes what a process's trinfo shows by now; before its first record the first time.
    pub fn know(&mut self, pid: u32, recorded: RecordedProcess) {
        self.analysis.knowledge.insert(pid, recorded.knowledge);
        self.analysis.know_code(pid, recorded.code_of_programs());
        self.sources.recorded.insert(pid, recorded);
    }

    /// Appends the beginnings of what goes on at `now`, so that a file whose trace grows shows it.
    pub fn append_open(&mut self, now: u64, out: &mut Vec<u8>) {
        let scene = self.sources.scene(&self.analysis);
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

    /// Gives the sink what the program itself has recorded.
    fn draw_program_events(&mut self, out: &mut Vec<u8>) {
        let scene = self.sources.scene(&self.analysis);
        for event in self.found.drain(..) {
            if let Some(event) = self.selection.part(&event, &self.analysis) {
                self.has_drawn = true;
                self.sink.program_event(&event, &scene, out);
            }
        }
    }

    /// Gives the sink what the analysis has found.
    fn draw(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(mut events) = self.analysis.timeline.take_if(|events| !events.is_empty()) else { return Ok(()) };
        for event in events.drain(..) {
            if !self.selection.wants(&event, &self.analysis) {
                if let TimelineEvent::Hold(hold) = event {
                    self.sink.left_out_hold(&hold, &self.sources.scene(&self.analysis), out);
                }
                continue;
            }
            if let TimelineEvent::ThreadEnd { thread, time } = event {
                let names = self.sources.scene(&self.analysis).names;
                self.program_events.end_thread(thread, time, names, &mut self.found);
                self.draw_program_events(out);
            }
            let scene = self.sources.scene(&self.analysis);
            let times = &self.analysis.selection.times;
            match event {
                TimelineEvent::Wait(wait) => {
                    self.counts.add_wait(wait.object, wait.is_contention, (wait.from, wait.to))?
                }
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
        let scene = self.sources.scene(&self.analysis);
        let (counts, sink) = (std::mem::take(&mut self.counts), &mut self.sink);
        counts.finish(&mut |sample| sink.count(&sample, &scene, &mut out))?;
        write(&out)?;
        self.sink.end(&scene, write)?;
        Ok(self.has_drawn)
    }
}

impl NameSources {
    pub fn scene<'a>(&'a self, analysis: &'a Analysis) -> TimelineScene<'a> {
        let NameSources { recorded, symbols, interned, objects } = self;
        TimelineScene {
            names: TraceNames { analysis, recorded, symbols },
            object_names: objects,
            interned_names: interned,
        }
    }
}
