//! Rings of programs that die or end at any moment: the newest complete records of each thread, without a gap, up to the last
//! call that it finished.

use std::collections::{BTreeMap, BTreeSet};

use spec::Record;

use super::ring::UNUSED;
use crate::harness::{Program, SeededRandom, TestDirectory};
use crate::kill::expected_records::{LOOP, Semaphores};
use crate::kill::{ENDINGS, ended, kill, recover};

/// How many dead threads' rings are kept.
const DEAD: usize = 16;

/// The least and the most records that a worker can have made in this many finished calls.
fn made(calls: u64) -> (u64, u64) {
    let least = calls / 3 * 4 + [0, 1, 3][(calls % 3) as usize];
    (least, least + [1, 2, 1][(calls % 3) as usize])
}

/// What is left of one worker.
#[derive(Debug)]
struct KeptRecords {
    /// The worker's number; `None` if no post is left that has it.
    index: Option<usize>,
    /// How many of its records were made before these.
    before: u64,
    records: u64,
}

/// Puts the records of one worker into their places in its loop.
fn kept_records(records: &[Record], semaphores: Semaphores) -> Result<KeptRecords, String> {
    let bits = |record: &Record, column: usize| record.arguments[column].bits();
    let name = |record: &Record| record.event().map_or("?", |event| event.name);
    let post = records.iter().position(|record| name(record) == LOOP[0].0);
    let number = match post {
        // The post of turn n is the worker's record 4 n.
        Some(at) => (4 * bits(&records[at], 2)).checked_sub(at as u64).ok_or("records before the first")?,
        None => {
            let step = LOOP.iter().position(|&(event, which)| (event, which) == (name(&records[0]), records[0].which));
            step.ok_or("no record of the loop")? as u64
        }
    };
    for (at, record) in records.iter().enumerate() {
        let place = number + at as u64;
        if (name(record), record.which) != LOOP[(place % 4) as usize] {
            return Err(format!("record {place} is {} {}", name(record), record.which));
        }
        if place.is_multiple_of(4) && bits(record, 2) != place / 4 {
            return Err(format!("s_count {} in turn {}", bits(record, 2), place / 4));
        }
    }
    let index = post.map(|at| semaphores.worker(bits(&records[at], 0)).ok_or("not a semaphore of the program's"));
    Ok(KeptRecords { index: index.transpose()?, before: number, records: records.len() as u64 })
}

/// Checks the records and the messages of trace-cat for workers that had finished this many calls each, with rings of `size` bytes.
/// Returns how many records there were, and whether some worker had overwritten records.
fn check(
    text: &[u8],
    messages: &str,
    semaphores: Semaphores,
    finished: &[u64],
    size: usize,
) -> Result<(u64, bool), String> {
    let mut workers: BTreeMap<u32, (Vec<Record>, usize)> = BTreeMap::new();
    let mut time = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let shown = String::from_utf8_lossy(line);
        let record = Record::parse(line.strip_suffix(b"\n").ok_or("the last record is truncated")?)
            .map_err(|fault| format!("{fault}: {shown}"))?;
        if record.time < time {
            return Err(format!("out of order: {shown}"));
        }
        time = record.time;
        if record.event().is_some_and(|event| LOOP.iter().any(|&(name, _)| name == event.name)) {
            let (records, bytes) = workers.entry(record.lwpid).or_default();
            records.push(record);
            *bytes += line.len();
        }
    }
    let (mut present, mut overwrote) = (BTreeSet::new(), false);
    for (&lwp, (records, bytes)) in &workers {
        let kept = kept_records(records, semaphores).map_err(|why| format!("LWP {lwp}: {why}"))?;
        let is_reported = messages.contains(&format!(": LWP {lwp} is complete from "));
        if (kept.before > 0) != is_reported {
            return Err(format!("LWP {lwp}: {kept:?}, but trace-cat prints {messages:?}"));
        }
        overwrote |= is_reported;
        if is_reported && *bytes + UNUSED < size {
            return Err(format!("LWP {lwp}: only {bytes} bytes of {size} kept"));
        }
        let Some(index) = kept.index else { continue };
        let (least, most) = made(finished[index]);
        let end = kept.before + kept.records;
        if end < least || end > most {
            return Err(format!("worker {index}: up to record {end}, not {least} to {most}"));
        }
        if !present.insert(index) {
            return Err(format!("two threads are worker {index}"));
        }
    }
    let begun: Vec<usize> = (0..finished.len()).filter(|&index| finished[index] > 0).collect();
    // One that has just begun may have the last one's ring already, and no record in it yet.
    if present.len() < begun.len().min(DEAD - 1) {
        return Err(format!("{} of {} workers are there", present.len(), begun.len()));
    }
    // Workers end about in the order in which they began.
    let missing: Vec<&usize> = begun.iter().rev().take(DEAD / 2).filter(|index| !present.contains(index)).collect();
    if !missing.is_empty() {
        return Err(format!("of {} workers {missing:?} are missing", begun.len()));
    }
    Ok((workers.values().map(|(records, _)| records.len() as u64).sum(), overwrote))
}

