//! Waits and holds as slices. Most are like an earlier one but for their times, so the other fields are encoded once.

use super::event_writer::EventType;
use super::kept_slices::{KeptSlice, SliceKey};
use super::timeline::{LaneContent, PacketText, PerfettoTimeline};
use super::wake_marks::WakeMark;
use crate::export::scene::TimelineScene;
use crate::export::wake_flows::WakeFlow;
use crate::report::contention::{HoldInterval, WaitInterval};

/// Stands for no thread and no object.
const NONE: u32 = u32::MAX;

impl PerfettoTimeline {
    pub(super) fn put_wait(&mut self, wait: &WaitInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        if !self.begun_waits.is_empty() && self.begun_waits.remove(&(wait.thread, wait.from)) {
            return self.end_wait(wait, scene, out);
        }
        let key = SliceKey {
            thread: wait.thread,
            lane: NONE,
            object: wait.object.unwrap_or(NONE),
            site: wait.site,
            holder: wait.holder.unwrap_or(NONE),
            waker: wait.waker.map_or(NONE, |waker| waker.thread),
            flags: [wait.is_cut.0, wait.is_cut.1, wait.is_open, wait.has_timed_out],
        };
        let index = self.kept.find(&key).unwrap_or_else(|| {
            let track = self.thread_track(wait.thread, scene, out);
            let is_cut_off = wait.is_cut.1 || wait.is_open;
            let arguments = [
                ("object", wait.object.map(PacketText::Address)),
                ("site", Some(PacketText::Place(wait.site)).filter(|_| wait.site > 0)),
                ("held by", wait.holder.map(PacketText::Thread)),
                ("ended by", wait.waker.map(|waker| PacketText::Thread(waker.thread))),
                ("note", wait.note().map(PacketText::Argument)),
                ("stack", Some(PacketText::Stack(wait.site)).filter(|_| scene.has_stack(wait.site))),
            ];
            let name = PacketText::Wait(wait.object, wait.is_cut.0, is_cut_off);
            self.keep(key, (track, "wait", name), &arguments, scene, out)
        });
        self.put_kept(index, (wait.from, wait.to), (None, None), out);
        self.put_wake(wait, scene, out);
    }

    /// Appends the arrow of whoever ended a wait.
    pub(super) fn put_wake(&mut self, wait: &WaitInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        let Some(waker) = wait.waker else { return };
        if let Some(WakeFlow { flow, needs_source, needs_end }) = self.flows.of_wait(wait, scene) {
            if needs_source {
                if let Some(mark) = self.wake_marks.add(waker.thread, waker.time, wait.thread, flow) {
                    self.put_wake_mark(waker.thread, &mark, scene, out);
                }
                // Where both ends have one time, the beginning has to come first.
                if wait.to == waker.time {
                    self.put_wake_marks(scene, out);
                }
            }
            if needs_end {
                self.put_mark(wait.thread, wait.to, ("flow", "goes on".to_owned()), (Some(flow), &[]), scene, out);
            }
        }
    }

    fn put_wake_mark(&mut self, waker: u32, mark: &WakeMark, scene: &TimelineScene, out: &mut Vec<u8>) {
        let name = match mark.flows.len() {
            1 => format!("ends the wait of {}", scene.names.thread_label(mark.waiter)),
            several => format!("ends the waits of {several} threads"),
        };
        self.put_mark(waker, mark.time, ("flow", name), (None, &mark.flows), scene, out);
    }

    /// Appends the marks that were kept until all their arrows are known.
    pub(super) fn put_wake_marks(&mut self, scene: &TimelineScene, out: &mut Vec<u8>) {
        for (waker, mark) in self.wake_marks.take() {
            self.put_wake_mark(waker, &mark, scene, out);
        }
    }

    pub(super) fn put_hold(&mut self, hold: &HoldInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        let (lane, has_begun) = self.lanes.place(hold, scene);
        if has_begun {
            return self.end_hold(hold, lane, scene, out);
        }
        let HoldInterval { thread, object, site, is_cut, .. } = *hold;
        let flags = [is_cut.0, is_cut.1, false, false];
        let key = SliceKey { thread, lane, object, site, holder: NONE, waker: NONE, flags };
        let index = self.kept.find(&key).unwrap_or_else(|| {
            let track = self.lane_track(thread, (LaneContent::Holds, lane), scene, out);
            let arguments = [
                ("object", Some(PacketText::Address(object))),
                ("site", Some(PacketText::Place(site)).filter(|_| site > 0)),
                ("note", hold.note().map(PacketText::Argument)),
                ("stack", Some(PacketText::Stack(site)).filter(|_| scene.has_stack(site))),
            ];
            let name = PacketText::Hold(object, is_cut.0, is_cut.1);
            self.keep(key, (track, "hold", name), &arguments, scene, out)
        });
        let flows = self.flows.of_hold(hold);
        self.put_kept(index, (hold.from, hold.to), flows, out);
    }

    /// The numbers of the names and values of arguments.
    pub(super) fn argument_labels(
        &mut self,
        arguments: &[(&'static str, Option<PacketText>)],
        scene: &TimelineScene,
        out: &mut Vec<u8>,
    ) -> Vec<(u64, u64)> {
        let known = arguments.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        let label =
            |(name, value)| (self.label(PacketText::ArgumentName(name), scene, out), self.label(value, scene, out));
        known.map(label).collect()
    }

    /// Encodes the fields of a slice.
    fn keep(
        &mut self,
        key: SliceKey,
        (track, category, name): (u64, &'static str, PacketText),
        arguments: &[(&'static str, Option<PacketText>)],
        scene: &TimelineScene,
        out: &mut Vec<u8>,
    ) -> usize {
        let category = self.label(PacketText::Category(category), scene, out);
        let name = self.label(name, scene, out);
        let labels = self.argument_labels(arguments, scene, out);
        let begin =
            self.writer.begin(EventType::SliceBegin, track, 0).name(category, name).arguments(&labels).fields().into();
        let end = self.writer.begin(EventType::SliceEnd, track, 0).fields().into();
        self.kept.add(key, KeptSlice { begin, end })
    }

    /// Appends a slice. An arrow ends at its beginning, and one begins at its end.
    fn put_kept(&mut self, index: usize, (from, to): (u64, u64), flows: (Option<u64>, Option<u64>), out: &mut Vec<u8>) {
        let (from, to) = (self.since_start(from), self.since_start(to));
        let KeptSlice { begin, end } = self.kept.slice(index);
        self.writer.begin_with(begin, from);
        if let Some(flow) = flows.0 {
            self.writer.end_of_flow(flow);
        }
        self.writer.append(out);
        self.writer.begin_with(end, to);
        if let Some(flow) = flows.1 {
            self.writer.flow(flow);
        }
        self.writer.append(out);
    }
}
