//! Objects that several processes use. A semaphore that an ancestor has made for processes is one object; a lock is one object in each
//! process, which shows the holds of that process alone.

use std::collections::HashSet;

use super::analysis::Analysis;
use super::counterparts::Counterparts;
use super::object_state::{ObjectKind, ObjectState, SeenOwners};
use super::tables::{ImageEnd, OngoingCall, ProgramState};

/// Whether an initialisation may make a lock for several processes: it has attributes whose only reason is not the type.
pub fn may_be_for_processes(kind: ObjectKind, arguments: &[u64; 5]) -> bool {
    let [_, attributes, mutex_type, ..] = *arguments;
    match kind {
        ObjectKind::Mutex => attributes != 0 && mutex_type == 0,
        ObjectKind::Rwlock | ObjectKind::Spin => attributes != 0,
        _ => false,
    }
}

impl Analysis {
    /// The object at an address in the nearest ancestor of a process that has one there.
    fn object_of_ancestor(&self, process: u32, address: u64) -> Option<u32> {
        self.line_of(process).skip(1).find_map(|ancestor| self.object_at(ancestor, address))
    }

    /// The semaphore at an address that an ancestor of a process made and that processes share.
    pub fn shared_semaphore(&self, process: u32, address: u64) -> Option<u32> {
        let known = self.object_of_ancestor(process, address);
        known.filter(|known| self.objects[*known as usize].is_shared)
    }

    /// Takes the beginning of an object, which may be a lock that its process shares with an ancestor.
    pub fn inherit_sharing(&self, state: &mut ObjectState) {
        let known = self.object_of_ancestor(state.process, state.address).map(|known| &self.objects[known as usize]);
        if let Some(known) = known.filter(|known| known.kind == state.kind) {
            state.may_be_held_elsewhere = known.may_be_held_elsewhere;
            state.has_attributes = known.has_attributes;
            state.may_be_handed_on = known.may_be_handed_on;
            if known.may_be_held_elsewhere || known.has_attributes {
                (state.is_handed_on, state.hands_on_readers) = (known.is_handed_on, known.hands_on_readers);
            }
        }
        // If it has one of its own, its threads do with that what those of the ancestor did before the fork.
        let copied = self.processes[state.process as usize].handed_on.get(&state.address);
        if let Some(copied) = copied.filter(|copied| copied.kind == state.kind) {
            state.is_handed_on |= copied.is_handed_on;
            state.hands_on_readers |= copied.hands_on_readers;
        }
    }

    /// Whether another process of the trace may have a lock of which no thread of its own process has it, although one waits for it.
    pub fn may_be_elsewhere(&self, object: u32) -> bool {
        let state = &self.objects[object as usize];
        state.may_be_held_elsewhere || state.has_attributes && self.has_other_processes(state.process)
    }

    /// Whether a lock may be one for several processes because no record shows how it was initialised: rings have overwritten that of its
    /// process or of an ancestor, or all records of that before the fork, or it is not recorded whose child the process is.
    pub fn may_be_for_others(&self, object: u32) -> bool {
        let ObjectState { process, kind, .. } = self.objects[object as usize];
        self.may_lack_initialisation(object) && kind.is_copied_by_fork() && self.has_other_processes(process)
    }

    /// Whether no record shows how an object was initialised, and records of its process or its ancestors are missing.
    fn may_lack_initialisation(&self, object: u32) -> bool {
        let ObjectState { process, address, kind, .. } = self.objects[object as usize];
        let shows_attributes = |process: u32| {
            let known = self.object_at(process, address).map(|known| &self.objects[known as usize]);
            known.is_some_and(|known| known.kind == kind && (known.has_no_attributes || known.has_attributes))
        };
        let may_lack_it =
            |process: u32| self.processes[process as usize].knowledge.complete_from > 0 || self.misses_parent(process);
        self.line_of(process).any(may_lack_it) && !self.line_of(process).any(shows_attributes)
    }

    /// Whether another process may have a lock for which a thread waits that has one itself: since before the call began nobody of its own
    /// process has had it. Where the entry record says who has a lock there is a call site beside that.
    pub fn may_be_taken_elsewhere(&self, thread: u32, object: u32, call: &OngoingCall) -> bool {
        let state = &self.objects[object as usize];
        let is_unused = state.occupancy.holds.is_empty() && state.occupancy.changed_at() <= call.entry;
        let is_in_call = call.waits && call.object == Some(object) && call.site == 0;
        let may_be = is_unused && is_in_call && state.kind.is_copied_by_fork();
        let has_lock = |held: &u32| self.objects[*held as usize].kind.is_copied_by_fork();
        may_be
            && self.threads[thread as usize].holds.iter().any(has_lock)
            && !self.was_initialised_without_attributes(object)
    }

