//! What the program itself has recorded. A span is written when it has ended.

use super::event_writer::EventType;
use super::message::{CounterDescriptor, TrackDescriptor};
use super::timeline::{LaneContent, PacketText, PerfettoTimeline, Track};
use crate::export::program_event::{ProgramEvent, ProgramSpan, mark_arguments};
use crate::export::scene::TimelineScene;

impl PerfettoTimeline {
    pub(super) fn put_program_event(&mut self, event: &ProgramEvent, scene: &TimelineScene, out: &mut Vec<u8>) {
        let thread = event.thread();
        let pid = scene.process_of(thread).pid;
        match *event {
            ProgramEvent::Span(span) => self.put_span(&span, scene, out),
            ProgramEvent::Mark { time, text, values, .. } => {
                let track = self.thread_track(thread, scene, out);
                let category = self.label(PacketText::Category(text.category()), scene, out);
                let name = self.label(PacketText::Program(pid, text, false, false), scene, out);
                let arguments: Vec<_> = mark_arguments(text, values)
                    .map(|(name, value)| (self.label(PacketText::ArgumentName(name), scene, out), value))
                    .collect();
                let time = self.since_start(time);
                self.writer.begin(EventType::Instant, track, time).name(category, name);
                for (name, value) in arguments {
                    self.writer.number(name, value);
                }
                self.writer.append(out);
            }
            ProgramEvent::Count { time, text, value, .. } => {
                let process = scene.thread(thread).process;
                let track = self.track(Track::UserCounter(pid, text), out, |timeline, out| TrackDescriptor {
                    parent_uuid: timeline.process_track(process, scene, out),
                    name: scene.program_text(pid, text),
                    counter: Some(CounterDescriptor::default()),
                    ..TrackDescriptor::default()
                });
                let time = self.since_start(time);
                self.writer.begin(EventType::Counter, track, time).counter(value as u64).append(out);
            }
            ProgramEvent::MissingBegin { time, text, .. } => {
                let name = format!("{}: no beginning recorded", scene.program_text(pid, text));
                self.put_mark(thread, time, ("missing", name), (None, &[]), scene, out);
            }
        }
    }

    fn put_span(&mut self, span: &ProgramSpan, scene: &TimelineScene, out: &mut Vec<u8>) {
        let (thread, pid) = (span.thread, scene.process_of(span.thread).pid);
        let track = match span.lane {
            0 => self.thread_track(thread, scene, out),
            lane => self.lane_track(thread, (LaneContent::Spans, lane), scene, out),
        };
        let category = self.label(PacketText::Category(span.text.category()), scene, out);
        let name = self.label(PacketText::Program(pid, span.text, span.is_cut.0, span.is_cut.1), scene, out);
        let note = self.argument_labels(&[("note", span.note().map(PacketText::Argument))], scene, out);
        let (from, to) = (self.since_start(span.from), self.since_start(span.to));
        self.writer.begin(EventType::SliceBegin, track, from).name(category, name).arguments(&note).append(out);
        self.writer.begin(EventType::SliceEnd, track, to).append(out);
    }
}
