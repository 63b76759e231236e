//! What the records leave out, as text.

use std::collections::BTreeMap;

use super::view::ReportView;

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
        if process.changes > 0 {
            add(process.pid, "what is recorded was changed while it ran (trace-cat set)".to_owned());
        }
    }
    let mut pids: Vec<&u32> = view.recorded.keys().filter(|pid| analysis.process_of_pid.contains_key(pid)).collect();
    pids.sort_unstable();
    for &pid in pids {
        let recorded = &view.recorded[&pid];
        recorded.reasons().for_each(|note| add(pid, note.clone()));
        if recorded.knowledge.is_partial {
            add(pid, "some calls on locks were not recorded (THR_TRACE_EVENTS)".to_owned());
        }
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
        (
            not_searched,
            "acquisitions with other locks held: too many pairs of locks to look for possible deadlocks in all",
        ),
    ] {
        if count > 0 {
            lines.push(format!("{count} {what}"));
        }
    }
    lines
}

/// `process 7`, `processes 7, 8`, `processes 7, 8 and 24 more`.
fn process_list(pids: &[u32]) -> String {
    const LISTED_MAX: usize = 2;
    let listed: Vec<String> = pids.iter().take(LISTED_MAX).map(u32::to_string).collect();
    let more = pids.len().saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("process{} {}{more}", if pids.len() == 1 { "" } else { "es" }, listed.join(", "))
}
