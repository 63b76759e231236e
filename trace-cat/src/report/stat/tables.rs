//! The counts of `--stat` as tables.

use std::collections::HashMap;

use spec::Event;

use super::counts::{OBJECTS_MAX, TraceCounts, category};
use crate::report::process_info::ProcessInfo;
use crate::support::duration::duration_text;
use crate::support::local_time::DateTime;

/// Appends all tables. `known` has the processes of the directories by process ID.
pub fn append_tables(counts: &TraceCounts, known: &HashMap<u32, ProcessInfo>, out: &mut Vec<u8>) {
    let mut text = String::new();
    summary(counts, &mut text);
    if counts.records > 0 {
        processes(counts, known, &mut text);
        events(counts, &mut text);
        objects(counts, known, &mut text);
        notes(counts, known, &mut text);
    }
    out.extend_from_slice(text.as_bytes());
}

fn summary(counts: &TraceCounts, text: &mut String) {
    let threads: usize = counts.processes.values().map(|process| process.threads.len()).sum();
    *text += &format!("records    {}, {} lost\n", counts.records, counts.lost());
    let more: usize = counts.processes.keys().filter_map(|pid| counts.shared_numbers.get(pid)).sum();
    *text += &format!("processes  {}, {threads} threads\n", counts.processes.len() + more);
    if let Some(runs) = counts.runs {
        *text += &format!("runs       {runs}\n");
    }
    *text += &counts.run_lines;
    if let Some((start, end)) = counts.span() {
        *text += &format!("time       from {} on, {}\n", DateTime(start), duration_text(end - start));
    }
}

fn processes(counts: &TraceCounts, known: &HashMap<u32, ProcessInfo>, text: &mut String) {
    let start = counts.span().map_or(0, |(start, _)| start);
    let mut processes: Vec<_> = counts.processes.iter().collect();
    processes.sort_by_key(|(pid, process)| (process.span.0, **pid));
    *text += "\nprocess   parent  threads     records       lost       began        took  command\n";
    for (pid, process) in processes {
        let (parent, command) = match known.get(pid) {
            Some(known) if known.parent != 0 => (known.parent.to_string(), known.command.as_str()),
            Some(known) => ("-".to_owned(), known.command.as_str()),
            None => ("-".to_owned(), ""),
        };
        let (threads, records, lost) = (process.threads.len(), process.records, process.lost);
        let (began, duration) = (duration_text(process.span.0 - start), duration_text(process.span.1 - process.span.0));
        let line = format!(
            "{pid:>7}  {parent:>7}  {threads:>7}  {records:>10}  {lost:>9}  {began:>10}  {duration:>10}  {command}"
        );
        *text += line.trim_end();
        text.push('\n');
    }
}

fn events(counts: &TraceCounts, text: &mut String) {
    let mut events: Vec<_> = counts.events.iter().collect();
    events.sort_by_key(|(numbers, count)| (std::cmp::Reverse(count.records), **numbers));
    *text += "\nevent                       calls     records     blocked     in calls     open\n";
    for (&(event1, event2), count) in events {
        let event = Event::find(event1, event2);
        let name = event.map_or_else(|| format!("{}.{event2:02}", category(event1)), |event| event.name.to_owned());
        // Only a call with two records has a duration.
        let duration = if event.is_some_and(|event| event.kinds.len() == 2) {
            duration_text(count.nanoseconds)
        } else {
            String::new()
        };
        let blocked = if counts.can_wait((event1, event2)) { count.blocked.to_string() } else { String::new() };
        let open = if count.open > 0 { count.open.to_string() } else { String::new() };
        let line =
            format!("{name:<22}  {:>9}  {:>10}  {blocked:>10}  {duration:>11}  {open:>7}", count.calls, count.records);
        *text += line.trim_end();
        text.push('\n');
    }
}

fn objects(counts: &TraceCounts, known: &HashMap<u32, ProcessInfo>, text: &mut String) {
    let parent = |pid| known.get(&pid).map(|process| process.parent).filter(|&parent| parent != 0);
    let mut kinds: Vec<_> = counts.objects.keys().collect();
    kinds.sort();
    if !kinds.is_empty() {
        *text += "\nobjects                     count\n";
    }
    for &kind in kinds {
        *text += &format!("{:<22}  {:>9}\n", category(kind), counts.count_objects(kind, parent));
    }
    if counts.object_count >= OBJECTS_MAX {
        *text += "There are more objects, which were not counted.\n";
    }
}

/// Appends the reasons why calls may be missing in a process's records.
fn notes(counts: &TraceCounts, known: &HashMap<u32, ProcessInfo>, text: &mut String) {
    let mut pids: Vec<&u32> = counts.processes.keys().collect();
    pids.sort();
    let notes_of = |pid: &u32| {
        let Some(process) = known.get(pid) else { return Vec::new() };
        let mut notes = process.limits().cloned().collect::<Vec<String>>();
        if process.lost > counts.processes[pid].lost {
            notes.push(format!("{} records were lost in all, as it has counted itself", process.lost));
        }
        notes
    };
    let notes = pids.into_iter().flat_map(|pid| notes_of(pid).into_iter().map(move |note| (pid, note)));
    for (index, (pid, note)) in notes.enumerate() {
        *text += if index == 0 { "\n" } else { "" };
        *text += &format!("process {pid}: {note}\n");
    }
}
