//! Waits and holds that have not ended, in a file whose trace grows: the beginning of such a slice is written first, and later its end,
//! with what is known only then.

use super::event_writer::EventType;
use super::timeline::{LaneContent, PacketText, PerfettoTimeline};
use crate::export::scene::TimelineScene;
use crate::report::contention::{HoldInterval, WaitInterval};

impl PerfettoTimeline {
    /// Appends the beginning of an open wait, unless it is written.
    pub(super) fn begin_wait(&mut self, wait: &WaitInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        let key = (wait.thread, wait.from);
        if self.begun_waits.contains(&key) {
            return;
        }
        self.begun_waits.insert(key);
        let arguments = [
            ("object", wait.object.map(PacketText::Address)),
            ("site", Some(PacketText::Place(wait.site)).filter(|_| wait.site > 0)),
            ("stack", Some(PacketText::Stack(wait.site)).filter(|_| scene.has_stack(wait.site))),
        ];
        let track = self.thread_track(wait.thread, scene, out);
        let name = PacketText::Wait(wait.object, wait.is_cut.0, false);
        self.put_beginning((track, wait.from), ("wait", name), &arguments, None, scene, out);
    }

    /// Appends the end of a wait whose beginning is written.
    pub(super) fn end_wait(&mut self, wait: &WaitInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        let arguments = [
            ("held by", wait.holder.map(PacketText::Thread)),
            ("ended by", wait.waker.map(|waker| PacketText::Thread(waker.thread))),
            ("note", wait.note().map(PacketText::Argument)),
        ];
        let track = self.thread_track(wait.thread, scene, out);
        let labels = self.argument_labels(&arguments, scene, out);
        let to = self.since_start(wait.to);
        self.writer.begin(EventType::SliceEnd, track, to).arguments(&labels).append(out);
        self.put_wake(wait, scene, out);
    }

    /// Appends the beginning of an open hold, unless it is written.
    pub(super) fn begin_hold(&mut self, hold: &HoldInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        let Some(lane) = self.lanes.begin(hold, scene) else { return };
        let arguments = [
            ("object", Some(PacketText::Address(hold.object))),
            ("site", Some(PacketText::Place(hold.site)).filter(|_| hold.site > 0)),
        ];
        let track = self.lane_track(hold.thread, (LaneContent::Holds, lane), scene, out);
        let flow = self.flows.of_lost_hold(hold.thread, hold.object);
        let name = PacketText::Hold(hold.object, hold.is_cut.0, false);
        self.put_beginning((track, hold.from), ("hold", name), &arguments, flow, scene, out);
    }

    /// Appends the end of a hold whose beginning is written.
    pub(super) fn end_hold(&mut self, hold: &HoldInterval, lane: u32, scene: &TimelineScene, out: &mut Vec<u8>) {
        let track = self.lane_track(hold.thread, (LaneContent::Holds, lane), scene, out);
        let labels = self.argument_labels(&[("note", hold.note().map(PacketText::Argument))], scene, out);
        let to = self.since_start(hold.to);
        let (_, flow) = self.flows.of_hold(hold);
        self.writer.begin(EventType::SliceEnd, track, to).arguments(&labels);
        if let Some(flow) = flow {
            self.writer.flow(flow);
        }
        self.writer.append(out);
    }

    fn put_beginning(
        &mut self,
        (track, from): (u64, u64),
        (category, name): (&'static str, PacketText),
        arguments: &[(&'static str, Option<PacketText>)],
        flow: Option<u64>,
        scene: &TimelineScene,
        out: &mut Vec<u8>,
    ) {
        let category = self.label(PacketText::Category(category), scene, out);
        let name = self.label(name, scene, out);
        let labels = self.argument_labels(arguments, scene, out);
        let from = self.since_start(from);
        self.writer.begin(EventType::SliceBegin, track, from).name(category, name).arguments(&labels);
        if let Some(flow) = flow {
            self.writer.end_of_flow(flow);
        }
        self.writer.append(out);
    }

    /// Ends a slice where it began: nobody knows when it ended, and the report counts no time for it.
    pub(super) fn end_at_beginning(
        &mut self,
        track: u64,
        from: u64,
        note: &'static str,
        scene: &TimelineScene,
        out: &mut Vec<u8>,
    ) {
        let labels = self.argument_labels(&[("note", Some(PacketText::Argument(note)))], scene, out);
        let from = self.since_start(from);
        self.writer.begin(EventType::SliceEnd, track, from).arguments(&labels).append(out);
    }

    /// Ends the intervals that are over and that were not accounted; at the `is_end`, all that were not.
    pub(super) fn end_lost_intervals(&mut self, is_end: bool, scene: &TimelineScene, out: &mut Vec<u8>) {
        for (thread, lane, from) in self.lanes.take_lost(scene, is_end) {
            let track = self.lane_track(thread, (LaneContent::Holds, lane), scene, out);
            self.end_at_beginning(track, from, "no release recorded", scene, out);
        }
        let start = scene.names.analysis.selection.times.start;
        let is_over = |&(thread, from): &(u32, u64)| {
            let mut calls = scene.thread(thread).open.iter();
            is_end || !calls.any(|call| call.waits && call.entry.max(start) == from)
        };
        for (thread, from) in self.begun_waits.extract_if(is_over).collect::<Vec<_>>() {
            let track = self.thread_track(thread, scene, out);
            self.end_at_beginning(track, from, "no return recorded", scene, out);
        }
    }
}
