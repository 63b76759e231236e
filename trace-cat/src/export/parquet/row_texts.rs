//! The texts of rows: names of processes, objects, sites and events.

use std::collections::HashMap;

use spec::Event;

use super::row::{ObjectTexts, ProcessTexts, TextId};
use super::texts::TextNumbers;
use crate::export::scene::TimelineScene;
use crate::record::record_kinds::category_name;
use crate::report::contention::NumericRecord;

/// Where a process ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOrigin {
    pub host: String,
    /// The boot ID; empty if it is not known.
    pub boot: String,
    /// Its ID there.
    pub pid: u32,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A record.
    Record,
    /// A call that has not returned.
    Call,
    /// A wait that no record of its own ended.
    Wait,
    /// The part of a wait for a condition in which the thread waited for the mutex.
    Rest,
    /// A hold that no record of its own ended.
    Hold,
    /// What another holder is to blame for of the wait in a row before.
    Blame,
    /// What the holder of the row before is to blame for of the same wait, having acquired the object at another site.
    Site,
}

const KINDS: [&str; 7] = ["record", "call", "wait", "rest", "hold", "blame", "site"];
/// Categories and numbers of events have two digits.
const NUMBERS: usize = 100;

/// The numbers of the texts of rows.
pub struct RowTexts {
    pub texts: TextNumbers,
    origins: HashMap<u32, ProcessOrigin>,
    kinds: [TextId; KINDS.len()],
    /// By category and number; 0 if no record had the event yet.
    events: Vec<TextId>,
    /// By index; `None` of those that no row had yet.
    processes: Vec<Option<ProcessTexts>>,
    objects: Vec<Option<ObjectTexts>>,
    sites: Vec<Option<TextId>>,
}

impl RowTexts {
    /// Texts of processes from these hosts, by process ID.
    pub fn new(origins: HashMap<u32, ProcessOrigin>) -> RowTexts {
        let mut texts = TextNumbers::new();
        RowTexts {
            kinds: KINDS.map(|kind| texts.number(kind)),
            texts,
            origins,
            events: vec![0; NUMBERS * NUMBERS],
            processes: Vec::new(),
            objects: Vec::new(),
            sites: Vec::new(),
        }
    }

    pub fn kind(&self, kind: RowKind) -> TextId {
        self.kinds[kind as usize]
    }

    pub fn event(&mut self, (category, number): (u8, u8)) -> TextId {
        let Some(known) = self.events.get_mut(usize::from(category) * NUMBERS + usize::from(number)) else { return 0 };
        if *known == 0 {
            let unnamed = || format!("{}.{number:02}", String::from_utf8_lossy(&category_name(category)));
            let name = Event::find(category, number).map_or_else(unnamed, |event| event.name.to_owned());
            *known = self.texts.number(&name);
        }
        *known
    }

    /// Host and program of a process.
    pub fn process(&mut self, index: u32, scene: &TimelineScene) -> ProcessTexts {
        let RowTexts { texts, origins, processes, .. } = self;
        *known(processes, index, || {
            let state = scene.process(index);
            let program = scene.names.recorded.get(&state.pid).and_then(|recorded| recorded.program(state.image));
            let build_id = program.and_then(|program| program.maps.first()?.build_id.as_deref());
            let origin = origins.get(&state.pid);
            ProcessTexts {
                pid: origin.map_or(state.pid, |origin| origin.pid),
                host: texts.number(origin.map_or("", |origin| &origin.host)),
                boot: optional(texts, origin.map_or("", |origin| &origin.boot)),
                program: optional(texts, program.map_or("", |program| &program.exe)),
                build_id: optional(texts, build_id.unwrap_or("")),
            }
        })
    }

    /// The arguments of a record, in which processes have the IDs that they have on their host.
    pub fn arguments(&self, record: &NumericRecord) -> [u64; 5] {
        let mut record = *record;
        record.change_processes(|pid| self.origins.get(&pid).map_or(pid, |origin| origin.pid));
        record.arguments
    }

    /// Identity, kind and name of an object.
    pub fn object(&mut self, index: u32, scene: &TimelineScene) -> ObjectTexts {
        let pid = self.process(scene.object(index).process, scene).pid;
        let RowTexts { texts, objects, .. } = self;
        *known(objects, index, || {
            let name = scene.known_object_name(index).unwrap_or_default();
            ObjectTexts {
                object: texts.add(&scene.names.object_name_in(pid, index)),
                kind: texts.number(scene.object(index).kind_name()),
                name: optional(texts, &name),
            }
        })
    }

    /// The name of a site; 0 if it is not known.
    pub fn site(&mut self, index: u32, scene: &TimelineScene) -> TextId {
        if index == 0 {
            return 0;
        }
        let RowTexts { texts, sites, .. } = self;
        *known(sites, index, || optional(texts, &scene.place(index).unwrap_or_default()))
    }
}

/// The number of a text; none of an empty one.
fn optional(texts: &mut TextNumbers, text: &str) -> TextId {
    if text.is_empty() { 0 } else { texts.number(text) }
}

/// The value at an index, which is made if it is not known.
fn known<T>(values: &mut Vec<Option<T>>, index: u32, make: impl FnOnce() -> T) -> &mut T {
    let index = index as usize;
    if values.len() <= index {
        values.resize_with(index + 1, || None);
    }
    values[index].get_or_insert_with(make)
}
