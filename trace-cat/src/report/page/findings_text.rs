//! What is wrong, as text: deadlocks, stuck threads and possible deadlocks.

use super::chain_end::chain_end_text;
use super::misuse_text::misuse_text;
use super::tables;
use super::view::ReportView;
use crate::report::contention::StuckThread;
use crate::report::lock_order::LockCycle;
use crate::report::misuse::Misuse;
use crate::report::trace_names::event_name;
use crate::support::duration::duration_text;
use crate::support::local_time::DateTime;

/// Appends what is wrong: how much first, and then each with its places.
pub fn append_findings(view: &ReportView, top: usize, text: &mut String) {
    let (cycles, misuse) = (view.new_cycles(), view.misuse());
    let counts = [
        ("deadlocks", view.graph.deadlocks.len()),
        ("stuck threads", view.graph.stuck.len()),
        ("stuck unless woken", view.graph.stuck_unless_woken.len()),
        ("possible deadlocks", cycles.len()),
        ("misuse", misuse.len()),
    ];
    let counts: Vec<String> =
        counts.into_iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{what} {count}")).collect();
    if counts.is_empty() {
        return;
    }
    *text += &format!("wrong       {}\n", counts.join(", "));
    if let Some(time) = view.graph.moment {
        *text += &format!("            deadlocks and stuck threads at {}\n", DateTime(time));
    }
    append_graph(view, top, text);
    append_cycles(view, &cycles, top, text);
    append_misuse(view, &misuse, top, text);
}

/// Appends deadlocks and stuck threads.
fn append_graph(view: &ReportView, top: usize, text: &mut String) {
    for deadlock in &view.graph.deadlocks {
        *text += &match deadlock.len() {
            1 => "\nDeadlock of 1 thread: it waits for itself\n".to_owned(),
            count => format!("\nDeadlock of {count} threads: each waits for the next, the last for the first\n"),
        };
        for blocked in deadlock {
            let object = blocked.call.object.map_or_else(
                || blocked.call.joined.map_or(String::new(), |joined| tables::thread_label(view, joined)),
                |object| view.object_label(object),
            );
            let process = view.thread(blocked.thread).process as usize;
            let until = view.graph.moment.unwrap_or(view.analysis.processes[process].last);
            let since = duration_text(until.saturating_sub(blocked.call.entry));
            let call = event_name(blocked.call.event);
            *text += &format!("  {} in {call} {object} for {since}\n", tables::thread_label(view, blocked.thread));
            if let Some(place) = view.place(blocked.call.site) {
                *text += &format!("    at {place}\n");
            }
            if let Some(mutex) = blocked.call.needed_mutex() {
                let why =
                    if blocked.call.woken.is_some() { "was woken and waits for" } else { "cannot return without" };
                *text += &format!("    {why} {}\n", view.object_label(mutex));
            }
            let holds: Vec<String> = blocked.holds.iter().map(|object| view.object_label(*object)).collect();
            if !holds.is_empty() {
                *text += &format!("    holds {}\n", holds.join(", "));
            }
        }
    }
    let lists = [
        (&view.graph.stuck, "Stuck: waits for threads that do not run"),
        (&view.graph.stuck_unless_woken, "Stuck, unless a running thread wakes the last one of the chain"),
    ];
    for (threads, heading) in lists {
        append_stuck(view, threads, heading, top, text);
    }
}

/// Appends stuck threads, each with whom it waits for and the end of its chain.
fn append_stuck(view: &ReportView, threads: &[StuckThread], heading: &str, top: usize, text: &mut String) {
    if !threads.is_empty() {
        *text += &format!("\n{heading}\n");
    }
    for stuck in threads.iter().take(top) {
        let what = match stuck.call.wanted() {
            Some(object) => {
                format!("{}, which {} holds", view.object_label(object), tables::thread_label(view, stuck.held_by))
            }
            None => tables::thread_label(view, stuck.held_by),
        };
        let (thread, call) = (tables::thread_label(view, stuck.thread), event_name(stuck.call.event));
        *text += &format!("  {thread} in {call} {what}\n");
        *text += &format!("    and {}\n", chain_end_text(view, &stuck.end).join("\n      "));
    }
    more(threads.len().saturating_sub(top), text);
}

/// Appends possible deadlocks.
fn append_cycles(view: &ReportView, cycles: &[&LockCycle], top: usize, text: &mut String) {
    for LockCycle { steps } in cycles.iter().take(top) {
        *text += &format!("\nPossible deadlock of {} threads: they take locks in different orders\n", steps.len());
        for step in steps {
            let [from, to] = [step.from, step.to].map(|object| view.object_label(object));
            let at = |site: u32| view.place(site).map(|place| format!(" at {place}")).unwrap_or_default();
            *text += &format!("  {} took {from}{}\n", tables::thread_label(view, step.thread), at(step.site_from));
            *text += &format!("    and then {to}{}\n", at(step.site_to));
        }
    }
    more(cycles.len().saturating_sub(top), text);
}

/// Appends misuse.
fn append_misuse(view: &ReportView, misuse: &[(Misuse, usize)], top: usize, text: &mut String) {
    if !misuse.is_empty() {
        *text += "\nMisuse\n";
    }
    for (Misuse { kind, object, thread, site, count, .. }, objects) in misuse.iter().take(top) {
        let others = match objects.saturating_sub(1) {
            0 => String::new(),
            1 => ", and 1 other".to_owned(),
            others => format!(", and {others} others"),
        };
        let object = object.map(|object| format!(" ({}{others})", view.object_label(object))).unwrap_or_default();
        let times = if *count == 1 { String::new() } else { format!(", {count} times") };
        *text += &format!("  {} {}{object}{times}\n", tables::thread_label(view, *thread), misuse_text(*kind));
        if let Some(place) = view.place(*site) {
            *text += &format!("    at {place}\n");
        }
    }
    more(misuse.len().saturating_sub(top), text);
}

