//! What the records leave out, as text.

use std::collections::BTreeMap;

use spec::event_numbers::RW_RDLOCK;

use super::chain_end::chain_end_text;
use super::tables::thread_label;
use super::view::ReportView;
use crate::report::contention::{BlockedThread, ChainEnd};
use crate::report::trace_names::event_name;
use crate::support::counted::counted;

pub const NO_INFO: &str = "what was recorded is not known: the trinfo files are not beside the records";
const OWN_MEMORY: &str = "its buffers were in its own memory, which nobody else can read";

/// A line for each reason. Processes that share a reason share its line: a server may have hundreds.
pub fn missing_records(view: &ReportView) -> Vec<String> {
    let analysis = view.analysis;
    let mut reasons: Vec<(String, Vec<u32>)> = Vec::new();
    let mut add = |pid: u32, reason: String| match reasons.iter_mut().find(|(known, _)| *known == reason) {
        // The programs that a process executed one after the other have its number.
        Some((_, pids)) if pids.contains(&pid) => {}
        Some((_, pids)) => pids.push(pid),
        None => reasons.push((reason, vec![pid])),
    };
    let mut lost: BTreeMap<u32, u64> = BTreeMap::new();
    for process in analysis.processes.iter().filter(|process| process.lost > 0) {
        *lost.entry(process.pid).or_default() += process.lost;
    }
    lost.into_iter().for_each(|(pid, count)| add(pid, format!("{count} records were lost")));
    for process in &analysis.processes {
        if process.lacks_newest {
            add(process.pid, format!("its newest records may be missing: {OWN_MEMORY}"));
        }
        if process.knowledge.lacks_settings {
            add(process.pid, NO_INFO.to_owned());
        }
        if process.changes > 0 {
            add(process.pid, "what is recorded was changed while it ran (trace-cat set)".to_owned());
        }
    }
    for pid in view.unread_processes() {
        add(pid, format!("it has no record that was written: {OWN_MEMORY}"));
    }
    let mut pids: Vec<&u32> = view.recorded.keys().filter(|pid| analysis.process_of_pid.contains_key(pid)).collect();
    pids.sort_unstable();
    for &pid in pids {
        let recorded = &view.recorded[&pid];
        recorded.reasons().for_each(|note| add(pid, note.clone()));
        if recorded.knowledge.is_partial {
            add(pid, "some calls on locks were not recorded (THR_TRACE_EVENTS)".to_owned());
        } else if recorded.knowledge.misses_waits {
            add(pid, "some calls that may be part of a deadlock were not recorded (THR_TRACE_EVENTS)".to_owned());
        }
    }
    for unknown in view.graph.unknown_holders.iter().filter(|unknown| !unknown.waits.is_empty()) {
        let threads = waiting_threads(unknown.waits.len());
        let when = if view.graph.moment.is_some() { "at that time" } else { "at the end" };
        let others = match (unknown.may_be_elsewhere, unknown.may_be_released) {
            (true, _) => "; other processes may have it",
            (false, true) => "",
            (false, false) => "; no other thread of it runs",
        };
        let pid = view.pid(unknown.process);
        add(pid, format!("who holds what {threads} for {when}{others}"));
        if view.analysis.processes[unknown.process as usize].knowledge.misses_forks {
            add(pid, "what it has since it was forked was not recorded (THR_TRACE_EVENTS)".to_owned());
        }
    }
    let mut routines: BTreeMap<u32, usize> = BTreeMap::new();
    for (thread, _) in &view.graph.unknown_routines {
        *routines.entry(view.pid(view.thread(*thread).process)).or_default() += 1;
    }
    for (pid, count) in routines {
        add(pid, format!("whether {} at the end", waiting_for_routines(count)));
    }
    let mut lines: Vec<String> =
        reasons.iter().map(|(reason, pids)| format!("{}: {reason}", process_list(pids))).collect();
    let missing = analysis.missing;
    let not_searched = analysis.order.as_ref().map_or(0, |order| order.left_out);
    for (count, what) in [
        (missing.releases, "releases, whose holds ended nobody knows when"),
        (missing.acquisitions, "acquisitions, before which the holder is not known for certain"),
        (missing.entries, "entry records"),
        (missing.returns, "return records, or their calls were left by a jump"),
        (not_searched, "times that locks were taken inside others, of too many to find all possible deadlocks"),
        (analysis.cycles_left_out, "groups of locks, which were too large to be searched for possible deadlocks"),
    ] {
        if count > 0 {
            lines.push(format!("{count} {what}"));
        }
    }
    lines.extend(view.graph.undecided.iter().map(|circle| undecided_deadlock(view, circle)));
    let mut behind: BTreeMap<u32, (usize, &ChainEnd)> = BTreeMap::new();
    for stuck in &view.graph.perhaps_stuck {
        use ChainEnd::{Cancelled, Ending, HandedOn, Killed, Left, MayBeWoken, Robust};
        if let Ending(last)
        | Robust(last)
        | Killed(last)
        | Cancelled(last, _)
        | Left(last, _)
        | MayBeWoken { thread: last, .. }
        | HandedOn(last) = stuck.end
        {
            behind.entry(last).or_insert((0, &stuck.end)).0 += 1;
        }
    }
    lines.extend(behind.into_values().map(|(count, end)| {
        let how = match end {
            ChainEnd::Cancelled(..) => "may leave that",
            ChainEnd::Left(..) => "made records since, maybe after a jump",
            ChainEnd::MayBeWoken { .. } => "other threads were running, and could wake it",
            ChainEnd::Robust(_) => "then who waits gets it",
            ChainEnd::Killed(_) => "may have been killed, or run on",
            ChainEnd::HandedOn(_) => "another thread may unlock that",
            _ => "may still run destructors",
        };
        format!("whether {} stuck: {}, and {how}", threads_are(count), chain_end_text(view, end).join("; "))
    }));
    lines
}

