//! `-F perfetto`: protobuf packets for the Perfetto UI and its trace processor.
//!
//! ```text
//! process ─► thread           waits, marks, functions
//!            └─► holds        one track or more, each of which nests
//! ```
//!
//! There is one packet sequence, whose clock begins with the first record: times are nanoseconds since then. Texts are interned. A slice is two
//! packets that are written when it ends; Perfetto sorts packets by time and keeps the order of those with one time.

mod event_writer;
mod interned_texts;
mod message;

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::hold_lanes::HoldLanes;
use super::scene::{TimelineScene, missing_text};
use super::sink::TimelineSink;
use super::thread_flow::ThreadFlow;
use super::waiting_counts::{CounterSample, CounterSubject};
use super::wake_flows::{WakeFlow, WakeFlows};
use crate::report::contention::{HoldInterval, NumericRecord, TimelineEvent, WaitInterval};
use crate::report::trace_names::event_name;
use event_writer::{EventType, EventWriter, SEQUENCE};
use interned_texts::{InternedTexts, TextUse};
use message::{
    ClockReading, ClockSnapshot, CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TracePacket,
    TracePacketDefaults, TrackDescriptor,
};

/// `BUILTIN_CLOCK_REALTIME` and `BUILTIN_CLOCK_BOOTTIME`, which is that of Perfetto's timeline; and the sequence's own.
const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;
const SINCE_START: u32 = 64;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const STATE_CLEARED: u32 = 1;

/// A track of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Track {
    Process(u32),
    /// Process and LWP.
    Thread(u32, u32),
    /// Process, LWP and lane.
    Holds(u32, u32, u32),
    Counter(CounterSubject),
}