    /// Whether the trace has another process than this one.
    pub fn has_other_processes(&self, process: u32) -> bool {
        self.has_other_processes_than(self.processes[process as usize].pid)
    }

    fn has_other_processes_than(&self, pid: u32) -> bool {
        self.processes.iter().any(|process| process.pid != pid)
    }

    /// Whether another process may have a lock while no thread of its own process has it, so that it is not known whether nobody has. Whoever
    /// waits for a mutex sees its owner: if none was another process's, and no other process of the trace is known to use the lock, none has
    /// it, though it has attributes, as those of a JVM. Which processes do is known in the end.
    pub fn may_hide_holders(&self, object: u32) -> bool {
        let state = &self.objects[object as usize];
        let may_be = match state.owners {
            SeenOwners::Own => state.may_be_held_elsewhere && state.kind != ObjectKind::Mutex,
            SeenOwners::Hidden => state.may_be_held_elsewhere,
            SeenOwners::Elsewhere => return true,
        };
        let is_used = |other: &ObjectState| {
            let is_for_processes = state.may_be_held_elsewhere || other.may_be_held_elsewhere;
            let [own, its] = [state, other].map(|object| &self.processes[object.process as usize]);
            is_for_processes && its.begin <= own.last && own.begin <= its.last
        };
        let is_lock = state.may_be_in_shared_memory() && state.kind.is_copied_by_fork();
        is_lock && (may_be || self.counterparts_of(object).any(is_used))
    }

    /// Whether a living process of the trace may use an object for which threads of its own process wait: one that has an object which may be
    /// that one, or has the memory by a fork and may use it yet.
    pub fn may_be_used_elsewhere(&self, object: u32) -> bool {
        let state = &self.objects[object as usize];
        let may_be = self.may_be_for_processes(object);
        let is_used = |other: &ObjectState| {
            let number = self.object_at(other.process, other.address);
            let is_there = number.is_some_and(|number| std::ptr::eq(&raw const self.objects[number as usize], other));
            let is_for_processes = may_be || number.is_some_and(|number| self.may_be_for_processes(number));
            is_there && is_for_processes && self.is_living(other.process)
        };
        // A program may map shared memory where its own data would be, for its children.
        self.counterparts_of(object).any(is_used) || may_be && self.has_living_relative(state.process)
    }

    /// The objects of other processes that may be one with an object.
    fn counterparts_of(&self, object: u32) -> impl Iterator<Item = &ObjectState> {
        let state = &self.objects[object as usize];
        let pid = |object: &ObjectState| self.processes[object.process as usize].pid;
        let others = self.counterparts.at_place_of(state).iter().map(|other| &self.objects[*other as usize]);
        others.filter(move |other| pid(other) != pid(state) && state.may_be_same(other))
    }

    /// Finds which of the objects so far may be one that several processes use.
    pub fn find_counterparts(&mut self) {
        self.counterparts = Counterparts::default();
        let first = self.processes.first().map_or(0, |process| process.pid);
        if self.has_other_processes_than(first) {
            for object in self.objects.numbers() {
                self.counterparts.add(object, &self.objects[object as usize]);
            }
        }
    }

    /// Whether an object may be one for several processes: it has attributes, or no record shows that it has none.
    fn may_be_for_processes(&self, object: u32) -> bool {
        let state = &self.objects[object as usize];
        let is_unknown = state.kind == ObjectKind::Sema || self.may_lack_initialisation(object);
        state.has_attributes || is_unknown && !state.has_no_attributes
    }

    fn is_living(&self, process: u32) -> bool {
        matches!(self.processes[process as usize].end, ImageEnd::Unknown | ImageEnd::Running)
    }

    /// Whether another living process has memory of a process or of its ancestors, as far as the records show.
    fn has_living_relative(&self, process: u32) -> bool {
        let is_first = |process: &u32| {
            let ProgramState { knowledge, parent, .. } = &self.processes[*process as usize];
            knowledge.is_spawned || parent.is_none()
        };
        let first_of = |process: u32| self.line_of(process).find(is_first).unwrap_or(process);
        let first = first_of(process);
        let is_relative = |other: u32| {
            let first_of_other = first_of(other);
            first_of_other == first || self.misses_parent(first) || self.misses_parent(first_of_other)
        };
        let pid = self.processes[process as usize].pid;
        let is_other = |other: &u32| self.processes[*other as usize].pid != pid && self.is_living(*other);
        (0..self.processes.len() as u32).filter(is_other).any(is_relative)
    }

