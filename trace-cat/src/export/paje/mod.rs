//! `-F paje`: the format of Paje, for ViTE and pj_dump.
//!
//! ```text
//! Trace              counters of waiting threads
//! └─ Process         a container for each, also for the most contended objects, with their counters
//!    └─ Thread       states: not waiting, and waits, spans and functions on top of that; marks; arrows between threads
//!       └─ Lane      states: holds, waits in signal handlers that interrupted a wait, and spans that do not nest
//! ```
//!
//! A Paje trace is in the order of time, but intervals are known when they end: all is sorted, and written in the end. Each lane
//! has one interval at a time. Times are seconds since the trace's first record.

mod item;
mod writer;

use std::collections::HashMap;
use std::io;

use foldhash::fast::RandomState;

use super::program_event::{ProgramEvent, ProgramSpan, ProgramText};
use super::scene::TimelineScene;
use super::sink::TimelineSink;
use super::timeline_export::ByteConsumer;
use super::waiting_counts::{CounterSample, CounterSubject};
use crate::report::contention::{TimelineEvent, WaitInterval};
use crate::support::external_sort::ExternalSort;
use item::{ALL_OTHERS, ALL_WAITING, FlowKind, ItemKind, MarkKind, NONE, PajeItem};
use writer::PajeWriter;

/// Bytes of items that are in memory at most.
const SORT_MEMORY: usize = 64 << 20;
/// The format `paje`.
pub struct PajeTimeline {
    start: u64,
    items: ExternalSort<(u64, u8)>,
    /// What is unusual about intervals; the first note is none.
    notes: Vec<&'static str>,
    /// What events of programs are called: those of processes with these IDs.
    texts: Vec<(u32, ProgramText)>,
    text_places: HashMap<(u32, ProgramText), u32, RandomState>,
    /// The times between which each thread has intervals.
    spans: Vec<Option<(u64, u64)>>,
    /// The first failure of a temporary file.
    error: Option<io::Error>,
}

impl Default for PajeTimeline {
    fn default() -> PajeTimeline {
        let items = ExternalSort::new(PajeItem::sort_key, SORT_MEMORY);
        PajeTimeline {
            start: 0,
            items,
            notes: vec![""],
            texts: Vec::new(),
            text_places: HashMap::default(),
            spans: Vec::new(),
            error: None,
        }
    }
}

impl PajeTimeline {
    fn push(&mut self, item: PajeItem) {
        if let Err(error) = self.items.push(&item.to_bytes()) {
            self.error.get_or_insert(error);
        }
    }

    /// Adds an interval to what its thread's life is around.
    fn extend_span(&mut self, thread: u32, from: u64, to: u64) {
        let index = thread as usize;
        self.spans.resize(self.spans.len().max(index + 1), None);
        let span = self.spans[index].get_or_insert((from, to));
        *span = (span.0.min(from), span.1.max(to));
    }

    fn push_interval(&mut self, item: PajeItem, is_cut: (bool, bool), note: Option<&'static str>) {
        let place = note.map_or(0, |note| {
            let known = self.notes.iter().position(|known| *known == note);
            known.unwrap_or_else(|| {
                self.notes.push(note);
                self.notes.len() - 1
            })
        });
        let PajeItem { thread, subject, from, to, .. } = item;
        self.extend_span(thread, from, to);
        self.push(PajeItem { note: place as u8, ..item });
        if is_cut.0 {
            self.push_mark(thread, from, MarkKind::BeganEarlier, subject);
        }
        if is_cut.1 {
            self.push_mark(thread, to, MarkKind::EndsLater, subject);
        }
    }

    /// The place of a text of the program of the process with this ID.
    fn text(&mut self, pid: u32, text: ProgramText) -> u32 {
        *self.text_places.entry((pid, text)).or_insert_with(|| {
            self.texts.push((pid, text));
            self.texts.len() as u32 - 1
        })
    }

    fn push_mark(&mut self, thread: u32, time: u64, mark: MarkKind, subject: u32) {
        let (kind, from, to) = (ItemKind::Mark, time, time);
        self.push(PajeItem { kind, note: 0, from, to, thread, subject, other: mark as u32, site: 0 });
    }

    fn push_flow(&mut self, (thread, from): (u32, u64), (subject, to): (u32, u64), flow: FlowKind) {
        let (kind, from) = (ItemKind::Flow, from.min(to));
        self.push(PajeItem { kind, note: 0, from, to, thread, subject, other: flow as u32, site: 0 });
    }

    fn push_wait(&mut self, wait: &WaitInterval, scene: &TimelineScene) {
        let WaitInterval { thread, object, site, from, to, holder, .. } = *wait;
        let (subject, other) = (object.unwrap_or(NONE), holder.unwrap_or(NONE));
        let kind = if wait.is_contention { ItemKind::Contention } else { ItemKind::Wait };
        let item = PajeItem { kind, note: 0, from, to, thread, subject, other, site };
        self.push_interval(item, wait.is_cut, wait.note());
        // A join has an arrow of its own.
        let waker = wait.waker.filter(|_| object.is_some() && !wait.is_cut.1 && !wait.is_open);
        if let Some(waker) = waker.filter(|waker| scene.names.analysis.selection.times.contains(&waker.time)) {
            self.push_flow((waker.thread, waker.time), (thread, to), FlowKind::EndsWait);
        }
    }
}

