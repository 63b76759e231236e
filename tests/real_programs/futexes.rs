//! Locks and waits that call futex(2) through `syscall`: each wait that the program has seen in the kernel is in the trace, with
//! the call that ended it.

use std::fs;
use std::path::Path;

use serde_json::Value;

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

/// The document that the report makes of a trace.
fn report(test: &TestDirectory, options: &[&str]) -> Value {
    let report =
        test.native(trace_cat()).args(["report", "-F", "json"]).args(options).arg(test.trace_directory()).run();
    report.success();
    serde_json::from_str(report.stdout_text()).unwrap()
}

/// The report knows Rust's locks by their functions: what waits for them is contention, whatever else waits is idleness.
#[test]
fn rusts_locks_are_contention() {
    let test = TestDirectory::new("futex-report");
    test.traced(Program::c("real_programs/std_locks.rs")).env("THR_TRACE_DETAIL", "1").run().exited(0);
    let document = report(&test, &[]);
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
    assert!(waits[0] >= 2 && waits[1] == 4, "{document}");
    let [contention, idleness] = ["contention", "idleness"].map(|figure| document[figure].as_u64().unwrap());
    assert!(contention > 0 && idleness > 0);
    // The figures are the same where idleness is left out.
    let only_contention = report(&test, &["--only-contention"]);
    assert_eq!(only_contention["contention"], document["contention"]);
    let locks = |document: &Value| -> Vec<String> {
        let objects = document["objects"].as_array().unwrap().iter();
        let mut names: Vec<String> = objects.filter_map(|object| Some(object["lock"].as_str()?.to_owned())).collect();
        names.sort_unstable();
        // An rwlock has two words.
        names.dedup();
        names
    };
    assert_eq!(locks(&document), ["std Mutex", "std Once", "std RwLock"]);
    assert_eq!(locks(&only_contention), locks(&document));
    // The exported timeline has their names, and in Paje's their colour.
    let paje = test.native(trace_cat()).args(["-F", "paje"]).arg(test.trace_directory()).run();
    let colours = |wait: &str| -> Vec<&str> {
        let values = paje.stdout_text().lines().filter(|line| line.contains(wait));
        let is_colour = |text: &&str| text.starts_with("0.");
        let mut colours: Vec<&str> = values.filter_map(|line| line.rsplit('"').nth(1)).filter(is_colour).collect();
        colours.dedup();
        colours
    };
    // The third one is a static variable, which has a name of its own.
    let locks = ["std Mutex", "std RwLock"].map(|lock| colours(&format!("wait {lock}")));
    let other = colours("wait futex");
    assert!(locks.iter().all(|colours| colours.len() == 1 && *colours == locks[0]), "{locks:?}");
    assert!(other.len() == 1 && other != locks[0], "{other:?}");
}

/// Who held Rust's lock while several waited is blamed by each of them, although the first of them woke the next one.
#[test]
fn all_in_a_queue_blame_who_held_the_lock() {
    let test = TestDirectory::new("futex-queue");
    let traced = test.traced(Program::c("real_programs/lock_queue.rs")).env("THR_TRACE_DETAIL", "1").run();
    traced.exited(0);
    let main: u32 = traced.stdout_text().trim().parse().unwrap();
    let document = report(&test, &[]);
    let lock = document["objects"].as_array().unwrap().iter().find(|object| object["lock"] == "std Mutex").unwrap();
    let trace = timeline(&test, Threads::End);
    let is_of_lock = |record: &&crate::harness::Record| {
        let address = format!("{:#x}", record.fields.arguments[0].bits());
        lock["address"] == address.as_str()
    };
    let release = trace.of("futex_wake").into_iter().filter(is_of_lock).find(|wake| wake.fields.lwpid == main);
    let release = release.unwrap().fields.time;
    let entries = trace.of("futex_wait").into_iter().filter(|record| record.fields.which == 1).filter(is_of_lock);
    let waited: Vec<u64> = entries.filter_map(|wait| release.checked_sub(wait.fields.time)).collect();
    assert_eq!(waited.len(), 3);
    let blamed = lock["blamed"].as_array().unwrap().iter();
    let of_main: Vec<&Value> = blamed.filter(|blame| blame["thread"] == main).map(|blame| &blame["time"]).collect();
    assert_eq!(of_main, [waited.iter().sum::<u64>()], "{lock}");
}