/// What a text in a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PacketText {
    Category(&'static str),
    ArgumentName(&'static str),
    Argument(&'static str),
    /// An object, or the end of a thread, and which edges cut the wait.
    Wait(Option<u32>, bool, bool),
    Hold(u32, bool, bool),
    Address(u32),
    Place(u32),
    Thread(u32),
    Function(u32, u64),
}

/// The format `perfetto`.
#[derive(Debug, Default)]
pub struct PerfettoTimeline {
    start: u64,
    writer: EventWriter,
    texts: InternedTexts,
    /// The numbers of the texts that are used most.
    labels: HashMap<PacketText, u64, RandomState>,
    tracks: HashMap<Track, u64, RandomState>,
    lanes: HoldLanes,
    flows: WakeFlows,
    /// Since when threads lose records, and how many they have lost.
    losses: HashMap<u32, (u64, u64), RandomState>,
}

impl PerfettoTimeline {
    fn since_start(&self, time: u64) -> u64 {
        time.saturating_sub(self.start)
    }

    fn put_track(&mut self, descriptor: TrackDescriptor, out: &mut Vec<u8>) {
        let track_descriptor = Some(descriptor);
        TracePacket { trusted_packet_sequence_id: SEQUENCE, track_descriptor, ..TracePacket::default() }.append(out);
    }

    /// The number of a track; `describe` makes the description of a new one.
    fn track(
        &mut self,
        track: Track,
        out: &mut Vec<u8>,
        describe: impl FnOnce(&mut PerfettoTimeline, &mut Vec<u8>) -> TrackDescriptor,
    ) -> u64 {
        if let Some(known) = self.tracks.get(&track) {
            return *known;
        }
        let descriptor = describe(self, out);
        let uuid = self.tracks.len() as u64 + 1;
        self.tracks.insert(track, uuid);
        self.put_track(TrackDescriptor { uuid, ..descriptor }, out);
        uuid
    }

    fn process_track(&mut self, process: u32, scene: &TimelineScene, out: &mut Vec<u8>) -> u64 {
        let pid = scene.process(process).pid;
        self.track(Track::Process(pid), out, |_, _| process_descriptor(process, scene))
    }

    fn thread_track(&mut self, thread: u32, scene: &TimelineScene, out: &mut Vec<u8>) -> u64 {
        let (process, lwp) = (scene.thread(thread).process, scene.thread(thread).lwp);
        self.track(Track::Thread(scene.process(process).pid, lwp), out, |timeline, out| {
            let parent_uuid = timeline.process_track(process, scene, out);
            TrackDescriptor { parent_uuid, ..thread_descriptor(thread, scene) }
        })
    }

    fn lane_track(&mut self, thread: u32, lane: u32, scene: &TimelineScene, out: &mut Vec<u8>) -> u64 {
        let (pid, lwp) = (scene.process_of(thread).pid, scene.thread(thread).lwp);
        self.track(Track::Holds(pid, lwp, lane), out, |timeline, out| {
            let parent_uuid = timeline.thread_track(thread, scene, out);
            TrackDescriptor { parent_uuid, name: "holds".to_owned(), ..TrackDescriptor::default() }
        })
    }

    /// The number of what a label says.
    fn label(&mut self, label: PacketText, scene: &TimelineScene, out: &mut Vec<u8>) -> u64 {
        if let Some(known) = self.labels.get(&label) {
            return *known;
        }
        // The dots show in the picture that a slice is cut off.
        let cut = |name: String, begins_before, ends_after| {
            let [before, after] =
                [(begins_before, "… "), (ends_after, " …")].map(|(cut, dots)| if cut { dots } else { "" });
            format!("{before}{name}{after}")
        };
        let (usage, text) = match label {
            PacketText::Category(name) => (TextUse::Category, name.to_owned()),
            PacketText::ArgumentName(name) => (TextUse::ArgumentName, name.to_owned()),
            PacketText::Argument(text) => (TextUse::Argument, text.to_owned()),
            PacketText::Wait(object, before, after) => {
                (TextUse::EventName, cut(scene.wait_name(object), before, after))
            }
            PacketText::Hold(object, before, after) => {
                (TextUse::EventName, cut(format!("hold {}", scene.object_name(object)), before, after))
            }
            PacketText::Address(object) => (TextUse::Argument, format!("{:#x}", scene.object(object).address)),
            PacketText::Place(site) => (TextUse::Argument, scene.place(site).unwrap_or_default()),
            PacketText::Thread(thread) => (TextUse::Argument, scene.names.thread_label(thread)),
            PacketText::Function(process, address) => (TextUse::EventName, scene.names.function_name(process, address)),
        };
        let number = self.texts.number(usage, text, out);
        self.labels.insert(label, number);
        number
    }

    /// Appends a slice. An arrow ends at its beginning, and one begins at its end.
    fn put_slice(
        &mut self,
        track: u64,
        (from, to): (u64, u64),
        (category, name): (u64, u64),
        arguments: &[(u64, u64)],
        flows: (Option<u64>, Option<u64>),
        out: &mut Vec<u8>,
    ) {
        let (from, to) = (self.since_start(from), self.since_start(to));
        self.writer.begin(EventType::SliceBegin, track, from).name(category, name);
        for (name, value) in arguments {
            self.writer.argument(*name, *value);
        }
        if let Some(flow) = flows.0 {
            self.writer.end_of_flow(flow);
        }
        self.writer.append(out);
        self.writer.begin(EventType::SliceEnd, track, to);
        if let Some(flow) = flows.1 {
            self.writer.flow(flow);
        }
        self.writer.append(out);
    }

    /// The arguments of an interval: name and value of each.
    fn arguments(
        &mut self,
        values: [(&'static str, Option<PacketText>); 5],
        scene: &TimelineScene,
        out: &mut Vec<u8>,
    ) -> ([(u64, u64); 5], usize) {
        let (mut arguments, mut count) = ([(0, 0); 5], 0);
        for (name, label) in values {
            let Some(label) = label else { continue };
            arguments[count] = (self.label(PacketText::ArgumentName(name), scene, out), self.label(label, scene, out));
            count += 1;
        }
        (arguments, count)
    }

    fn put_wait(&mut self, wait: &WaitInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        let track = self.thread_track(wait.thread, scene, out);
        let category = self.label(PacketText::Category("wait"), scene, out);
        let name = self.label(PacketText::Wait(wait.object, wait.is_cut.0, wait.is_cut.1 || wait.is_open), scene, out);
        let values = [
            ("object", wait.object.map(PacketText::Address)),
            ("site", Some(PacketText::Place(wait.site)).filter(|_| wait.site > 0)),
            ("held by", wait.holder.map(PacketText::Thread)),
            ("ended by", wait.waker.map(|waker| PacketText::Thread(waker.thread))),
            ("note", wait.note().map(PacketText::Argument)),
        ];
        let (arguments, count) = self.arguments(values, scene, out);
        self.put_slice(track, (wait.from, wait.to), (category, name), &arguments[..count], (None, None), out);
        let Some(waker) = wait.waker else { return };
        if let Some(WakeFlow { flow, needs_source, needs_end }) = self.flows.of_wait(wait, scene) {
            if needs_source {
                let name = format!("ends the wait of {}", scene.names.thread_label(wait.thread));
                self.put_mark(waker.thread, waker.time, ("flow", name), (None, Some(flow)), scene, out);
            }
            if needs_end {
                self.put_mark(wait.thread, wait.to, ("flow", "goes on".to_owned()), (Some(flow), None), scene, out);
            }
        }
    }

    fn put_hold(&mut self, hold: &HoldInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        let lane = self.lanes.place(hold, scene);
        let track = self.lane_track(hold.thread, lane, scene, out);
        let category = self.label(PacketText::Category("hold"), scene, out);
        let name = self.label(PacketText::Hold(hold.object, hold.is_cut.0, hold.is_cut.1), scene, out);
        let values = [
            ("object", Some(PacketText::Address(hold.object))),
            ("site", Some(PacketText::Place(hold.site)).filter(|_| hold.site > 0)),
            ("note", hold.note().map(PacketText::Argument)),
            ("", None),
            ("", None),
        ];
        let (arguments, count) = self.arguments(values, scene, out);
        let flows = self.flows.of_hold(hold);
        self.put_slice(track, (hold.from, hold.to), (category, name), &arguments[..count], flows, out);
    }

    /// Appends an instant of a thread, at which an arrow ends and one begins.
    fn put_mark(
        &mut self,
        thread: u32,
        time: u64,
        (category, name): (&'static str, String),
        flows: (Option<u64>, Option<u64>),
        scene: &TimelineScene,
        out: &mut Vec<u8>,
    ) {
        let track = self.thread_track(thread, scene, out);
        let category = self.label(PacketText::Category(category), scene, out);
        let name = self.texts.number(TextUse::EventName, name, out);
        let time = self.since_start(time);
        self.writer.begin(EventType::Instant, track, time).name(category, name);
        if let Some(flow) = flows.0 {
            self.writer.end_of_flow(flow);
        }
        if let Some(flow) = flows.1 {
            self.writer.flow(flow);
        }
        self.writer.append(out);
    }

    /// Appends the time for which a thread's records are lost.
    fn put_loss(&mut self, thread: u32, end: u64, scene: &TimelineScene, out: &mut Vec<u8>) {
        let Some((from, lost)) = self.losses.remove(&thread) else { return };
        let track = self.thread_track(thread, scene, out);
        let category = self.label(PacketText::Category("missing"), scene, out);
        let name = self.texts.number(TextUse::EventName, missing_text(lost), out);
        self.put_slice(track, (from, end.max(from)), (category, name), &[], (None, None), out);
    }

    /// Appends the end of a thread: by now all names are known.
    fn end_thread(&mut self, thread: u32, time: u64, scene: &TimelineScene, out: &mut Vec<u8>) {
        self.put_loss(thread, time, scene, out);
        let uuid = self.thread_track(thread, scene, out);
        let parent_uuid = self.process_track(scene.thread(thread).process, scene, out);
        self.put_track(TrackDescriptor { uuid, parent_uuid, ..thread_descriptor(thread, scene) }, out);
    }
}

fn process_descriptor(process: u32, scene: &TimelineScene) -> TrackDescriptor {
    let (pid, process_name) = (scene.process(process).pid as i32, scene.process_name(process));
    TrackDescriptor { process: Some(ProcessDescriptor { pid, process_name }), ..TrackDescriptor::default() }
}

fn thread_descriptor(thread: u32, scene: &TimelineScene) -> TrackDescriptor {
    let (pid, tid) = (scene.process_of(thread).pid as i32, scene.thread(thread).lwp.into());
    let thread = Some(ThreadDescriptor { pid, tid, thread_name: scene.thread_name(thread) });
    TrackDescriptor { thread, ..TrackDescriptor::default() }
}

impl TimelineSink for PerfettoTimeline {
    fn begin(&mut self, start: u64, out: &mut Vec<u8>) {
        self.start = start;
        let reading = |(clock_id, timestamp)| ClockReading { clock_id, timestamp };
        let clocks = [(BOOTTIME, start), (REALTIME, start), (SINCE_START, 0)].map(reading).to_vec();
        let packet = TracePacket {
            trusted_packet_sequence_id: SEQUENCE,
            sequence_flags: STATE_CLEARED,
            clock_snapshot: Some(ClockSnapshot { clocks, primary_trace_clock: BOOTTIME }),
            trace_packet_defaults: Some(TracePacketDefaults { timestamp_clock_id: SINCE_START }),
            ..TracePacket::default()
        };
        packet.append(out);
    }

    fn record(&mut self, record: &NumericRecord, thread: u32, scene: &TimelineScene, out: &mut Vec<u8>) {
        let (time, event) = (self.since_start(record.time), (record.event, record.which));
        match event {
            ((13, 1), 0) => {
                let track = self.thread_track(thread, scene, out);
                let category = self.label(PacketText::Category("function"), scene, out);
                let process = scene.thread(thread).process;
                let name = self.label(PacketText::Function(process, record.arguments[0]), scene, out);
                self.writer.begin(EventType::SliceBegin, track, time).name(category, name).append(out);
            }
            ((13, 2), 0) => {
                let track = self.thread_track(thread, scene, out);
                self.writer.begin(EventType::SliceEnd, track, time).append(out);
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &TimelineEvent, scene: &TimelineScene, out: &mut Vec<u8>) {
        match *event {
            TimelineEvent::ThreadBegin { thread } => {
                self.thread_track(thread, scene, out);
            }
            TimelineEvent::ThreadEnd { thread, time } => self.end_thread(thread, time, scene, out),
            TimelineEvent::ProcessEnd { .. } => {}
            TimelineEvent::Wait(wait) => self.put_wait(&wait, scene, out),
            TimelineEvent::Hold(hold) => self.put_hold(&hold, scene, out),
            TimelineEvent::LostHold { thread, object, from, .. } => {
                self.lanes.forget(thread, object);
                let flow = self.flows.of_lost_hold(thread, object);
                let name = format!("hold {}: no release recorded", scene.object_name(object));
                self.put_mark(thread, from, ("missing", name), (flow, None), scene, out);
            }
            TimelineEvent::Creation { .. } | TimelineEvent::Join { .. } | TimelineEvent::Fork { .. } => {
                let Some([from, to]) = ThreadFlow::ends(event, scene) else { return };
                let flow = self.flows.next();
                self.put_mark(from.thread, from.time, ("flow", from.name), (None, Some(flow)), scene, out);
                self.put_mark(to.thread, to.time, ("flow", to.name), (Some(flow), None), scene, out);
            }
            TimelineEvent::Loss { thread, time, lost } => {
                let (_, count) = self.losses.entry(thread).or_insert((time, 0));
                *count += lost;
            }
            TimelineEvent::LossEnd { thread, time } => self.put_loss(thread, time, scene, out),
            TimelineEvent::MissingEntry { thread, time, event } => {
                let name = format!("{}: no entry record", event_name(event));
                self.put_mark(thread, time, ("missing", name), (None, None), scene, out);
            }
            TimelineEvent::MissingReturn { thread, time, event } => {
                let name = format!("{}: no return record", event_name(event));
                self.put_mark(thread, time, ("missing", name), (None, None), scene, out);
            }
        }
    }

    fn count(&mut self, sample: &CounterSample, scene: &TimelineScene, out: &mut Vec<u8>) {
        let track = self.track(Track::Counter(sample.subject), out, |_, _| TrackDescriptor {
            name: scene.counter_name(sample.subject),
            counter: Some(CounterDescriptor { unit_name: "threads".to_owned() }),
            ..TrackDescriptor::default()
        });
        let time = self.since_start(sample.time);
        self.writer.begin(EventType::Counter, track, time).counter(sample.value).append(out);
    }
}