impl TimelineSink for PajeTimeline {
    fn begin(&mut self, start: u64, _out: &mut Vec<u8>) {
        self.start = start;
    }

    fn program_event(&mut self, event: &ProgramEvent, scene: &TimelineScene, _out: &mut Vec<u8>) {
        let thread = event.thread();
        let pid = scene.process_of(thread).pid;
        match *event {
            ProgramEvent::Span(span) => {
                let (kind, subject, ProgramSpan { from, to, lane, .. }) =
                    (ItemKind::Span, self.text(pid, span.text), span);
                let item = PajeItem { kind, note: 0, from, to, thread, subject, other: lane, site: 0 };
                self.push_interval(item, (false, false), span.note());
            }
            ProgramEvent::Mark { time, text, values, .. } => {
                let (kind, subject) = (ItemKind::ProgramMark, self.text(pid, text));
                let (from, to) = (time, values[0] as u64);
                self.push(PajeItem { kind, note: 0, from, to, thread, subject, other: NONE, site: 0 });
            }
            ProgramEvent::Count { time, text, value, .. } => {
                let (kind, subject) = (ItemKind::ProgramSample, self.text(pid, text));
                let (from, to) = (time, value as u64);
                self.push(PajeItem { kind, note: 0, from, to, thread, subject, other: NONE, site: 0 });
            }
            ProgramEvent::MissingBegin { time, text, .. } => {
                let subject = self.text(pid, text);
                self.push_mark(thread, time, MarkKind::MissingBegin, subject);
            }
        }
    }

    fn event(&mut self, event: &TimelineEvent, scene: &TimelineScene, _out: &mut Vec<u8>) {
        let number = |(category, number): (u8, u8)| u32::from(category) * 100 + u32::from(number);
        match *event {
            TimelineEvent::ThreadBegin { .. } | TimelineEvent::ProcessEnd { .. } => {}
            TimelineEvent::ThreadEnd { thread, time } => {
                let times = &scene.names.analysis.selection.times;
                let begin = scene.thread(thread).begin.max(times.start);
                self.extend_span(thread, begin, time.min(times.end).max(begin));
                let Some((from, to)) = self.spans[thread as usize] else { return };
                let (kind, subject, other) = (ItemKind::Life, NONE, NONE);
                self.push(PajeItem { kind, note: 0, from, to, thread, subject, other, site: 0 });
            }
            TimelineEvent::Wait(wait) => self.push_wait(&wait, scene),
            TimelineEvent::Hold(hold) => {
                let (kind, subject, site) = (ItemKind::Hold, hold.object, hold.site);
                let (thread, from, to) = (hold.thread, hold.from, hold.to);
                let item = PajeItem { kind, note: 0, from, to, thread, subject, other: NONE, site };
                self.push_interval(item, hold.is_cut, hold.note());
            }
            TimelineEvent::LostHold { thread, object, from, .. } => {
                self.push_mark(thread, from, MarkKind::LostHold, object)
            }
            TimelineEvent::Creation { creator, created, time } => {
                self.push_flow((creator, time), (created, scene.thread(created).begin), FlowKind::Creates);
            }
            TimelineEvent::Join { joiner, joined, time } => {
                self.push_flow((joined, scene.thread(joined).last), (joiner, time), FlowKind::IsJoined);
            }
            TimelineEvent::Fork { parent, child, forked_at, time } => {
                self.push_flow((parent, forked_at.unwrap_or(time)), (child, time), FlowKind::Forks);
            }
            TimelineEvent::Loss { thread, time, lost: 0 } => self.push_mark(thread, time, MarkKind::Change, 0),
            TimelineEvent::Loss { thread, time, lost } => {
                self.push_mark(thread, time, MarkKind::Loss, u32::try_from(lost).unwrap_or(u32::MAX));
            }
            TimelineEvent::LossEnd { thread, time } => self.push_mark(thread, time, MarkKind::LossEnd, 0),
            TimelineEvent::MissingEntry { thread, time, event } => {
                self.push_mark(thread, time, MarkKind::MissingEntry, number(event));
            }
            TimelineEvent::MissingReturn { thread, time, event } => {
                self.push_mark(thread, time, MarkKind::MissingReturn, number(event));
            }
        }
    }

    fn count(&mut self, sample: &CounterSample, _scene: &TimelineScene, _out: &mut Vec<u8>) {
        let subject = match sample.subject {
            CounterSubject::WaitingFor(object) => object,
            CounterSubject::Waiting => ALL_WAITING,
            CounterSubject::NotWaiting => ALL_OTHERS,
        };
        let (kind, from, to) = (ItemKind::Sample, sample.time, sample.value);
        self.push(PajeItem { kind, note: 0, from, to, thread: NONE, subject, other: NONE, site: 0 });
    }

    fn end(&mut self, scene: &TimelineScene, write: &mut ByteConsumer) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let items = std::mem::replace(&mut self.items, ExternalSort::new(PajeItem::sort_key, 0));
        let mut writer = PajeWriter::new(self.start, (&self.notes, &self.texts), &self.spans, scene, write);
        items.finish(&mut |bytes| writer.put(&PajeItem::of_bytes(bytes)))?;
        writer.finish()
    }
}