/// What a site in these lines of the source has to be: contention, or idleness.
#[track_caller]
fn sites_are(test: &TestDirectory, source: &Path, expected: &[(&str, bool)]) {
    let text = fs::read_to_string(source).unwrap();
    let file = source.file_name().unwrap().to_str().unwrap();
    let document = report(test, &[]);
    for (call, is_lock) in expected {
        let line = 1 + text.lines().position(|line| line.contains(call)).unwrap_or_else(|| panic!("no {call}"));
        let place = format!("{file}:{line}");
        let is_there = |site: &&Value| site["site"].as_str().is_some_and(|site| site.ends_with(&place));
        let site = document["sites"].as_array().unwrap().iter().find(is_there);
        let site = site.unwrap_or_else(|| panic!("{call}: no site {place}: {:#}", document["sites"]));
        let [contention, idleness] = ["contention", "idleness"].map(|figure| site[figure].as_u64().unwrap());
        // Who waits for a condition may have to wait for its lock after that.
        let is_right = if *is_lock { contention > 0 && idleness == 0 } else { idleness > 0 };
        assert!(is_right, "{call}: {site}");
    }
}

/// Runs a program with stacks, of which all parts are woken, and whose waits at these calls are contention or idleness.
#[track_caller]
fn waits_are(program: &Program, source: &str, expected: &[(&str, bool)]) -> TestDirectory {
    let test = TestDirectory::new("futex-sites");
    test.traced(program).env("THR_TRACE_STACK", "64").run().exited(0);
    sites_are(&test, &Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(source), expected);
    test
}

#[test]
fn rusts_standard_library() {
    all_are_woken(&Program::c("real_programs/std_locks.rs"), 7);
}

#[test]
fn cxx20() {
    all_are_woken(&Program::with_flags("real_programs/cxx20_waits.cpp", &["-std=gnu++20"]), 6);
}

#[test]
fn parking_lot() {
    let program = Program::of_crates("parking_lot_locks");
    all_are_woken(&program, 7);
    let expected = [
        ("shared.lock() += 1", true),
        ("*shared.lock(), 0", true),
        ("shared.write() += 1", true),
        ("*shared.read(), 1", true),
        ("*shared.upgradable_read(), 1", true),
        ("shared.1.wait_while", false),
        ("ONCE.call_once(|| unreachable!())", true),
    ];
    waits_are(&program, "crates/src/bin/parking_lot_locks.rs", &expected);
}

#[test]
fn crossbeam() {
    let program = Program::of_crates("crossbeam_waits");
    all_are_woken(&program, 6);
    let expected = [
        ("receiver.recv(), Ok(7)", false),
        ("sender.send(8)", false),
        ("parker.park()", false),
        ("shared.write().unwrap() += 1", true),
        ("*shared.read().unwrap(), 1", true),
        ("group.wait()", false),
    ];
    waits_are(&program, "crates/src/bin/crossbeam_waits.rs", &expected);
}

/// Workers of rayon and tokio sleep, which is idleness, and contend for a lock, each but the first one time at least.
#[test]
fn pools_of_threads() {
    let program = Program::of_crates("pools");
    all_are_woken(&program, 8);
    let expected = [("// hot in rayon", true), ("// hot in tokio", true)];
    let test = waits_are(&program, "crates/src/bin/pools.rs", &expected);
    let document = report(&test, &[]);
    let of = |part: &str| {
        let sites = document["sites"].as_array().unwrap().iter();
        sites.filter(|site| site["site"].as_str().is_some_and(|site| site.contains(part))).collect::<Vec<_>>()
    };
    for (worker, lock) in [("rayon_core::sleep", "pools::rayon"), ("multi_thread::park", "pools::tokio")] {
        let contended = of(lock).into_iter().filter(|site| site["contention"].as_u64() > Some(0));
        assert!(contended.map(|site| site["waits"].as_u64().unwrap()).max() >= Some(3), "{:#}", document["sites"]);
        assert!(of(worker).iter().any(|site| site["idleness"].as_u64() > Some(0)), "{:#}", document["sites"]);
    }
    let hot = document["objects"].as_array().unwrap().iter().filter(|object| object["lock"] == "std Mutex");
    assert!(hot.filter(|object| object["max_waiters"].as_u64() >= Some(3)).count() >= 2, "{:#}", document["objects"]);
}