/// Runs `counting` and kills it when its workers have finished as many calls as chance wants. Whether records had been
/// overwritten.
fn kill_one(mode: &str, within: u64, random: &mut SeededRandom) -> bool {
    let test = TestDirectory::new("ring-kill");
    let counts = test.directory().join("counts");
    let kill_after = random.below(within);
    let run = test.traced(Program::c("kill/counting.c")).arg(&counts).arg(mode);
    let running = run.env("THR_TRACE_RING", "64K").env("THR_TRACE_EVENTS", "sema:mutex").spawn();
    let Some((finished, semaphores)) = kill(running, &counts, mode, kill_after) else {
        return false;
    };
    let read = test.trace_cat_by_thread().run();
    let (records, overwrote) = check(&read.stdout, read.stderr_text(), semaphores, &finished, 64 << 10)
        .unwrap_or_else(|why| panic!("{mode}, killed after {kill_after} calls: {why}"));
    if records > 0 {
        read.success();
        recover(&test, &read.stdout);
    }
    overwrote
}

#[test]
fn a_hundred_kills_leave_the_newest() {
    let mut random = SeededRandom::seeded();
    for (mode, within) in [("steady", 3_000), ("steady", 8_000), ("steady", 200_000), ("churn", 20_000)] {
        let overwrote = (0..25).filter(|_| kill_one(mode, within, &mut random)).count();
        println!("{mode} within {within} calls: {overwrote} of 25 had overwritten records");
        assert!(within < 200_000 || overwrote > 15, "the rings did not wrap");
    }
}

/// Four threads record at full speed while the fifth ends the process.
#[test]
fn an_end_while_others_run_leaves_the_newest() {
    for (ending, status) in ENDINGS {
        // This test has no checks for children, nor for a process that continues.
        if ["exec_fails", "forks"].contains(&ending) {
            continue;
        }
        println!("{ending}");
        let test = TestDirectory::new("ring-running");
        let counts = test.directory().join("counts");
        let run = test.traced(Program::c("kill/counting.c")).arg(&counts).args(["steady", ending, "5000"]);
        let output = run.env("THR_TRACE_RING", "64K").env("THR_TRACE_EVENTS", "sema:mutex").run();
        let (finished, semaphores) = ended(&output, status, &counts);
        let read = test.trace_cat_by_thread().run();
        read.success();
        let (_, overwrote) = check(&read.stdout, read.stderr_text(), semaphores, &finished, 64 << 10)
            .unwrap_or_else(|why| panic!("{ending}: {why}"));
        assert!(overwrote);
    }
}

/// Tests of the check itself.
mod tests {
    use super::*;

    const SEMAPHORES: Semaphores = Semaphores { first: 0x1000, size: 32 };
    const REPORTED: &str = "trace-cat: d/tr.0000064.065: LWP 101 is complete from now on";

    /// The records of worker 0 with these numbers.
    fn text(numbers: impl Iterator<Item = usize>) -> Vec<String> {
        let line = |number: usize| {
            let what = match number % 4 {
                0 => format!("04:04:0:0x1000:0:{}:0:0", number / 4),
                1 => "02:02:1:0x2000:0:0:0:0".to_owned(),
                2 => "02:02:2:0:0:0:0:0".to_owned(),
                _ => "02:04:0:0x2000:0:0:0:0".to_owned(),
            };
            format!("1795174740:{number:09}:0000101:0000100:0x7f0000000000:{what}\n")
        };
        numbers.map(line).collect()
    }

    fn accepts(lines: &[String], messages: &str, calls: u64) -> bool {
        check(lines.concat().as_bytes(), messages, SEMAPHORES, &[calls], 0).is_ok()
    }

    #[test]
    fn a_gap_a_double_and_an_end_too_early_are_detected() {
        let complete = text(30..49);
        // Record 49 is the first of a lock that returned if 37 calls have.
        for calls in 0..60 {
            assert_eq!(accepts(&complete, REPORTED, calls), calls == 36 || calls == 37, "{calls}");
        }
        assert!(!accepts(&complete, "", 36), "that records were overwritten must be reported");
        assert!(!accepts(&text(0..49), REPORTED, 36), "nothing was overwritten");
        for at in 1..18 {
            let mut lost = complete.clone();
            lost.remove(at);
            assert!(!accepts(&lost, REPORTED, 36) && !accepts(&lost, REPORTED, 35), "lost {at}");
            let mut doubled = complete.clone();
            doubled.insert(at, complete[at].clone());
            assert!(!accepts(&doubled, REPORTED, 36) && !accepts(&doubled, REPORTED, 37), "doubled {at}");
        }
        assert!(!accepts(&text(30..48), REPORTED, 37));
        assert!(check(b"", "", SEMAPHORES, &[1], 0).is_err());
        assert!(
            check(complete.concat().as_bytes(), REPORTED, SEMAPHORES, &[36], 64 << 10).is_err(),
            "too few are kept"
        );
    }
}
