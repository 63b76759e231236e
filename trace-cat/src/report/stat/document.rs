//! The counts of `--stat` as a JSON document (`-F json`).
//!
//! Times are nanoseconds since `origin`, the time of the first record; durations are nanoseconds. A figure is null where it is
//! not known, or where there is no such thing: an event whose calls never wait has no `blocked`.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use spec::Event;
use spec::record::NANOS_PER_SECOND;

use super::counts::{TraceCounts, category};
use crate::report::process_info::ProcessInfo;

/// The version of the document.
const FORMAT: u32 = 1;

/// Appends the document. `known` has the processes of the directories by process ID.
pub fn append_document(counts: &TraceCounts, known: &HashMap<u32, ProcessInfo>, out: &mut Vec<u8>) {
    let span = counts.span();
    let origin = span.map_or(0, |(start, _)| start);
    let mut processes: Vec<_> = counts.processes.iter().collect();
    processes.sort_by_key(|(pid, process)| (process.span.0, **pid));
    let processes = processes.into_iter().map(|(pid, process)| {
        let known = known.get(pid);
        json!({
            "pid": pid,
            "parent": known.map(|known| known.parent).filter(|&parent| parent != 0),
            "command": known.map(|known| &known.command),
            "threads": process.threads.len(),
            "records": process.records,
            "lost": process.lost,
            "begin": process.span.0 - origin,
            "end": process.span.1 - origin,
            "notes": known.map_or_else(Vec::new, |known| known.limits().collect()),
        })
    });
    let mut events: Vec<_> = counts.events.iter().collect();
    events.sort_by_key(|(numbers, count)| (std::cmp::Reverse(count.records), **numbers));
    let events = events.into_iter().map(|(&(event1, event2), count)| {
        let event = Event::find(event1, event2);
        let has_duration = event.is_some_and(|event| event.kinds.len() == 2);
        json!({
            "category": category(event1),
            "event": event.map_or_else(|| format!("{}.{event2:02}", category(event1)), |event| event.name.to_owned()),
            "calls": count.calls,
            "records": count.records,
            "blocked": counts.can_wait((event1, event2)).then_some(count.blocked),
            "duration": has_duration.then_some(count.nanoseconds),
            "open": count.open,
        })
    });
    let parent = |pid| known.get(&pid).map(|process| process.parent).filter(|&parent| parent != 0);
    let objects =
        counts.objects.keys().map(|&kind| (category(kind).to_owned(), counts.count_objects(kind, parent).into()));
    let document = json!({
        "format": FORMAT,
        "origin": span.map(|_| format!("{:010}.{:09}", origin / NANOS_PER_SECOND, origin % NANOS_PER_SECOND)),
        "span": span.map(|(start, end)| end - start),
        "records": counts.records,
        "lost": counts.lost(),
        "runs": counts.runs,
        "processes": processes.collect::<Vec<Value>>(),
        "events": events.collect::<Vec<Value>>(),
        "objects": objects.collect::<Map<String, Value>>(),
    });
    out.extend_from_slice(format!("{document:#}\n").as_bytes());
}
