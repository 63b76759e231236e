//! Who creates and joins which thread.

use super::analysis::Analysis;
use super::numeric_record::NumericRecord;
use super::tables::{Creation, OngoingCall, ThreadFate};
use super::timeline_event::TimelineEvent;

impl Analysis {
    /// Takes the entry record of a creation.
    pub fn enter_create(&mut self, thread: u32, record: &NumericRecord) {
        let process = self.threads[thread as usize].process;
        let site = self.sites.intern(process, record.arguments[4]);
        self.sites.sites[site as usize].calls += u64::from(self.is_counting);
        let creation = Creation {
            creator: thread,
            time: record.time,
            site,
            has_attributes: record.arguments[1] != 0,
            is_detached: false,
        };
        if let Some(order) = &mut self.order {
            order.phases.end_phase(thread);
        }
        self.activities.log_until(thread, record.time);
        let outer = self.threads[thread as usize].creating.replace(creation);
        self.creating += u32::from(outer.is_none());
    }

    /// Takes the return record of a creation. The new thread may have made records meanwhile, or make its first one later.
    pub fn return_from_create(&mut self, thread: u32, record: &NumericRecord) {
        let Some(creation) = self.threads[thread as usize].creating.take() else { return };
        self.creating -= 1;
        let [rval, tid, ..] = record.arguments;
        if rval != 0 {
            return;
        }
        let key = (self.threads[thread as usize].process, tid);
        let known = self.thread_of_tid.get(&key).copied();
        match known.filter(|known| self.threads[*known as usize].begin >= creation.time) {
            Some(created) => self.set_creation(created, creation),
            None => {
                // A thread that had this pthread_t has ended.
                self.thread_of_tid.remove(&key);
                self.creations.insert(key, creation);
            }
        }
    }

    /// Takes the first record of a thread.
    pub fn find_creation(&mut self, thread: u32) {
        let state = &self.threads[thread as usize];
        if let Some(creation) = self.creations.remove(&(state.process, state.tid)) {
            self.set_creation(thread, creation);
        }
    }

    fn set_creation(&mut self, created: u32, creation: Creation) {
        let state = &mut self.threads[created as usize];
        state.creation = Some(creation);
        if creation.is_detached {
            state.fate = ThreadFate::Detached;
        }
        if let Some(order) = &mut self.order {
            order.phases.create(creation.creator, created, creation.time);
        }
        self.draw(TimelineEvent::Creation { creator: creation.creator, created, time: creation.time });
    }

    /// The thread that a join with this pthread_t waits for, if it has had a record: not one that was joined before.
    pub fn joinable_thread(&self, process: u32, tid: u64) -> Option<u32> {
        let known = *self.thread_of_tid.get(&(process, tid))?;
        (self.threads[known as usize].fate != ThreadFate::Joined).then_some(known)
    }

    /// The thread that a join waits for, as far as records show it so far.
    pub fn joined_thread(&self, process: u32, call: &OngoingCall) -> Option<u32> {
        call.joined.or_else(|| self.joinable_thread(process, call.joined_tid))
    }

    /// Takes a successful join.
    pub fn note_join(&mut self, joiner: u32, joined: u32, time: u64) {
        self.threads[joined as usize].fate = ThreadFate::Joined;
        if let Some(order) = &mut self.order {
            order.phases.join(joiner, joined, time);
        }
        self.draw(TimelineEvent::Join { joiner, joined, time });
    }

    /// Takes the detachment of a thread.
    pub fn detach(&mut self, thread: u32, record: &NumericRecord) {
        let [tid, rval, ..] = record.arguments;
        let key = (self.threads[thread as usize].process, tid);
        if rval != 0 {
            return;
        }
        match self.thread_of_tid.get(&key) {
            Some(&detached) => self.threads[detached as usize].fate = ThreadFate::Detached,
            None => {
                if let Some(creation) = self.creations.get_mut(&key) {
                    creation.is_detached = true;
                }
            }
        }
    }
}
