//! What the holds of objects mean for threads, sites and critical paths.

use super::analysis::Analysis;
use super::holds::Hold;

impl Analysis {
    /// Notes that a thread has an object.
    pub fn begin_hold(&mut self, object: u32, thread: u32) {
        let state = &mut self.objects[object as usize];
        state.figures.owner_changes +=
            u64::from(self.is_counting && state.last_holder.is_some_and(|last| last != thread));
        state.last_holder = Some(thread);
        let holds = &mut self.threads[thread as usize].holds;
        if !holds.contains(&object) {
            holds.push(object);
        }
    }

    /// Notes that a thread does not have an object any more.
    pub fn drop_hold(&mut self, object: u32, thread: u32) {
        let holds = &mut self.threads[thread as usize].holds;
        if let Some(index) = holds.iter().rposition(|held| *held == object) {
            holds.swap_remove(index);
        }
    }

    /// Accounts a hold that ended at `now`, or lasted until then.
    pub fn account_hold(&mut self, object: u32, hold: Hold, now: u64) {
        self.drop_hold(object, hold.holder.thread);
        self.activities.end_hold(hold.holder.thread, object, now);
        if hold.is_recorded && self.selection.overlaps(hold.from, now) {
            let held = self.selection.clip(hold.from, now);
            let holds = &mut self.objects[object as usize].figures.hold;
            if self.parts.hold_percentiles {
                holds.add(held)
            } else {
                holds.add_to_sum(held)
            }
            self.sites.sites[hold.holder.site as usize].held += held;
            self.draw_hold(object, hold, now);
        }
    }

    /// Accounts holds that ended nobody knows when.
    pub fn lose_holds(&mut self, object: u32, holds: &[Hold]) {
        // Where only some releases are recorded, none is missing.
        let are_missing = !holds.is_empty() && !self.knowledge_of(object).leaves_calls_out();
        let now = self.span.map_or(0, |span| span.1);
        for hold in holds {
            self.drop_hold(object, hold.holder.thread);
            self.activities.lose_hold(hold.holder.thread, object, now);
            self.objects[object as usize].has_lost_holds = true;
            self.objects[object as usize].figures.lost_holds += u64::from(self.is_counting);
            self.missing.releases += u64::from(are_missing);
            self.draw_lost_hold(object, *hold);
        }
    }
}
