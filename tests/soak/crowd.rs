//! A crowd of threads whose first records come at once, and whose files are made at once: two of them share each.

use std::collections::{BTreeMap, BTreeSet};

use spec::names::LWP_MASK;

use crate::harness::{Program, SeededRandom, TestDirectory};

/// Threads that start before the kernel's numbers have come around, and as many after.
const EACH: usize = 200;

/// Runs and reads one program. Returns the number of records.
pub fn one(random: &mut SeededRandom) -> u64 {
    let pairs = 1 + random.below(20) as usize;
    let test = TestDirectory::new("soak-crowd");
    // Nothing else is recorded, so that nobody makes the process's files before the crowd does.
    let run = test.traced(Program::c("soak/crowd.c")).env("THR_TRACE_EVENTS", "mutex");
    let output = run.args([EACH.to_string(), pairs.to_string()]).run();
    output.success();
    let lines = output.stdout_text().lines();
    let threads: BTreeSet<u32> = lines.map(|line| line.strip_prefix("lwp ").unwrap().parse().unwrap()).collect();
    assert_eq!(threads.len(), 2 * EACH);
    let files: BTreeSet<u32> = threads.iter().map(|lwp| lwp & LWP_MASK).collect();
    assert!(files.len() < 2 * EACH, "no two threads share a file");

    let merged = test.merged();
    assert!(merged.of("trace_lost").is_empty(), "records were lost");
    let mut found: BTreeMap<u32, String> = BTreeMap::new();
    for record in &merged.records {
        let name = if record.is("mutex_lock") { 'l' } else { 'u' };
        found.entry(record.fields.lwpid).or_default().push(name);
    }
    // A record before the wait and one after it, and one of the unlock.
    let wanted = "llu".repeat(pairs);
    for lwp in &threads {
        assert_eq!(found.remove(lwp).as_ref(), Some(&wanted), "LWP {lwp}");
    }
    assert!(found.is_empty(), "other threads: {found:?}");
    merged.records.len() as u64
}
