//! Divides the lives of threads into stretches while records are read in the order of time.

use std::mem;

use super::activity::{Activity, ActivityKind, HeldTime, WaitEnd};
use super::activity_log::ActivityLog;

/// The most objects and sites of a stretch; where a thread holds more of them, it ends.
const HELD_MAX: usize = 32;

/// The stretches of all threads. Threads, objects and sites are numbers that the caller gives.
#[derive(Debug, Default)]
pub struct ThreadActivities {
    threads: Vec<CurrentActivity>,
    pub log: ActivityLog,
    /// Nobody asks for them: nothing is noted.
    pub is_off: bool,
}

/// A thread, and its stretch that has not ended.
#[derive(Debug, Default)]
struct CurrentActivity {
    from: u64,
    open: Vec<OpenHold>,
    /// What it held in this stretch and released.
    sums: Vec<HeldTime>,
    /// How long it held anything, until all was released.
    held: u64,
    /// The same where a release is missing.
    uncertain: u64,
    /// Since when it holds anything, and whether a release has been missing since.
    held_since: u64,
    is_uncertain: bool,
}

#[derive(Clone, Copy, Debug)]
struct OpenHold {
    object: u32,
    site: u32,
    from: u64,
}

impl CurrentActivity {
    /// Adds a hold, which lasted until `until`, to the sums.
    fn add(&mut self, hold: OpenHold, until: u64) {
        let time = until.saturating_sub(hold.from.max(self.from));
        if time == 0 {
            return;
        }
        let is_same = |sum: &&mut HeldTime| (sum.object, sum.site) == (hold.object, hold.site);
        let carried_from = Some(hold.from).filter(|from| *from < self.from);
        match self.sums.iter_mut().find(is_same) {
            Some(sum) => {
                (sum.time, sum.count) = (sum.time + time, sum.count + 1);
                sum.carried_from = carried_from.or(sum.carried_from);
            }
            None => {
                let OpenHold { object, site, .. } = hold;
                self.sums.push(HeldTime { object, site, time, count: 1, carried_from });
            }
        }
    }

    fn add_held(&mut self, until: u64) {
        let time = until.saturating_sub(self.held_since);
        *(if self.is_uncertain { &mut self.uncertain } else { &mut self.held }) += time;
        self.held_since = self.held_since.max(until);
    }

    /// Removes a hold that ended at `now`.
    fn remove(&mut self, object: u32, now: u64, is_certain: bool) -> Option<OpenHold> {
        let index = self.open.iter().rposition(|hold| hold.object == object)?;
        let hold = self.open.swap_remove(index);
        self.is_uncertain |= !is_certain;
        if self.open.is_empty() {
            self.add_held(now);
            self.is_uncertain = false;
        }
        Some(hold)
    }
}

impl ThreadActivities {
    /// Takes the first record of a new thread, whose number is one more than the last one's. What it did before its process's
    /// records are complete is left out.
    pub fn add_thread(&mut self, begin: u64, complete_from: u64) {
        self.threads.push(CurrentActivity { from: begin.max(complete_from), ..CurrentActivity::default() });
    }

    /// Takes the beginning of a hold. One that the thread has already goes on.
    pub fn begin_hold(&mut self, thread: u32, object: u32, site: u32, now: u64) {
        if self.is_off {
            return;
        }
        let current = &mut self.threads[thread as usize];
        if current.open.is_empty() {
            current.held_since = now;
        } else if current.open.iter().any(|hold| hold.object == object) {
            return;
        }
        current.open.push(OpenHold { object, site, from: now });
    }

    /// Takes the end of a hold.
    pub fn end_hold(&mut self, thread: u32, object: u32, now: u64) {
        if self.is_off {
            return;
        }
        let current = &mut self.threads[thread as usize];
        let Some(hold) = current.remove(object, now, true) else { return };
        current.add(hold, now);
        if current.sums.len() >= HELD_MAX {
            self.log_until(thread, now);
        }
    }

    /// Takes a hold back: it has ended by now, nobody knows when.
    pub fn lose_hold(&mut self, thread: u32, object: u32, now: u64) {
        if self.is_off {
            return;
        }
        let current = &mut self.threads[thread as usize];
        let Some(OpenHold { site, from, .. }) = current.remove(object, now, false) else { return };
        let until = current.from;
        if from < until {
            let kind = ActivityKind::Retraction;
            let activity = Activity { thread, from, until, kind, held: 0, uncertain: 0 };
            self.log.push(&activity, &[HeldTime { object, site, time: until - from, count: 1, carried_from: None }]);
        }
    }

    /// Takes the end of a hold that only its release shows.
    pub fn add_observed_hold(&mut self, thread: u32, object: u32, from: u64, now: u64) {
        if self.is_off || from >= now {
            return;
        }
        // The stretches that it may be in come before it.
        self.log_until(thread, now);
        let (kind, time) = (ActivityKind::ObservedHold, now - from);
        let activity = Activity { thread, from, until: now, kind, held: 0, uncertain: 0 };
        self.log.push(&activity, &[HeldTime { object, site: 0, time, count: 1, carried_from: None }]);
    }

    /// Ends a stretch in which the thread did not wait: from now on it may end waits of other threads.
    pub fn log_until(&mut self, thread: u32, now: u64) {
        self.log_as(thread, now, ActivityKind::Running);
    }

    /// Takes a wait that has ended now.
    pub fn end_wait(&mut self, thread: u32, begin: u64, now: u64, how: WaitEnd) {
        if self.is_off {
            return;
        }
        self.log_until(thread, begin);
        let from = self.threads[thread as usize].from;
        let how = match how {
            WaitEnd::Woken(_, time) if time <= from => WaitEnd::Latency,
            how => how,
        };
        self.log_as(thread, now, ActivityKind::Waiting(how));
    }

    fn log_as(&mut self, thread: u32, until: u64, kind: ActivityKind) {
        if self.is_off {
            return;
        }
        let current = &mut self.threads[thread as usize];
        let from = current.from;
        if until <= from {
            return;
        }
        // Ten thousand threads may have sums: twice the room is not needed for one more.
        current.sums.reserve_exact(current.open.len());
        for index in 0..current.open.len() {
            let hold = current.open[index];
            current.add(hold, until);
        }
        if !current.open.is_empty() {
            current.add_held(until);
        }
        let (held, uncertain) = (mem::take(&mut current.held), mem::take(&mut current.uncertain));
        self.log.push(&Activity { thread, from, until, kind, held, uncertain }, &current.sums);
        current.sums.clear();
        current.from = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_room_for_the_sums_that_a_stretch_may_have() {
        let mut activities = ThreadActivities::default();
        activities.add_thread(1, 0);
        for time in 1..200 {
            let object = time as u32;
            activities.begin_hold(0, 0, 0, 10 * time);
            activities.begin_hold(0, object, 0, 10 * time);
            activities.end_hold(0, object, 10 * time + 5);
            activities.end_hold(0, 0, 10 * time + 7);
            // One more than a stretch has when it ends.
            activities.begin_hold(0, 1000, 0, 10 * time + 8);
        }
        assert!(activities.threads[0].sums.capacity() <= HELD_MAX + 2);
    }
}
