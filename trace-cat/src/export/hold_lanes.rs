//! On which of a thread's lanes a hold is drawn: what one lane has must nest.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use super::scene::TimelineScene;
use crate::report::contention::HoldInterval;

/// The lanes that holds which have not ended cannot have any more, by thread and object.
#[derive(Debug, Default)]
pub struct HoldLanes {
    taken: HashMap<(u32, u32), BTreeSet<u32>, RandomState>,
    /// By thread: the last hold on each lane, from when to when.
    last: Vec<Vec<(u64, u64)>>,
    /// The lanes of open holds whose beginning is drawn, and since when, by thread and object.
    begun: HashMap<(u32, u32), (u32, u64), RandomState>,
    /// Thread, lane and beginning of those that are not drawn, although their beginning is.
    lost: Vec<(u32, u32, u64)>,
}

impl HoldLanes {
    /// The lane of a hold, from 0 on, and whether its beginning is drawn there. Holds come in the order of their ends, so one that is
    /// still open can be around this one, but one that began meanwhile crosses it.
    pub fn place(&mut self, hold: &HoldInterval, scene: &TimelineScene) -> (u32, bool) {
        let HoldInterval { thread, object, from, to, .. } = *hold;
        let mut known = if self.begun.is_empty() { None } else { self.begun.remove(&(thread, object)) };
        if let Some((lane, since)) = known.take_if(|(_, since)| *since != from) {
            self.lost.push((thread, lane, since));
        }
        let lane = known.map_or_else(|| self.free_lane(hold, false, scene), |(lane, _)| lane);
        for &other in scene.thread(thread).holds.iter().filter(|other| **other != object) {
            let holds = &scene.object(other).occupancy.holds;
            let Some(open) = holds.iter().find(|open| open.holder.thread == thread) else { continue };
            // Where both are cut off at one edge, the outer one would have to come first.
            let open_from = open.from.max(scene.names.analysis.selection.times.start);
            if (from..to).contains(&open_from) {
                self.taken.entry((thread, other)).or_default().insert(lane);
            }
        }
        (lane, known.is_some())
    }

    /// The lane of a hold that has not ended; `None` if its beginning is drawn.
    pub fn begin(&mut self, hold: &HoldInterval, scene: &TimelineScene) -> Option<u32> {
        let key = (hold.thread, hold.object);
        if self.begun.contains_key(&key) {
            return None;
        }
        let lane = self.free_lane(hold, true, scene);
        self.begun.insert(key, (lane, hold.from));
        Some(lane)
    }

    /// A lane for a hold that crosses no other one there.
    fn free_lane(&mut self, hold: &HoldInterval, is_open: bool, scene: &TimelineScene) -> u32 {
        let HoldInterval { thread, object, from, to, .. } = *hold;
        let taken = if self.taken.is_empty() { None } else { self.taken.remove(&(thread, object)) };
        let mut begun = Vec::new();
        if !self.begun.is_empty() {
            let held = scene.thread(thread).holds.iter().filter_map(|other| self.begun.get(&(thread, *other)));
            // Nobody knows which of two open ones will end first.
            let crosses = |since: u64| is_open || (from..to).contains(&since);
            begun.extend(held.filter(|(_, since)| crosses(*since)).map(|(lane, _)| *lane));
        }
        if self.last.len() <= thread as usize {
            self.last.resize_with(thread as usize + 1, Vec::new);
        }
        let last = &mut self.last[thread as usize];
        // Of two that begin at one time, such as the border of the selected times, the outer one would have to come first.
        let begins_with_another = |lane: usize| last.get(lane).is_some_and(|last| last.0 == from && last.0 < last.1);
        let is_taken = |lane: u32| begun.contains(&lane) || taken.as_ref().is_some_and(|taken| taken.contains(&lane));
        let lane = (0..).find(|lane| !is_taken(*lane as u32) && !begins_with_another(*lane)).unwrap_or(usize::MAX);
        if last.len() <= lane {
            last.resize(lane + 1, (0, 0));
        }
        last[lane] = (from, to);
        lane as u32
    }

    /// Forgets a hold that is not drawn.
    pub fn forget(&mut self, thread: u32, object: u32) {
        self.taken.remove(&(thread, object));
        if let Some((lane, since)) = self.begun.remove(&(thread, object)) {
            self.lost.push((thread, lane, since));
        }
    }

    /// Thread, lane and beginning of holds whose beginning is drawn and whose end will not be; at the `is_end`, of all.
    pub fn take_lost(&mut self, scene: &TimelineScene, is_end: bool) -> Vec<(u32, u32, u64)> {
        let start = scene.names.analysis.selection.times.start;
        let is_over = |&(thread, object): &(u32, u32), &mut (_, since): &mut (u32, u64)| {
            let mut holds = scene.object(object).occupancy.holds.iter();
            is_end || !holds.any(|hold| hold.holder.thread == thread && hold.from.max(start) == since)
        };
        let over = self.begun.extract_if(is_over).map(|((thread, _), (lane, since))| (thread, lane, since));
        self.lost.extend(over);
        std::mem::take(&mut self.lost)
    }
}
