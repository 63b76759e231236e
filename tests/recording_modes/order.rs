//! The merged timeline is possible in every mode: what is recorded less of must still not contradict itself.

use std::collections::HashMap;

use spec::{Argument, Record};

use crate::harness::{Program, TestDirectory, Trace};
use crate::order::checker;

/// Runs eight threads that pass locks to each other; returns the trace in this mode, and the messages of trace-cat.
fn pass_locks(variable: &str, value: &str, seed: u64, turns: &str) -> (Trace, String) {
    println!("{variable}={value}, seed {seed}");
    let test = TestDirectory::new("mode-order");
    let run = test.traced(Program::c("order/handing.c")).args([&seed.to_string(), turns, "100"]);
    run.env(variable, value).run().success();
    let output = test.trace_cat_by_thread().run();
    output.success();
    (Trace::parse("trace-cat", &output.stdout), output.stderr_text().to_owned())
}

const SEEDS: [u64; 2] = [1, 20_261_121];

/// With every record there the checker knows all; that is so with details, and with rings in which all have room.
#[test]
fn with_details_and_in_rings_it_is_possible() {
    for seed in SEEDS {
        for (variable, value) in [("THR_TRACE_DETAIL", "1"), ("THR_TRACE_RING", "16M")] {
            let (merged, messages) = pass_locks(variable, value, seed, "125");
            assert_eq!(messages, "");
            let census = checker::check(merged.records.iter().map(|record| &record.fields))
                .unwrap_or_else(|impossible| panic!("{impossible}: {}", merged.records[impossible.at].line));
            assert!(census.locks > 50_000 && census.rwlocks > 14_000 && census.tokens > 14_000, "{census:?}");
        }
    }
}

fn name(record: &Record) -> &'static str {
    record.event().map_or("?", |event| event.name)
}

fn column(record: &Record, at: usize) -> u64 {
    record.arguments.get(at).copied().map_or(0, Argument::bits)
}

/// What can be checked of a timeline that lacks records.
#[derive(Debug, Default)]
struct PartialCensus {
    pairs: usize,
    /// Waits for a lock that ended after the unlock that another thread made meanwhile.
    handed_on: usize,
}

/// What holds of any timeline, however much of it is missing: times do not go back, and a thread's calls end as they began.
///
/// Nothing can be concluded about two threads that both got a mutex after waiting, without an unlock between them. A mutex whose
/// try failed may be free when it is really locked; then it is not marked as waited for, and its unlock is not recorded.
fn check_parts<'a>(records: impl Iterator<Item = &'a Record>, may_begin_within: bool) -> Result<PartialCensus, String> {
    let (mut time, mut census) = (0, PartialCensus::default());
    let mut open: HashMap<u32, Record> = HashMap::new();
    // Who acquired it last after waiting, and whether it has been released since.
    let mut owners: HashMap<u64, (u32, bool)> = HashMap::new();
    let mut begun: HashMap<u32, bool> = HashMap::new();
    for record in records {
        if record.time < time {
            return Err(format!("a time goes back at {record:?}"));
        }
        time = record.time;
        let first_of_thread = !std::mem::replace(begun.entry(record.lwpid).or_default(), true);
        let event = name(record);
        match record.which {
            1 => {
                if let Some(other) = open.insert(record.lwpid, *record) {
                    return Err(format!("{record:?} within {other:?}"));
                }
            }
            2 => {
                let first = match open.remove(&record.lwpid) {
                    Some(first) => first,
                    None if may_begin_within && first_of_thread => continue,
                    None => return Err(format!("no first record: {record:?}")),
                };
                if name(&first) != event {
                    return Err(format!("{record:?} ends {first:?}"));
                }
                census.pairs += 1;
                let is_exclusive = ["mutex_lock", "mutex_timedlock"].contains(&event);
                if is_exclusive && column(record, 0) == 0 && column(record, 1) == 1 {
                    let lock = column(&first, 0);
                    let before = owners.insert(lock, (record.lwpid, false));
                    census.handed_on += usize::from(before.is_some_and(|(owner, free)| free && owner != record.lwpid));
                }
            }
            _ if event == "mutex_unlock" => {
                if let Some((_, free)) = owners.get_mut(&column(record, 0)) {
                    *free = true;
                }
            }
            _ => {}
        }
        // A wait releases its mutex.
        if record.which == 1
            && event.starts_with("cond_")
            && let Some((_, free)) = owners.get_mut(&column(record, 1))
        {
            *free = true;
        }
    }
    if let Some((_, record)) = open.into_iter().next() {
        return Err(format!("{record:?} has no end"));
    }
    Ok(census)
}

