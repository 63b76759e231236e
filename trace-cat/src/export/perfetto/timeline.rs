//! The format: its tracks, marks and counters.

use std::collections::{HashMap, HashSet};
use std::io;

use foldhash::fast::RandomState;

use super::event_writer::{EventType, EventWriter, SEQUENCE};
use super::interned_texts::{InternedTexts, TextUse};
use super::kept_slices::KeptSlices;
use super::message::{
    ClockReading, ClockSnapshot, CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TracePacket,
    TracePacketDefaults, TrackDescriptor,
};
use super::wake_marks::WakeMarks;
use crate::export::hold_lanes::HoldLanes;
use crate::export::program_event::{ProgramEvent, ProgramText};
use crate::export::scene::{TimelineScene, missing_text};
use crate::export::sink::TimelineSink;
use crate::export::thread_flow::ThreadFlow;
use crate::export::timeline_export::ByteConsumer;
use crate::export::waiting_counts::{CounterSample, CounterSubject};
use crate::export::wake_flows::WakeFlows;
use crate::report::contention::{HoldInterval, TimelineEvent};
use crate::report::trace_names::event_name;

/// `BUILTIN_CLOCK_REALTIME` and `BUILTIN_CLOCK_BOOTTIME`, which is that of Perfetto's timeline; and the sequence's own.
const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;
const SINCE_START: u32 = 64;
/// `SIBLING_MERGE_BEHAVIOR_NONE`. The name of a track that can be merged with others is that of its first description.
const NOT_MERGED: u32 = 2;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const STATE_CLEARED: u32 = 1;

/// A track of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Track {
    Process(u32),
    /// Process and LWP.
    Thread(u32, u32),
    /// Process, LWP, what is on it, and lane.
    Lane(u32, u32, LaneContent, u32),
    /// Process and name.
    UserCounter(u32, ProgramText),
    Counter(CounterSubject),
}

/// What is on a track of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LaneContent {
    /// Waits, marks, spans and functions.
    Calls,
    Holds,
    /// Spans that cross others.
    Spans,
}

/// What is on a track of a thread, and the lane; and the track's number.
type ThreadLane = ((LaneContent, u32), u64);

