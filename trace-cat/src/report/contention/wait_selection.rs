//! Which waits are accounted. Who holds what is found from all records.

use std::ops::Range;

use spec::event_numbers::{THR_JOIN, THR_ONCE, THR_TIMEDJOIN};
use spec::{EVENTS, EventSet};

use super::object_state::ObjectKind;

/// An empty list selects all.
#[derive(Clone, Debug)]
pub struct WaitSelection {
    pub pids: Vec<u32>,
    /// LWPs of the threads that wait.
    pub lwps: Vec<u32>,
    /// Addresses of objects.
    pub objects: Vec<u64>,
    /// Kinds of objects; `None` among them stands for the ends of threads.
    pub kinds: Option<Vec<Option<ObjectKind>>>,
    /// Idleness is left out.
    pub only_contention: bool,
    /// Only the parts of waits and holds in this time are accounted, and calls that begin in it.
    pub times: Range<u64>,
}

impl Default for WaitSelection {
    fn default() -> WaitSelection {
        let (pids, lwps, objects) = Default::default();
        WaitSelection { pids, lwps, objects, kinds: None, only_contention: false, times: 0..u64::MAX }
    }
}

impl WaitSelection {
    /// The kinds of objects that the calls of some events are on.
    pub fn kinds_of(events: &EventSet) -> Vec<Option<ObjectKind>> {
        let kinds = ObjectKind::ALL.map(Some).into_iter().chain([None]);
        let is_of = |kind: Option<ObjectKind>, category: u8, number: u8| match kind {
            None => matches!((category, number), THR_JOIN | THR_TIMEDJOIN),
            Some(ObjectKind::Once) => (category, number) == THR_ONCE,
            Some(kind) => EventSet::parse(kind.name().as_bytes(), &mut |_| {}).contains_numbers(category, number),
        };
        let selected = EVENTS.iter().filter(|event| event.category != 0);
        let selected = selected.filter(|event| events.contains_numbers(event.category, event.number));
        let numbers: Vec<(u8, u8)> = selected.map(|event| (event.category, event.number)).collect();
        kinds.filter(|kind| numbers.iter().any(|(category, number)| is_of(*kind, *category, *number))).collect()
    }

    /// Whether all of the trace is selected.
    pub fn is_all(&self) -> bool {
        let lists = self.pids.is_empty() && self.lwps.is_empty() && self.objects.is_empty() && self.kinds.is_none();
        lists && !self.only_contention && !self.has_times()
    }

    /// Whether only a part of the time is selected.
    pub fn has_times(&self) -> bool {
        self.times != (0..u64::MAX)
    }

    /// Whether waits of a thread for an object are selected; `None` stands for the end of a thread, which is no object.
    pub fn wants(&self, pid: u32, lwp: u32, object: Option<(u64, ObjectKind)>) -> bool {
        self.wants_process(pid)
            && (self.lwps.is_empty() || self.lwps.contains(&lwp))
            && match object {
                Some((address, kind)) => self.wants_object(address, kind),
                None => self.objects.is_empty() && self.wants_kind(None),
            }
    }

    /// Whether an object is selected, in a process that is.
    pub fn wants_object(&self, address: u64, kind: ObjectKind) -> bool {
        (self.objects.is_empty() || self.objects.contains(&address)) && self.wants_kind(Some(kind))
    }

    fn wants_kind(&self, kind: Option<ObjectKind>) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }

    /// Whether anything of a process is selected.
    pub fn wants_process(&self, pid: u32) -> bool {
        self.pids.is_empty() || self.pids.contains(&pid)
    }

    /// The nanoseconds between two times that are selected.
    pub fn clip(&self, from: u64, to: u64) -> u64 {
        to.min(self.times.end).saturating_sub(from.max(self.times.start))
    }

    /// Whether something that lasted from one time to another lasted while records are selected.
    pub fn overlaps(&self, from: u64, to: u64) -> bool {
        from < self.times.end && (to > self.times.start || from >= self.times.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_stand_for_the_kinds_of_their_objects() {
        let kinds = |list: &str| WaitSelection::kinds_of(&EventSet::parse(list.as_bytes(), &mut |_| panic!()));
        assert_eq!(kinds("mutex,cond_wait"), [Some(ObjectKind::Mutex), Some(ObjectKind::Cond)]);
        assert_eq!(kinds("thread"), [Some(ObjectKind::Once), None]);
        assert_eq!(kinds("thr_join"), [None]);
        assert_eq!(kinds("-thread").len(), ObjectKind::ALL.len() - 1);
        assert_eq!(kinds("process"), []);
    }

    #[test]
    fn times_are_clipped() {
        let selection = WaitSelection { times: 10..20, ..WaitSelection::default() };
        for (from, to, expected) in
            [(0, 10, None), (0, 11, Some(1)), (12, 12, Some(0)), (15, 30, Some(5)), (0, 99, Some(10)), (20, 30, None)]
        {
            let clipped = selection.overlaps(from, to).then(|| selection.clip(from, to));
            assert_eq!(clipped, expected, "{from} {to}");
        }
    }
}