#[test]
fn abseil() {
    let flags = ["-labsl_synchronization", "-labsl_base", "-labsl_time", "-labsl_raw_logging_internal"];
    let program = Program::with_flags("real_programs/abseil_waits.cpp", &flags);
    all_are_woken(&program, 6);
    let expected = [
        ("// Mutex::Lock", true),
        ("// Mutex::ReaderLock", true),
        ("// Mutex::Await", false),
        ("// CondVar", false),
        ("// Notification", false),
        ("// BlockingCounter", false),
    ];
    waits_are(&program, "real_programs/abseil_waits.cpp", &expected);
}

#[test]
fn one_tbb() {
    let program = Program::with_flags("real_programs/tbb_waits.cpp", &["-ltbb"]);
    all_are_woken(&program, 4);
    let expected = [("// mutex", true), ("// rw_mutex::lock", true), ("// rw_mutex::lock_shared", true)];
    let test = waits_are(&program, "real_programs/tbb_waits.cpp", &expected);
    // What a worker waits for is no lock.
    let text = report(&test, &[])["sites"].to_string();
    assert!(text.contains("libtbb.so"), "{text}");
    // Its locks that spin call nothing; all that the loop adds is there.
    let loops = TestDirectory::new("tbb-loops");
    let output = loops.traced(&program).arg("loops").run();
    output.exited(0);
    assert_eq!(output.stdout_text(), "mutex 1000\nspin_mutex 1000\nqueuing_mutex 1000\n");
    timeline(&loops, Threads::End);
}

/// The locks of InnoDB are known by their functions, with debug information and by symbols alone: the words of a lock have its name,
/// whoever waits for them.
#[test]
fn innodb() {
    for flags in [&["-O2", "-g"][..], &["-O2", "-g0"]] {
        let program = Program::with_flags("real_programs/innodb_latches.cpp", flags);
        all_are_woken(&program, 4);
        let test = TestDirectory::new("innodb");
        test.traced(&program).env("THR_TRACE_DETAIL", "1").run().exited(0);
        let document = report(&test, &[]);
        let objects = document["objects"].as_array().unwrap().iter().filter(|object| object["kind"] == "futex");
        let futexes: Vec<&Value> = objects.collect();
        assert_eq!(futexes.len(), 3, "{flags:?}: {futexes:#?}");
        for futex in &futexes {
            // Where threads have waited for a lock, who held it is known.
            assert!(futex["lock"] == "InnoDB latch" && futex["blamed"].is_array(), "{flags:?}: {futex:#}");
        }
        let waits: u64 = futexes.iter().map(|futex| futex["waits"].as_u64().unwrap()).sum();
        assert_eq!(waits, 4, "{flags:?}: {futexes:#?}");
    }
    // A site is where a lock is taken.
    let test = TestDirectory::new("innodb-stacks");
    let program = Program::with_flags("real_programs/innodb_latches.cpp", &["-O2", "-g"]);
    test.traced(program).env("THR_TRACE_STACK", "64").run().exited(0);
    let document = report(&test, &[]);
    let sites = document["sites"].as_array().unwrap().iter().filter(|site| site["contention"].as_u64() > Some(0));
    let names: Vec<&str> = sites.map(|site| site["site"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().all(|name| name.contains("main") && name.contains("innodb_latches.cpp:")), "{names:?}");
}
