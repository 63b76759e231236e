//! What of the timeline is selected. The analysis knows of processes, LWPs, objects, kinds of objects and times; the rest is here.

use spec::EventSet;
use spec::event_numbers::{FUNC_ENTER, PROC_FORK, THR_CREATE, THR_JOIN, USER_COUNTER, USER_MARK, USER_SPAN};
use spec::tables::USER;

use super::program_event::{ProgramEvent, ProgramSpan, ProgramText};
use crate::options::Selection;
use crate::report::contention::{Analysis, NumericRecord, TimelineEvent, WaitSelection};

/// The selection by what the report's analysis does not know of.
#[derive(Clone, Debug, Default)]
pub struct EventSelection {
    events: Option<EventSet>,
    tids: Vec<u64>,
    /// The shortest waits and holds.
    longer: u64,
    /// Only waits.
    blocked: bool,
    objects: bool,
}

impl EventSelection {
    pub fn new(selection: &Selection) -> EventSelection {
        let Selection { events, tids, longer, blocked, objects, .. } = selection;
        EventSelection {
            events: *events,
            tids: tids.clone(),
            longer: longer.unwrap_or(0),
            blocked: *blocked,
            objects: !objects.is_empty(),
        }
    }

    /// What the analysis selects of a trace whose first record is at `start`.
    pub fn waits(selection: &Selection, start: u64) -> WaitSelection {
        let since = selection.since.map_or(0, |since| since.resolve(start));
        let until = selection.until.map_or(u64::MAX, |until| until.resolve(start));
        WaitSelection {
            pids: selection.pids.clone(),
            lwps: selection.lwps.clone(),
            objects: selection.objects.clone(),
            kinds: selection.events.as_ref().map(WaitSelection::kinds_of),
            only_contention: false,
            times: since..until,
        }
    }

    /// The part of a program's own event that is selected. Conditions on calls and objects leave out all but long spans.
    pub fn part(&self, event: &ProgramEvent, analysis: &Analysis) -> Option<ProgramEvent> {
        let times = &analysis.selection.times;
        let (text, default_event) = match *event {
            ProgramEvent::Span(ProgramSpan { text, .. }) | ProgramEvent::MissingBegin { text, .. } => (text, USER_SPAN),
            ProgramEvent::Mark { text, .. } => (text, USER_MARK),
            ProgramEvent::Count { text, .. } => (text, USER_COUNTER),
        };
        let is_wanted = match text {
            ProgramText::Name(_) => self.wants_event(default_event),
            ProgramText::Number(number) => self.wants_event((USER, number)),
            ProgramText::Function(..) => self.wants_event(FUNC_ENTER),
        };
        let (from, to) = event.times();
        let ends_early = if from < to { to <= times.start } else { to < times.start };
        if !is_wanted || ends_early || from >= times.end || !self.wants_thread(event.thread(), analysis) {
            return None;
        }
        match *event {
            ProgramEvent::Span(span) => {
                let (from, to) = (from.max(times.start), to.min(times.end));
                let has_no_end = span.has_no_end && span.to <= times.end;
                let is_cut = (span.from < times.start, has_no_end || span.to > times.end);
                let is_selected = !self.blocked && !self.objects && to - from >= self.longer;
                is_selected.then_some(ProgramEvent::Span(ProgramSpan { from, to, is_cut, has_no_end, ..span }))
            }
            event => (!self.has_conditions()).then_some(event),
        }
    }

    /// Whether an event is selected.
    pub fn wants(&self, event: &TimelineEvent, analysis: &Analysis) -> bool {
        use TimelineEvent as Drawn;
        let is_in_time = |time: u64| analysis.selection.times.contains(&time);
        let is_long = |from: u64, to: u64| to - from >= self.longer;
        let wants_thread = |thread| self.wants_thread(thread, analysis);
        let wants_pair = |a, b| wants_thread(a) && wants_thread(b);
        match *event {
            // Those of which nothing else is selected are drawn nevertheless: they were there.
            Drawn::ThreadBegin { thread } | Drawn::ThreadEnd { thread, .. } => {
                let state = &analysis.threads[thread as usize];
                wants_thread(thread)
                    && analysis.selection.overlaps(state.begin, analysis.processes[state.process as usize].last)
            }
            Drawn::ProcessEnd { process, time, .. } => {
                is_in_time(time) && analysis.selection.wants_process(analysis.processes[process as usize].pid)
            }
            Drawn::Wait(wait) => is_long(wait.from, wait.to) && wants_thread(wait.thread),
            Drawn::Hold(hold) => !self.blocked && is_long(hold.from, hold.to) && wants_thread(hold.thread),
            Drawn::LostHold { thread, from, .. } => !self.blocked && is_in_time(from) && wants_thread(thread),
            Drawn::Creation { creator, created, time } => {
                is_in_time(time) && self.wants_flow(THR_CREATE) && wants_pair(creator, created)
            }
            Drawn::Join { joiner, joined, time } => {
                is_in_time(time) && self.wants_flow(THR_JOIN) && wants_pair(joiner, joined)
            }
            Drawn::Fork { parent, child, time, .. } => {
                is_in_time(time) && self.wants_flow(PROC_FORK) && wants_pair(parent, child)
            }
            Drawn::Loss { thread, time, .. } | Drawn::LossEnd { thread, time } => {
                is_in_time(time) && wants_thread(thread)
            }
            Drawn::MissingEntry { thread, time, event } | Drawn::MissingReturn { thread, time, event } => {
                is_in_time(time) && wants_thread(thread) && self.wants_event(event)
            }
        }
    }

    /// Whether a record of a thread is selected, whose call is on an object.
    pub fn wants_record(&self, record: &NumericRecord, thread: u32, object: Option<u32>, analysis: &Analysis) -> bool {
        let objects = &analysis.selection.objects;
        let has_object = |object: u32| objects.contains(&analysis.objects[object as usize].address);
        analysis.selection.times.contains(&record.time)
            && self.wants_event(record.event)
            && self.wants_thread(thread, analysis)
            && (objects.is_empty() || object.is_some_and(has_object))
    }

    fn wants_flow(&self, event: (u8, u8)) -> bool {
        !self.has_conditions() && self.wants_event(event)
    }

    fn has_conditions(&self) -> bool {
        self.blocked || self.longer > 0 || self.objects
    }

    fn wants_event(&self, (category, number): (u8, u8)) -> bool {
        self.events.as_ref().is_none_or(|events| events.contains_numbers(category, number))
    }

    fn wants_thread(&self, thread: u32, analysis: &Analysis) -> bool {
        let state = &analysis.threads[thread as usize];
        let selection = &analysis.selection;
        selection.wants_process(analysis.processes[state.process as usize].pid)
            && (selection.lwps.is_empty() || selection.lwps.contains(&state.lwp))
            && (self.tids.is_empty() || self.tids.contains(&state.tid))
    }
}
