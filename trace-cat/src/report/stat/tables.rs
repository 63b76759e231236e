//! The counts as tables.

use std::collections::HashMap;

use spec::Event as Row;

use super::counts::{OBJECTS, TraceCounts, category};
use crate::report::process_info::ProcessInfo;
use crate::support::duration::duration_text;
use crate::support::local_time::DateTime;

/// Appends everything that was counted. `known` is what directories tell of processes.
pub fn print(stat: &TraceCounts, known: &HashMap<u32, ProcessInfo>, out: &mut Vec<u8>) {
    let mut text = String::new();
    summary(stat, &mut text);
    if stat.records > 0 {
        processes(stat, known, &mut text);
        events(stat, &mut text);
        objects(stat, &mut text);
        notes(stat, known, &mut text);
    }
    out.extend_from_slice(text.as_bytes());
}

fn summary(stat: &TraceCounts, text: &mut String) {
    let threads: usize = stat.processes.values().map(|process| process.threads.len()).sum();
    let lost: u64 = stat.processes.values().map(|process| process.lost).sum();
    *text += &format!("records    {}, {lost} lost\n", stat.records);
    *text += &format!("processes  {}, {threads} threads\n", stat.processes.len());
    if let Some(runs) = stat.runs {
        *text += &format!("runs       {runs}\n");
    }
    if let Some((start, end)) = stat.span() {
        *text += &format!("time       from {} on, {}\n", DateTime(start), duration_text(end - start));
    }
}

fn processes(stat: &TraceCounts, known: &HashMap<u32, ProcessInfo>, text: &mut String) {
    let start = stat.span().map_or(0, |(start, _)| start);
    let mut processes: Vec<_> = stat.processes.iter().collect();
    processes.sort_by_key(|(pid, process)| (process.span.0, **pid));
    *text += "\nprocess   parent  threads     records       lost       began        took  command\n";
    for (pid, process) in processes {
        let (parent, command) = match known.get(pid) {
            Some(known) if known.parent != 0 => (known.parent.to_string(), known.command.as_str()),
            Some(known) => ("-".to_owned(), known.command.as_str()),
            None => ("-".to_owned(), ""),
        };
        let (threads, records, lost) = (process.threads.len(), process.records, process.lost);
        let (began, took) = (duration_text(process.span.0 - start), duration_text(process.span.1 - process.span.0));
        let line = format!(
            "{pid:>7}  {parent:>7}  {threads:>7}  {records:>10}  {lost:>9}  {began:>10}  {took:>10}  {command}"
        );
        *text += line.trim_end();
        text.push('\n');
    }
}

fn events(stat: &TraceCounts, text: &mut String) {
    let mut events: Vec<_> = stat.events.iter().collect();
    events.sort_by_key(|(numbers, event)| (std::cmp::Reverse(event.records), **numbers));
    *text += "\nevent                       calls     records     blocked     in calls\n";
    for (&(event1, event2), event) in events {
        let row = Row::find(event1, event2);
        let name = row.map_or_else(|| format!("{}.{event2:02}", category(event1)), |row| row.name.to_owned());
        // Only what has two records takes time.
        let took = if event.records > event.calls { duration_text(event.nanoseconds) } else { String::new() };
        let blocks = |row: &Row| {
            row.kinds.iter().any(|form| form.columns.iter().flatten().any(|column| column.name == "block?"))
        };
        let blocked = if row.is_some_and(blocks) { event.blocked.to_string() } else { String::new() };
        let line = format!("{name:<22}  {:>9}  {:>10}  {blocked:>10}  {took:>11}", event.calls, event.records);
        *text += line.trim_end();
        text.push('\n');
    }
}

fn objects(stat: &TraceCounts, text: &mut String) {
    let mut kinds: Vec<_> = stat.objects.iter().collect();
    kinds.sort_by_key(|(kind, _)| **kind);
    if !kinds.is_empty() {
        *text += "\nobjects                     count\n";
    }
    for (kind, objects) in kinds {
        *text += &format!("{:<22}  {:>9}\n", category(*kind), objects.len());
    }
    if stat.object_count >= OBJECTS {
        *text += "There are more objects, which were not told apart any more.\n";
    }
}

/// Why a process's records may not be all of its calls.
fn notes(stat: &TraceCounts, known: &HashMap<u32, ProcessInfo>, text: &mut String) {
    let mut pids: Vec<&u32> = stat.processes.keys().collect();
    pids.sort();
    let notes = pids
        .into_iter()
        .flat_map(|pid| known.get(pid).into_iter().flat_map(|process| &process.notes).map(move |note| (pid, note)));
    for (index, (pid, note)) in notes.enumerate() {
        *text += if index == 0 { "\n" } else { "" };
        *text += &format!("process {pid}: {note}\n");
    }
}