/// What a text in a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketText {
    Category(&'static str),
    ArgumentName(&'static str),
    Argument(&'static str),
    /// An object, or the end of a thread, and which edges cut the wait.
    Wait(Option<u32>, bool, bool),
    Hold(u32, bool, bool),
    Address(u32),
    Place(u32),
    Stack(u32),
    Thread(u32),
    /// An event of the program of the process with this ID, and which edges cut it if it is a span.
    Program(u32, ProgramText, bool, bool),
}

/// The format `perfetto`.
#[derive(Debug, Default)]
pub struct PerfettoTimeline {
    pub(super) start: u64,
    pub(super) writer: EventWriter,
    pub(super) texts: InternedTexts,
    /// The numbers of the texts that are used most.
    pub(super) labels: HashMap<PacketText, u64, RandomState>,
    pub(super) tracks: HashMap<Track, u64, RandomState>,
    /// The tracks of a process and LWP.
    thread_lanes: HashMap<(u32, u32), Vec<ThreadLane>, RandomState>,
    pub(super) lanes: HoldLanes,
    pub(super) flows: WakeFlows,
    pub(super) wake_marks: WakeMarks,
    pub(super) kept: KeptSlices,
    /// Thread and beginning of the open waits whose beginning is written.
    pub(super) begun_waits: HashSet<(u32, u64), RandomState>,
    /// The names of threads that are written, in a trace that grows.
    pub(super) thread_names: Vec<Option<[u8; 16]>>,
    /// Since when threads lose records, and how many they have lost.
    pub(super) losses: HashMap<u32, (u64, u64), RandomState>,
}

impl PerfettoTimeline {
    pub(super) fn since_start(&self, time: u64) -> u64 {
        time.saturating_sub(self.start)
    }

    fn put_track(&mut self, descriptor: TrackDescriptor, out: &mut Vec<u8>) {
        let track_descriptor = Some(descriptor);
        TracePacket { trusted_packet_sequence_id: SEQUENCE, track_descriptor, ..TracePacket::default() }.append(out);
    }

    /// The number of a track; `describe` makes the description of a new one.
    pub(super) fn track(
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

    pub(super) fn process_track(&mut self, process: u32, scene: &TimelineScene, out: &mut Vec<u8>) -> u64 {
        let pid = scene.process(process).pid;
        self.track(Track::Process(pid), out, |_, _| process_descriptor(process, scene))
    }

    /// What groups the tracks of a thread.
    fn thread_group(&mut self, thread: u32, scene: &TimelineScene, out: &mut Vec<u8>) -> u64 {
        let (process, lwp) = (scene.thread(thread).process, scene.thread(thread).lwp);
        self.track(Track::Thread(scene.process(process).pid, lwp), out, |timeline, out| {
            let parent_uuid = timeline.process_track(process, scene, out);
            TrackDescriptor { parent_uuid, ..thread_descriptor(thread, scene) }
        })
    }

    /// The track of a thread's waits.
    pub(super) fn thread_track(&mut self, thread: u32, scene: &TimelineScene, out: &mut Vec<u8>) -> u64 {
        self.lane_track(thread, (LaneContent::Calls, 0), scene, out)
    }

    pub(super) fn lane_track(
        &mut self,
        thread: u32,
        lane: (LaneContent, u32),
        scene: &TimelineScene,
        out: &mut Vec<u8>,
    ) -> u64 {
        let (pid, lwp) = (scene.process_of(thread).pid, scene.thread(thread).lwp);
        let track = Track::Lane(pid, lwp, lane.0, lane.1);
        if let Some(known) = self.tracks.get(&track) {
            return *known;
        }
        let uuid = self.track(track, out, |timeline, out| {
            let parent_uuid = timeline.thread_group(thread, scene, out);
            TrackDescriptor { parent_uuid, ..lane_descriptor(thread, lane, scene) }
        });
        self.thread_lanes.entry((pid, lwp)).or_default().push((lane, uuid));
        uuid
    }

    /// The number of what a label says.
    pub(super) fn label(&mut self, label: PacketText, scene: &TimelineScene, out: &mut Vec<u8>) -> u64 {
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
            PacketText::Stack(site) => (TextUse::Argument, scene.stack(site)),
            PacketText::Thread(thread) => (TextUse::Argument, scene.names.thread_label(thread)),
            PacketText::Program(pid, text, before, after) => {
                (TextUse::EventName, cut(scene.program_text(pid, text), before, after))
            }
        };
        let number = self.texts.number(usage, text, out);
        self.labels.insert(label, number);
        number
    }

    /// Appends an instant of a thread, at which an arrow ends and others begin.
    pub(super) fn put_mark(
        &mut self,
        thread: u32,
        time: u64,
        (category, name): (&'static str, String),
        flows: (Option<u64>, &[u64]),
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
        for flow in flows.1 {
            self.writer.flow(*flow);
        }
        self.writer.append(out);
    }

    /// Appends the time for which a thread's records are lost.
    fn put_loss(&mut self, thread: u32, end: u64, scene: &TimelineScene, out: &mut Vec<u8>) {
        let Some((from, lost)) = self.losses.remove(&thread) else { return };
        let track = self.thread_track(thread, scene, out);
        let category = self.label(PacketText::Category("missing"), scene, out);
        let name = self.texts.number(TextUse::EventName, missing_text(lost), out);
        let (from, end) = (self.since_start(from), self.since_start(end.max(from)));
        self.writer.begin(EventType::SliceBegin, track, from).name(category, name).append(out);
        self.writer.begin(EventType::SliceEnd, track, end).append(out);
    }

    /// Appends the end of a thread: by now all names are known.
    fn end_thread(&mut self, thread: u32, time: u64, scene: &TimelineScene, out: &mut Vec<u8>) {
        self.put_loss(thread, time, scene, out);
        self.put_thread_name(thread, scene, out);
    }

    /// Describes a thread and its tracks again, with the name that is known by now.
    fn put_thread_name(&mut self, thread: u32, scene: &TimelineScene, out: &mut Vec<u8>) {
        let parent_uuid = self.process_track(scene.thread(thread).process, scene, out);
        let group = self.thread_group(thread, scene, out);
        self.put_track(TrackDescriptor { uuid: group, parent_uuid, ..thread_descriptor(thread, scene) }, out);
        let key = (scene.process_of(thread).pid, scene.thread(thread).lwp);
        for (lane, uuid) in self.thread_lanes.get(&key).cloned().unwrap_or_default() {
            self.put_track(TrackDescriptor { uuid, parent_uuid: group, ..lane_descriptor(thread, lane, scene) }, out);
        }
    }

    /// Appends the names that threads got since the last time.
    fn put_new_names(&mut self, scene: &TimelineScene, out: &mut Vec<u8>) {
        let threads = &scene.names.analysis.threads;
        self.thread_names.resize(threads.len(), None);
        for (thread, state) in (0..).zip(threads) {
            if state.name.is_some() && self.thread_names[thread as usize] != state.name {
                self.thread_names[thread as usize] = state.name;
                self.put_thread_name(thread, scene, out);
            }
        }
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

/// The UI sorts a thread's tracks by their names, over all threads, and shows no other name of the thread.
fn lane_descriptor(thread: u32, (content, lane): (LaneContent, u32), scene: &TimelineScene) -> TrackDescriptor {
    let name = scene.thread_name(thread);
    let name = match (content, lane) {
        (LaneContent::Calls, _) => name,
        (LaneContent::Holds, 0) => format!("{name} holds"),
        (LaneContent::Holds, lane) => format!("{name} holds {}", lane + 1),
        (LaneContent::Spans, 1) => format!("{name} spans"),
        (LaneContent::Spans, lane) => format!("{name} spans {lane}"),
    };
    TrackDescriptor { name, sibling_merge_behavior: NOT_MERGED, ..TrackDescriptor::default() }
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

    fn program_event(&mut self, event: &ProgramEvent, scene: &TimelineScene, out: &mut Vec<u8>) {
        self.put_program_event(event, scene, out);
    }

    fn event(&mut self, event: &TimelineEvent, scene: &TimelineScene, out: &mut Vec<u8>) {
        match *event {
            TimelineEvent::ThreadBegin { thread } => {
                self.thread_group(thread, scene, out);
            }
            TimelineEvent::ThreadEnd { thread, time } => self.end_thread(thread, time, scene, out),
            TimelineEvent::ProcessEnd { .. } => {}
            TimelineEvent::Wait(wait) => self.put_wait(&wait, scene, out),
            TimelineEvent::Hold(hold) => self.put_hold(&hold, scene, out),
            TimelineEvent::LostHold { thread, object, from, .. } => {
                self.lanes.forget(thread, object);
                let flow = self.flows.of_lost_hold(thread, object);
                let name = format!("hold {}: no release recorded", scene.object_name(object));
                self.put_mark(thread, from, ("missing", name), (flow, &[]), scene, out);
            }
            TimelineEvent::Creation { .. } | TimelineEvent::Join { .. } | TimelineEvent::Fork { .. } => {
                let Some([from, to]) = ThreadFlow::ends(event, scene) else { return };
                let flow = self.flows.next();
                self.put_mark(from.thread, from.time, ("flow", from.name), (None, &[flow]), scene, out);
                self.put_mark(to.thread, to.time, ("flow", to.name), (Some(flow), &[]), scene, out);
            }
            TimelineEvent::Loss { thread, time, lost } => {
                let (_, count) = self.losses.entry(thread).or_insert((time, 0));
                *count += lost;
            }
            TimelineEvent::LossEnd { thread, time } => self.put_loss(thread, time, scene, out),
            TimelineEvent::MissingEntry { thread, time, event } => {
                let name = format!("{}: no entry record", event_name(event));
                self.put_mark(thread, time, ("missing", name), (None, &[]), scene, out);
            }
            TimelineEvent::MissingReturn { thread, time, event } => {
                let name = format!("{}: no return record", event_name(event));
                self.put_mark(thread, time, ("missing", name), (None, &[]), scene, out);
            }
        }
    }

    fn left_out_hold(&mut self, hold: &HoldInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        self.lanes.forget(hold.thread, hold.object);
        if let Some(flow) = self.flows.of_lost_hold(hold.thread, hold.object) {
            self.put_mark(hold.thread, hold.from, ("flow", "goes on".to_owned()), (Some(flow), &[]), scene, out);
        }
    }

    fn open_interval(&mut self, interval: &TimelineEvent, scene: &TimelineScene, out: &mut Vec<u8>) {
        match interval {
            TimelineEvent::Wait(wait) => self.begin_wait(wait, scene, out),
            TimelineEvent::Hold(hold) => self.begin_hold(hold, scene, out),
            _ => {}
        }
    }

    fn moment(&mut self, scene: &TimelineScene, out: &mut Vec<u8>) {
        self.put_wake_marks(scene, out);
        self.end_lost_intervals(false, scene, out);
        self.put_new_names(scene, out);
    }

    fn end(&mut self, scene: &TimelineScene, write: &mut ByteConsumer) -> io::Result<()> {
        let mut out = Vec::new();
        self.put_wake_marks(scene, &mut out);
        self.end_lost_intervals(true, scene, &mut out);
        write(&out)
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
