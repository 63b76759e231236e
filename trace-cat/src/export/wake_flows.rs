//! Arrows from whoever ended a wait to the end of the wait.
//!
//! An arrow begins at the end of the hold whose release ended the wait, and ends at the beginning of the hold that the wait led to.
//! Where one of these is not drawn, a mark stands for it.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::scene::TimelineScene;
use crate::report::contention::{HoldInterval, WaitInterval};

/// An arrow for a wait: its number, and which of its ends need a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeFlow {
    pub flow: u64,
    /// At the time of the waker, on its track.
    pub needs_source: bool,
    /// At the end of the wait.
    pub needs_end: bool,
}

/// The arrows that have an open end.
#[derive(Debug, Default)]
pub struct WakeFlows {
    count: u64,
    /// By object: the thread, the end and the arrow of the last hold that ended while others waited.
    releases: HashMap<u32, (u32, u64, u64), RandomState>,
    /// By thread and object: the arrow that leads to a hold which is not drawn yet.
    holds: HashMap<(u32, u32), u64, RandomState>,
}

impl WakeFlows {
    /// The number of a new arrow.
    pub fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// The arrow of a wait that somebody ended.
    pub fn of_wait(&mut self, wait: &WaitInterval, scene: &TimelineScene) -> Option<WakeFlow> {
        let waker = wait.drawn_waker(&scene.names.analysis.selection.times)?;
        let release = wait.object.and_then(|object| {
            let release = *self.releases.get(&object)?;
            ((release.0, release.1) == (waker.thread, waker.time)).then(|| self.releases.remove(&object))?
        });
        let flow = release.map_or_else(|| self.next(), |(_, _, flow)| flow);
        let is_held = |object: u32| {
            let holds = &scene.object(object).occupancy.holds;
            holds.iter().any(|hold| hold.holder.thread == wait.thread && hold.from == wait.to && hold.is_recorded)
        };
        let object = wait.object.filter(|object| is_held(*object));
        if let Some(object) = object {
            self.holds.insert((wait.thread, object), flow);
        }
        Some(WakeFlow { flow, needs_source: release.is_none(), needs_end: object.is_none() })
    }

    /// The arrows that end at the beginning of a hold and that may begin at its end.
    pub fn of_hold(&mut self, hold: &HoldInterval) -> (Option<u64>, Option<u64>) {
        let to = self.holds.remove(&(hold.thread, hold.object));
        let from = (hold.has_waiters && !hold.is_cut.1).then(|| self.next());
        if let Some(flow) = from {
            self.releases.insert(hold.object, (hold.thread, hold.complete.1, flow));
        }
        (to, from)
    }

    /// The arrow that leads to a hold which is not drawn.
    pub fn of_lost_hold(&mut self, thread: u32, object: u32) -> Option<u64> {
        self.holds.remove(&(thread, object))
    }
}