/// The threads of a circle that may have left it: they made records that a signal handler makes, or a thread after a jump out of one.
/// And those that may wait for another owner: the one that they saw may have released the lock before it showed a waiter.
fn undecided_deadlock(view: &ReportView, circle: &[BlockedThread]) -> String {
    let left = |blocked: &BlockedThread| {
        let (label, call) = (thread_label(view, blocked.thread), event_name(blocked.call.event));
        format!("{label} made records in {call}, or left it by a jump")
    };
    let saw = |blocked: &BlockedThread| {
        let owner = thread_label(view, blocked.doubtful_owner?);
        let object = blocked.call.wanted()?;
        let (label, lock) = (thread_label(view, blocked.thread), view.object_label(object));
        let has_predecessor = view.analysis.has_predecessor(object, blocked.doubtful_owner?);
        let object = view.object(object);
        let is_handed_on = object.is_released_by_others();
        // Of a lock that a thread of another process has, this one's object shows no hold.
        let has_readers = !object.occupancy.holds.is_empty() && !object.occupancy.is_exclusive();
        if blocked.call.needed_mutex().is_some() {
            let why = match is_handed_on {
                true => format!("which {owner} has taken, and other threads than its owner have unlocked before"),
                false => format!("which {owner} may have released without a record"),
            };
            return Some(format!("{label} cannot return without {lock}, {why}"));
        }
        if is_handed_on && blocked.call.event == RW_RDLOCK && has_readers {
            let why = "which other threads than its readers have unlocked before";
            return Some(format!("{label} waits behind {owner}, which wants to write, for {lock}, {why}"));
        }
        let why = match (is_handed_on, has_readers) {
            (true, false) if !object.is_handed_on => "which a forked child may have unlocked before for its parent",
            (true, false) => "which other threads than its owner have unlocked before",
            (true, true) => "which other threads than its readers have unlocked before",
            (false, false) if has_predecessor => "or a thread that has ended, which had the same LWP",
            (false, false) => "which may have passed to another thread without a record",
            (false, true) => "which may have fewer readers than have taken it and not released it",
        };
        Some(format!("{label} saw that {owner} held {lock}, {why}"))
    };
    let doubtful = circle.iter().filter(|blocked| blocked.may_have_left(view.analysis));
    let doubts: Vec<String> = doubtful.map(left).chain(circle.iter().filter_map(saw)).collect();
    format!("whether {} in a deadlock: {}", threads_are(circle.len()), doubts.join("; "))
}

fn threads_are(count: usize) -> String {
    if count == 1 { "a thread is".to_owned() } else { format!("{count} threads are") }
}

/// `1 thread waits`, `2 threads wait`.
pub fn waiting_threads(count: usize) -> String {
    counted(count, "thread waits", "threads wait")
}

/// `1 thread runs a routine of pthread_once or waits for one`.
pub fn waiting_for_routines(count: usize) -> String {
    let one = "thread runs a routine of pthread_once or waits for one";
    counted(count, one, "threads run a routine of pthread_once or wait for one")
}

/// `process 7`, `processes 7, 8`, `processes 7, 8 and 24 more`.
fn process_list(pids: &[u32]) -> String {
    const LISTED_MAX: usize = 2;
    let listed: Vec<String> = pids.iter().take(LISTED_MAX).map(u32::to_string).collect();
    let more = pids.len().saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("process{} {}{more}", if pids.len() == 1 { "" } else { "es" }, listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::sample_view::{INFO, SampleView};
    use super::*;
    use crate::report::contention::{AnalysisParts, NumericRecord};

    /// The process that waits shows no hold of it.
    #[test]
    fn only_a_lock_that_has_readers_may_have_fewer_of_them() {
        let lines = |records: &[(u32, u32, &str)]| {
            let record = |(time, pid, event): &(u32, u32, &str)| {
                let line = format!("1795174740:{time:0>9}:{pid:0>7}:{pid:0>7}:0x{pid:0>12}:{event}\n");
                NumericRecord::parse(line.as_bytes()).unwrap()
            };
            let records: Vec<NumericRecord> = records.iter().map(record).collect();
            let sample = SampleView::of_records(&records, INFO, AnalysisParts::ALL);
            missing_records(&sample.view()).join("\n")
        };
        for [kind, take] in [["02", "02"], ["05", "03"]] {
            let call = |address: &str, owner: u32| format!("{kind}:{take}:1:{address}:0:0:{owner}:0");
            let returns = format!("{kind}:{take}:2:0:0:0:0:0");
            let text = lines(&[
                (1, 1, "01:39:0:1:0:0:0:0"),
                (2, 21, "01:39:0:1:0:0:0:0"),
                (9, 1, &call("0x10", 0)),
                (9, 1, &returns),
                (10, 21, &call("0x1056", 0)),
                (10, 21, &returns),
                (20, 1, &call("0x56", 21)),
                (21, 21, &call("0x1010", 1)),
            ]);
            let why = "which may have passed to another thread without a record";
            assert_eq!(text.matches(why).count(), 2, "{text}");
            assert!(!text.contains("readers"), "{text}");
        }
    }
}
