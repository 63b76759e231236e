//! On which of a thread's lanes a hold is drawn: what one lane has must nest.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use super::scene::TimelineScene;
use crate::report::contention::HoldInterval;

/// The lanes that holds which have not ended cannot have any more, by thread and object.
#[derive(Debug, Default)]
pub struct HoldLanes {
    taken: HashMap<(u32, u32), BTreeSet<u32>, RandomState>,
    /// The last hold on each lane of each thread, from when to when.
    last: HashMap<(u32, u32), (u64, u64), RandomState>,
}

impl HoldLanes {
    /// The lane of a hold, from 0 on. Holds come in the order of their ends, so one that is still open can be around this one, but
    /// one that began meanwhile crosses it.
    pub fn place(&mut self, hold: &HoldInterval, scene: &TimelineScene) -> u32 {
        let HoldInterval { thread, object, .. } = *hold;
        let taken = self.taken.remove(&(thread, object)).unwrap_or_default();
        // Of two that begin at one time, such as the border of the selected times, the outer one would have to come first.
        let begins_with_another =
            |lane| self.last.get(&(thread, lane)).is_some_and(|(from, to)| from == &hold.from && from < to);
        let lane = (0..).find(|lane| !taken.contains(lane) && !begins_with_another(*lane)).unwrap_or(u32::MAX);
        self.last.insert((thread, lane), (hold.from, hold.to));
        for &other in scene.thread(thread).holds.iter().filter(|other| **other != object) {
            let holds = &scene.object(other).occupancy.holds;
            let Some(open) = holds.iter().find(|open| open.holder.thread == thread) else { continue };
            // Where both are cut off at one edge, the outer one would have to come first.
            let from = open.from.max(scene.names.analysis.selection.times.start);
            if (hold.from..hold.to).contains(&from) {
                self.taken.entry((thread, other)).or_default().insert(lane);
            }
        }
        lane
    }

    /// Forgets a hold that is not drawn.
    pub fn forget(&mut self, thread: u32, object: u32) {
        self.taken.remove(&(thread, object));
    }
}