fn more(count: usize, text: &mut String) {
    if count > 0 {
        *text += &format!("  {count} more (--top)\n");
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample_view::{INFO, SampleView};
    use super::*;

    fn page(sample: &SampleView) -> String {
        let mut text = String::new();
        append_findings(&sample.view(), 10, &mut text);
        text
    }

    /// The first thread unlocks, at one place, mutexes that it does not own.
    #[test]
    fn misuse_of_several_objects_names_the_first_and_how_many_others() {
        let unlock = |time: u32, object: u32, address: &str| format!("{time}:1:02:04:0:{object:#x}:1:0:0:{address}\n");
        let tries = |object: u32| format!("5:2:02:03:0:{object:#x}:16:0:0:0x1600\n");
        let two = [
            tries(0x10),
            tries(0x40),
            tries(0x70),
            unlock(10, 0x10, "0x1500"),
            unlock(20, 0x40, "0x1500"),
            unlock(30, 0x10, "0x1500"),
        ]
        .concat();
        let objects = |lines: &str| {
            let sample = SampleView::new(lines, INFO);
            let misuse = &sample.document()["misuse"][0];
            (page(&sample), misuse["object"].clone(), misuse["count"].clone(), misuse["objects"].clone())
        };
        let (text, object, count, number) = objects(&two);
        assert!(text.contains("0x10, and 1 other), 3 times\n"), "{text}");
        assert_eq!((object, count, number), ("1:0x10#1".into(), 3.into(), 2.into()));
        let (text, _, _, number) = objects(&(two + &unlock(40, 0x70, "0x1500")));
        assert!(text.contains("0x10, and 2 others), 4 times\n"), "{text}");
        assert_eq!(number, 3);
        let (text, _, count, number) =
            objects(&(tries(0x10) + &unlock(10, 0x10, "0x1500") + &unlock(20, 0x10, "0x1500")));
        assert!(text.contains("0x10), 2 times\n"), "{text}");
        assert_eq!((count, number), (2.into(), 1.into()));
    }

    /// Thread 1 holds 0x10 and wants 0x40, thread 2 the other way round, and what each of these lines adds.
    fn circle(more: &str) -> SampleView {
        let lock = |time: u32, lwp: u32, object: u32| {
            format!("{time}:{lwp}:02:02:1:{object:#x}:0:0:0:0x1500\n{time}:{lwp}:02:02:2:0:0:0:0:0\n")
        };
        let wants = "20:1:02:02:1:0x40:0:0:0:0x1600\n21:2:02:02:1:0x10:0:0:0:0x1600\n";
        SampleView::new(&(lock(10, 1, 0x10) + &lock(11, 2, 0x40) + wants + more), INFO)
    }

    #[test]
    fn a_deadlock_that_is_not_certain_is_what_is_missing() {
        let certain = circle("");
        assert!(page(&certain).contains("Deadlock of 2 threads"));
        assert_eq!(certain.document()["incomplete"], serde_json::json!([]));
        let sample = circle("30:1:04:04:0:0x70:0:0:0:0x1500\n");
        assert!(!page(&sample).contains("\nDeadlock"), "{}", page(&sample));
        let missing = super::super::missing_records::missing_records(&sample.view());
        let [start, end] =
            ["whether 2 threads are in a deadlock: ", " made records in mutex_lock, or left it by a jump"];
        assert!(missing.len() == 1 && missing[0].starts_with(start) && missing[0].ends_with(end), "{missing:?}");
        let expected = serde_json::json!([{
            "kind": "jump", "pid": 1, "thread": 1, "from": 10, "until": null, "count": 2
        }]);
        assert_eq!(sample.document()["incomplete"], expected);
    }

    /// Each thread waits for a mutex whose acquisition a ring has overwritten, and none of its process runs.
    #[test]
    fn waits_for_holders_that_a_ring_has_overwritten_are_reported() {
        let mut sample = circle("");
        let missing = super::super::missing_records::missing_records(&sample.view());
        assert_eq!(missing, [""; 0]);
        let lines = "20:1:02:02:1:0x40:0:0:0:0x1600\n21:2:02:02:1:0x10:0:0:0:0x1600\n";
        let ring = crate::report::contention::Knowledge { complete_from: 15, ..Default::default() };
        sample = SampleView::with_knowledge(lines, INFO, ring);
        let missing = super::super::missing_records::missing_records(&sample.view());
        let line = "process 1: who holds what 2 threads wait for at the end; no other thread of it runs";
        assert_eq!(missing, [line]);
        let kinds = |sample: &SampleView| -> Vec<serde_json::Value> {
            sample.document()["incomplete"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect()
        };
        assert_eq!(kinds(&sample), ["ring", "holder"]);
        sample = SampleView::with_knowledge(&(lines.to_owned() + "30:3:02:03:0:0x70:0:0:0:0x1500\n"), INFO, ring);
        let missing = super::super::missing_records::missing_records(&sample.view());
        assert_eq!(missing, ["process 1: who holds what 2 threads wait for at the end"]);
    }
}
