//! What the analysis passes on to the lock order: locks that are taken inside others.

use spec::event_numbers::{MUTEX_LOCK, RMUTEX_LOCK, RW_RDLOCK, RW_WRLOCK, SPIN_LOCK};

use super::analysis::Analysis;
use super::object_state::ObjectKind;
use super::tables::ImageEnd;
use super::wait_shares::Holder;
use crate::report::lock_order::{Acquisition, HeldLock, ThreadLife};

impl Analysis {
    /// Takes an acquisition that might have waited for ever, before the thread is noted as a holder.
    pub fn note_nesting(&mut self, object: u32, Holder { thread, site }: Holder, is_shared: bool, time: u64) {
        let state = &self.threads[thread as usize];
        // In a timeline all objects stay apart.
        if state.holds.is_empty() || self.timeline.is_some() || state.holds.contains(&object) {
            return;
        }
        let process = &self.processes[state.process as usize];
        if process.knowledge.only_blocked || process.knowledge.is_selective {
            return;
        }
        let is_certain = |held: &&u32| self.objects[**held as usize].kind != ObjectKind::Futex;
        let mut knows_holds = state.knows_holds;
        let mut held = std::mem::take(&mut self.held_outside);
        held.clear();
        held.extend(state.holds.iter().filter(is_certain).filter_map(|&held| {
            let occupancy = &self.objects[held as usize].occupancy;
            let hold = occupancy.holds.iter().find(|hold| hold.holder.thread == thread)?;
            // Another process may have what the thread that forked had.
            if hold.is_doubtful() {
                knows_holds = false;
                return None;
            }
            Some(HeldLock { object: held, site: hold.holder.site, is_shared: !occupancy.is_exclusive() })
        }));
        // Also without the order of locks: which objects are summed up must not depend on what else is shown.
        self.objects[object as usize].is_inner |= !held.is_empty();
        held.iter().for_each(|lock| self.objects[lock.object as usize].is_outer = true);
        let knows_others = process.knowledge.complete_from == 0;
        let acquisition = Acquisition { object, thread, site, is_shared, time, knows_holds, knows_others };
        if let Some(order) = &mut self.order {
            order.add(acquisition, &held);
        }
        self.held_outside = held;
    }

    /// Takes the locks that threads wait for after the last record.
    pub fn note_open_nesting(&mut self) {
        for thread in 0..self.threads.len() as u32 {
            let state = &self.threads[thread as usize];
            let Some(&call) = state.open.last().filter(|call| call.waits) else { continue };
            let has_executed = self.processes[state.process as usize].end == ImageEnd::Exec;
            if let (Some(object), MUTEX_LOCK | RMUTEX_LOCK | RW_RDLOCK | RW_WRLOCK | SPIN_LOCK, false) =
                (call.object, call.event, has_executed)
            {
                let holder = Holder { thread, site: call.site };
                self.note_nesting(object, holder, call.event == RW_RDLOCK, call.entry);
            }
        }
    }

    /// Finds the possible deadlocks.
    pub fn find_cycles(&mut self) {
        let lives: Vec<ThreadLife> = self
            .threads
            .iter()
            .map(|thread| ThreadLife {
                begin: thread.begin,
                end: if thread.has_ended() { thread.last } else { u64::MAX },
            })
            .collect();
        if let Some(order) = &mut self.order {
            (self.cycles, self.cycles_left_out) = order.cycles(&|thread| lives[thread as usize]);
            order.forget_edges();
        }
    }
}