#[test]
fn what_blocked_is_possible() {
    for seed in SEEDS {
        let (merged, messages) = pass_locks("THR_TRACE_LEVEL", "blocked", seed, "500");
        assert_eq!(messages, "");
        let census = check_parts(merged.records.iter().map(|record| &record.fields), false);
        let census = census.unwrap_or_else(|why| panic!("{why}"));
        println!("{} records, {census:?}", merged.records.len());
        assert!(census.pairs > 1000 && census.handed_on > 0, "{census:?}");
        // The acquisition of a free lock is not recorded.
        for record in &merged.records {
            if ["mutex_lock", "mutex_timedlock", "rw_wrlock"].iter().any(|name| record.is(name))
                && record.fields.which == 2
            {
                assert!(record.get("block?") == 1 || record.rval() != 0, "{}", record.line);
            }
        }
    }
}

/// From the time on from which all threads are complete, no record is missing.
#[test]
fn what_small_rings_keep_is_possible() {
    for seed in SEEDS {
        let (merged, messages) = pass_locks("THR_TRACE_RING", "64K", seed, "125");
        assert!(messages.lines().count() >= 8, "each thread's ring wrapped: {messages}");
        // All of it may miss the past of any object; each thread's own order holds from its first record on.
        let lwps: std::collections::BTreeSet<u32> = merged.records.iter().map(|record| record.fields.lwpid).collect();
        assert_eq!(lwps.len(), 9);
        for lwp in lwps {
            let own = merged.records.iter().map(|record| &record.fields).filter(|record| record.lwpid == lwp);
            check_parts(own, true).unwrap_or_else(|why| panic!("LWP {lwp}: {why}"));
        }
    }
}

/// Tests of the check itself.
mod tests {
    use super::*;

    fn checked(lines: &[&str]) -> Result<PartialCensus, String> {
        let text: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| {
                let (lwp, columns) = line.split_once(' ').unwrap();
                format!("1795174740:{at:09}:{lwp:0>7}:0000100:0x7f0000000000:{columns}")
            })
            .collect();
        let records: Vec<Record> = text.iter().map(|line| Record::parse(line.as_bytes()).unwrap()).collect();
        check_parts(records.iter(), false)
    }

    const LOCK: &str = "02:02:1:0x10:0:0:0:0";
    const LOCKED: &str = "02:02:2:0:1:0:0:0";
    const UNLOCK: &str = "02:04:0:0x10:0:1:0:0";

    #[test]
    fn missing_records_and_hand_overs_are_detected() {
        let line = |lwp: u32, what: &str| format!("{lwp} {what}");
        let all = |lines: &[(u32, &str)]| {
            let lines: Vec<String> = lines.iter().map(|(lwp, what)| line(*lwp, what)).collect();
            checked(&lines.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let good = [(101, LOCK), (102, LOCK), (101, LOCKED), (101, UNLOCK), (102, LOCKED), (102, UNLOCK)];
        assert_eq!(all(&good).unwrap().handed_on, 1);
        let without_unlock = [(101, LOCK), (102, LOCK), (101, LOCKED), (102, LOCKED), (101, UNLOCK)];
        assert_eq!(all(&without_unlock).unwrap().handed_on, 0);
        all(&good[1..]).unwrap_err();
        all(&good[..4]).unwrap_err();
        all(&[(101, LOCK), (101, LOCK), (101, LOCKED)]).unwrap_err();
        all(&[(101, "04:02:1:0x10:0:0:0:0"), (101, LOCKED)]).unwrap_err();
    }
}
