//! Locks and waits that call futex(2) through `syscall`: each wait that the program has seen in the kernel is in the trace, with
//! the call that ended it.

use super::{Program, TestDirectory, Threads, timeline};
use crate::harness::{Trace, trace_cat};

/// FUTEX_WAKE, and FUTEX_WAKE_BITSET.
const WAKES: [u64; 2] = [1, 10];

/// Whether a thread waited by futex(2) until another one woke it.
fn was_woken(trace: &Trace, lwp: u32) -> bool {
    let arguments = |record: &crate::harness::Record| record.fields.arguments.map(spec::Argument::bits);
    let of = |event: &str, which: u8| trace.of(event).into_iter().filter(move |record| record.fields.which == which);
    let mine = |event, which| of(event, which).filter(|record| record.fields.lwpid == lwp);
    let (entries, returns) = (mine("futex_wait", 1), mine("futex_wait", 2));
    entries.zip(returns).any(|(entry, returned)| {
        let [address, operation, ..] = arguments(entry);
        let within = |time: u64| (entry.fields.time..=returned.fields.time).contains(&time);
        assert!([0, 9].contains(&(operation & 0x7f)), "{}", entry.line);
        arguments(returned)[..2] == [0, 0]
            && of("futex_wake", 0).any(|wake| {
                let [woken_address, operation, count, woken, error] = arguments(wake);
                let is_wake = WAKES.contains(&(operation & 0x7f)) && (1..=count).contains(&woken) && error == 0;
                is_wake && woken_address == address && wake.fields.lwpid != lwp && within(wake.fields.time)
            })
    })
}

/// Every part of a program, which prints who slept there.
#[track_caller]
fn all_are_woken(program: &Program, parts: usize) {
    let test = TestDirectory::new("futexes");
    let outline =
        |text: &str| text.lines().map(|line| line.split(' ').next().unwrap_or("").to_owned()).collect::<Vec<_>>();
    let [native, traced] = [test.native(program).run(), test.traced(program).run()];
    native.exited(0);
    traced.exited(0);
    assert_eq!(outline(native.stdout_text()), outline(traced.stdout_text()));
    assert_eq!(traced.stdout_text().lines().count(), parts);
    let trace = timeline(&test, Threads::End);
    for line in traced.stdout_text().lines() {
        let (name, lwp) = line.split_once(' ').expect("a name and a number");
        assert!(was_woken(&trace, lwp.parse().unwrap()), "{name}");
    }
}

/// The report knows Rust's locks by their functions: what waits for them is contention, whatever else waits is idleness.
#[test]
fn rusts_locks_are_contention() {
    let test = TestDirectory::new("futex-report");
    test.traced(Program::c("real_programs/std_locks.rs")).env("THR_TRACE_DETAIL", "1").run().exited(0);
    let report = test.native(trace_cat()).args(["report", "-F", "json"]).arg(test.trace_directory()).run();
    report.success();
    let document: serde_json::Value = serde_json::from_str(report.stdout_text()).unwrap();
    let mut waits = [0; 2];
    for site in document["sites"].as_array().unwrap() {
        let [contention, idleness] = ["contention", "idleness"].map(|figure| site[figure].as_u64().unwrap());
        let name = site["site"].as_str().unwrap_or_default();
        let is_lock = ["Mutex", "RwLock", "Once"].iter().any(|lock| name.contains(&format!("::futex::{lock}>::")));
        if name.contains("Condvar") || name.contains("park") {
            assert!(contention == 0 && idleness > 0, "{site}");
            waits[0] += 1;
        } else if is_lock {
            assert!(contention > 0 && idleness == 0, "{site}");
            waits[1] += 1;
        }
    }
    // read_contended and write_contended are two; park is called by two functions at least.
    assert!(waits[0] >= 2 && waits[1] == 4, "{}", report.stdout_text());
    let [contention, idleness] = ["contention", "idleness"].map(|figure| document[figure].as_u64().unwrap());
    assert!(contention > 0 && idleness > 0);
}

#[test]
fn rusts_standard_library() {
    all_are_woken(&Program::c("real_programs/std_locks.rs"), 7);
}

#[test]
fn cxx20() {
    all_are_woken(&Program::with_flags("real_programs/cxx20_waits.cpp", &["-std=gnu++20"]), 6);
}