    /// Whether a process was forked, and no record shows by which one.
    fn misses_parent(&self, process: u32) -> bool {
        let ProgramState { knowledge, parent, image, .. } = &self.processes[process as usize];
        knowledge.is_forked && parent.is_none() && *image == 0
    }

    /// Takes that a thread of another process had a lock, or one whose calls are not recorded.
    pub fn note_owner_elsewhere(&mut self, object: u32) {
        let state = &mut self.objects[object as usize];
        (state.owners, state.may_be_held_elsewhere) = (SeenOwners::Elsewhere, true);
    }

    /// Notes that a wait for a lock began without a call site, if it did: then nothing shows who was its owner.
    pub fn note_hidden_owner(&mut self, object: u32, site: u32) {
        if site == 0 {
            let state = &mut self.objects[object as usize];
            state.owners = state.owners.max(SeenOwners::Hidden);
        }
    }

    /// Takes back that nobody held locks that other processes may have had: of some that shows only later.
    pub fn forget_handoffs(&mut self) {
        let has_handoff = |object: &u32| self.objects[*object as usize].figures.handoff > 0;
        let with_handoff = self.objects.numbers().filter(has_handoff);
        let objects: HashSet<u32> = with_handoff.filter(|object| self.may_hide_holders(*object)).collect();
        for object in &objects {
            let figures = &mut self.objects[*object as usize].figures;
            figures.unknown += std::mem::take(&mut figures.handoff);
        }
        if let Some(shares) = self.shares.as_mut().filter(|_| !objects.is_empty()) {
            shares.forget_handoffs(&objects);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::analysis_tests::{RecordLine, record};
    use super::*;
    use crate::report::contention::contention_shares::{ContentionShares, WaitCause};
    use crate::report::contention::{Knowledge, WaitSelection};

    /// Handoff and unknown of the object of the process with this ID, and of all shares.
    fn divided(lines: &[&[RecordLine]], pid: u32) -> [(u64, u64); 2] {
        let knowledge = HashMap::from([(1, Knowledge::default()), (2, Knowledge::default())]);
        let mut analysis = Analysis::new(knowledge, WaitSelection::default());
        analysis.shares = Some(ContentionShares::default());
        lines.concat().iter().for_each(|line| analysis.add(&record(*line)));
        analysis.finish(&[]);
        let rows = &analysis.shares.as_ref().unwrap().rows;
        let sum = |cause| rows.iter().filter(|(key, _)| key.cause == cause).map(|(_, sum)| sum.time).sum();
        let has_pid = |process: u32| analysis.processes[process as usize].pid == pid;
        let object = analysis.objects.iter().find(|object| object.address == 16 && has_pid(object.process)).unwrap();
        [(object.figures.handoff, object.figures.unknown), (sum(WaitCause::Handoff), sum(WaitCause::Unknown))]
    }

    /// LWPs from 20 on are another process's.
    const FORK: [RecordLine; 3] = [(6, 1, "11:1:1", &[0]), (7, 21, "11:2:0", &[1]), (8, 1, "11:1:2", &[20, 0, 0])];

    /// A thread releases a lock at 20, another one at 25, and the first one waits for it from 30 to 50.
    fn waits(lwp: u32, kind: u8) -> Vec<(u64, u32, String, &'static [u64])> {
        let [take, release] = match kind {
            5 => [3, 4],
            _ => [2, 4],
        };
        let result: &[u64] = if kind == 9 { &[1] } else { &[0, 1, 1] };
        let free: &[u64] = if kind == 9 { &[0] } else { &[0, 0, 1] };
        let event = |number: u8, which: u8| format!("{kind}:{number}:{which}");
        vec![
            (10, lwp, event(take, 1), &[16]),
            (10, lwp, event(take, 2), free),
            (20, lwp, event(release, 0), &[16, 0, 0, 1]),
            (22, lwp + 1, event(take, 1), &[16]),
            (22, lwp + 1, event(take, 2), free),
            (25, lwp + 1, event(release, 0), &[16, 0, 0, 1]),
            (30, lwp, event(take, 1), &[16]),
            (50, lwp, event(take, 2), result),
        ]
    }

    #[test]
    fn nobody_is_known_to_hold_a_lock_that_other_processes_may_have() {
        for (kind, initialisation, may_be_shared) in [
            (2, &[16, 0, 0, 0][..], false),
            (2, &[16, 99, 0, 0], true),
            // The type is reason enough for attributes.
            (2, &[16, 99, 2, 0], false),
            (6, &[16, 99, 1, 0], false),
            (5, &[16, 0, 0, 0], false),
            (5, &[16, 99, 0, 0], true),
            (9, &[16, 0, 0], false),
            (9, &[16, 1, 0], true),
        ] {
            let event = format!("{kind}:1:0");
            for lwp in [1, 21] {
                let waits = waits(lwp, kind);
                let waits: Vec<RecordLine> =
                    waits.iter().map(|(time, lwp, event, arguments)| (*time, *lwp, &event[..], *arguments)).collect();
                let got = divided(&[&[(5, 1, &event, initialisation)], &FORK, &waits], if lwp == 1 { 1 } else { 2 });
                let expected = if may_be_shared { (0, 20) } else { (20, 0) };
                assert_eq!(got, [expected; 2], "{kind} {initialisation:?} {lwp}");
            }
        }
    }

    /// The mutexes of a JVM have attributes.
    #[test]
    fn who_sees_the_owners_of_a_mutex_knows_that_no_other_process_has_it() {
        let initialisation: &[RecordLine] = &[(5, 1, "2:1:0", &[16, 99, 0, 0])];
        let waits = |entry: &'static [u64]| -> [RecordLine<'static>; 6] {
            [
                (10, 1, "2:2:1", &[16, 0, 0, 0, 7]),
                (10, 1, "2:2:2", &[0, 0]),
                (20, 1, "2:4:0", &[16, 0, 0, 0, 7]),
                (25, 2, "2:4:0", &[16, 0, 0, 0, 7]),
                (30, 1, "2:2:1", entry),
                (50, 1, "2:2:2", &[0, 1]),
            ]
        };
        let with_site = waits(&[16, 0, 0, 0, 7]);
        assert_eq!(divided(&[initialisation, &with_site], 1), [(20, 0); 2]);
        assert_eq!(divided(&[initialisation, &FORK, &with_site], 1), [(20, 0); 2], "a shell that runs it");
        assert_eq!(divided(&[initialisation, &waits(&[16])], 1), [(0, 20); 2], "without THR_TRACE_DETAIL");
        let sees_another: &[RecordLine] = &[(60, 1, "2:4:0", &[16, 0, 0]), (70, 1, "2:2:1", &[16, 0, 0, 9, 7])];
        assert_eq!(divided(&[initialisation, &with_site, sees_another], 1), [(0, 20); 2]);
    }

    #[test]
    fn no_thread_ends_its_wait_by_what_it_did_before() {
        let mut analysis = Analysis::new(HashMap::from([(1, Knowledge::default())]), WaitSelection::default());
        waits(1, 2)
            .iter()
            .filter(|(_, lwp, ..)| *lwp == 1)
            .for_each(|(time, lwp, event, arguments)| analysis.add(&record((*time, *lwp, event, *arguments))));
        analysis.finish(&[]);
        assert!(analysis.objects.iter().all(|object| object.figures.wakers.in_order().is_empty()));
        let unknown: Vec<u64> = analysis.objects.iter().map(|object| object.figures.unknown).collect();
        assert_eq!(unknown, [20], "somebody has had the lock whose calls are not recorded");
    }

    /// Which is seen later than the first wait.
    #[test]
    fn a_lock_that_a_thread_of_another_process_has_is_shared() {
        let later = |owner: &'static [u64]| -> [RecordLine<'static>; 5] {
            [
                (60, 1, "2:4:0", &[16, 0, 0]),
                (65, 2, "1:39:0", &[2, 0, 0, 0]),
                (66, 2, "2:4:0", &[16, 0, 0]),
                (70, 1, "2:2:1", owner),
                (90, 1, "2:2:2", &[0, 1]),
            ]
        };
        let waits = waits(1, 2);
        let waits: Vec<RecordLine> =
            waits.iter().map(|(time, lwp, event, arguments)| (*time, *lwp, &event[..], *arguments)).collect();
        assert_eq!(divided(&[&waits, &later(&[16])], 1), [(40, 0); 2]);
        assert_eq!(divided(&[&waits, &later(&[16, 0, 0, 2])], 1), [(40, 0); 2], "a thread of the same process");
        assert_eq!(divided(&[&waits, &later(&[16, 0, 0, 9])], 1), [(0, 40); 2]);
    }
}
