//! `trace-cat report`: programs whose waits, holders and deadlocks are known.

mod futex_waiters;
mod names;
mod stacks;
mod wrong;

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::harness::{CommandOutput, Program, TestCommand, TestDirectory, trace_cat};

/// `trace-cat report` with these options.
fn report<'a>(test: &'a TestDirectory, options: &[&str]) -> TestCommand<'a> {
    test.native(trace_cat()).arg("report").args(options).arg(test.trace_directory())
}

fn document(output: &CommandOutput) -> Value {
    serde_json::from_str(output.stdout_text()).unwrap()
}

/// The object of a report with most contention, which is of this kind.
fn first_object<'a>(document: &'a Value, kind: &str) -> &'a Value {
    let object = &document["objects"][0];
    assert_eq!(object["kind"], kind, "{document:#}");
    object
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn waits_are_blamed_on_who_held_the_mutex() {
    const ROUNDS: u64 = 20;
    let test = TestDirectory::new("report-waits");
    let program = test.traced(Program::c("report/known.c")).args(["waits", &ROUNDS.to_string()]);
    program.env("THR_TRACE_DETAIL", "1").run().success();
    // What the report has to say, from the records: main releases the mutex only while the other thread waits.
    let trace = test.merged();
    let main = trace.records[0].fields.pid;
    let (mut waited, mut blamed, mut held, mut entry, mut release, mut acquired) = (0, 0, 0, 0, 0, 0);
    for record in &trace.records {
        let is_main = record.fields.lwpid == main;
        match (record.is("mutex_lock"), record.fields.which) {
            (true, 1) if !is_main => entry = record.fields.time,
            (true, 2) if !is_main => {
                assert_eq!((record.get("rval"), record.get("block?")), (0, 1));
                (waited, blamed, acquired) =
                    (waited + record.fields.time - entry, blamed + release - entry, record.fields.time);
            }
            (true, 2) => acquired = record.fields.time,
            _ if record.is("mutex_unlock") => {
                held += record.fields.time - acquired;
                release = record.fields.time;
            }
            _ => {}
        }
    }
    let document = document(report(&test, &["-F", "json"]).run().success());
    let mutex = first_object(&document, "mutex");
    assert_eq!(
        [&mutex["waits"], &mutex["waited"], &mutex["holds"], &mutex["held"]].map(number),
        [ROUNDS, waited, 2 * ROUNDS, held]
    );
    assert_eq!([&mutex["handoff"], &mutex["unknown"], &mutex["max_waiters"]].map(number), [waited - blamed, 0, 1]);
    let holders = mutex["blamed"].as_array().unwrap();
    assert_eq!(holders.len(), 1, "one site of one thread: {mutex:#}");
    assert_eq!((&holders[0]["thread"], number(&holders[0]["time"])), (&Value::from(main), blamed));
    let site = holders[0]["site"].as_str().unwrap();
    assert!(site.starts_with("waits known.c:"), "{site}");
    assert_eq!((&mutex["wakers"][0]["thread"], &mutex["wakers"][0]["count"]), (&main.into(), &ROUNDS.into()));
    assert_eq!(number(&document["contention"]), waited);
    let pair = &document["pairs"][0];
    assert_eq!((&pair["holder"], number(&pair["waits"]), number(&pair["waited"])), (&main.into(), ROUNDS, blamed));
    assert_eq!((&document["deadlocks"], &document["stuck"]), (&Value::Array(vec![]), &Value::Array(vec![])));

    let page = report(&test, &[]).run();
    let text = page.success().stdout_text();
    let held_by = format!("/{main} from waits known.c:");
    for expected in ["contention  ", &held_by, "mutex first 0x", "trace-cat -F text --blocked --object 0x"] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    for table in ["object", "thread", "site", "pair"] {
        let text = report(&test, &["--by", table]).run().success().stdout_text().to_owned();
        assert!(text.lines().count() > 1, "{text}");
    }
    // No other thread's waits, and then none at all.
    let of_main = document_of_lwp(&test, main);
    assert_eq!(number(&of_main["contention"]), 0);
    let file = test.directory().join("page");
    report(&test, &["-o", file.to_str().unwrap()]).run().success();
    assert_eq!(std::fs::read_to_string(file).unwrap(), text);
}

#[test]
fn stacks_have_all_contention_and_other_programs_get_files() {
    let test = TestDirectory::new("report-stacks");
    let program = test.traced(Program::c("report/known.c")).args(["waits", "20"]);
    program.env("THR_TRACE_DETAIL", "1").run().success();
    let waited = number(&document(report(&test, &["-F", "json"]).run().success())["contention"]);
    let folded = report(&test, &["-F", "folded"]).run();
    let text = folded.success().stdout_text();
    let (stacks, times): (Vec<&str>, Vec<&str>) = text.lines().map(|line| line.rsplit_once(' ').unwrap()).unzip();
    assert_eq!(times.iter().map(|time| time.parse::<u64>().unwrap()).sum::<u64>(), waited, "{text}");
    assert!(stacks.iter().any(|stack| stack.contains(" holds it from waits known.c:")), "{text}");
    let none = report(&test, &["-F", "folded", "-l", "1"]).run();
    assert_eq!(none.success().stdout_text(), "");
    let file = test.directory().join("report.pb.gz");
    report(&test, &["-F", "pprof", "-o", file.to_str().unwrap()]).run().success();
    assert_eq!(std::fs::read(file).unwrap()[..3], [0x1f, 0x8b, 8], "gzip");
    let file = test.directory().join("report.html");
    report(&test, &["-F", "html", "-o", file.to_str().unwrap()]).run().success();
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains("known.c") && page.ends_with("</html>\n"), "{page}");
}

fn document_of_lwp(test: &TestDirectory, lwp: u32) -> Value {
    document(report(test, &["-F", "json", "-l", &lwp.to_string()]).run().success())
}

#[test]
fn readers_share_the_blame() {
    const ROUNDS: u64 = 10;
    let test = TestDirectory::new("report-readers");
    test.traced(Program::c("report/known.c")).args(["read", &ROUNDS.to_string()]).run().success();
    let document = document(report(&test, &["-F", "json"]).run().success());
    let rwlock = first_object(&document, "rwlock");
    assert_eq!(number(&rwlock["waits"]), ROUNDS, "{rwlock:#}");
    let holders = rwlock["blamed"].as_array().unwrap();
    assert_eq!(holders.len(), 2, "two readers: {rwlock:#}");
    let blamed: u64 = holders.iter().map(|holder| number(&holder["time"])).sum();
    assert_eq!(blamed + number(&rwlock["handoff"]) + number(&rwlock["unknown"]), number(&rwlock["waited"]));
    // Each thread has it once in each round.
    assert_eq!([&rwlock["holds"], &rwlock["unknown"]].map(number), [3 * ROUNDS, 0]);
}

/// Runs a program that comes to a deadlock until the report on the running program has one; then kills it. The reports on the
/// running program and on the killed one.
fn deadlocked(test: &TestDirectory, what: &str, variables: &[(&str, &str)]) -> [Value; 2] {
    let command = test.traced(Program::c("report/known.c")).args([what, "0"]);
    let mut program = variables.iter().fold(command, |command, (name, value)| command.env(name, value)).spawn();
    program.wait_for("ready\n");
    let mut running = None;
    for _ in 0..2000 {
        let output = report(test, &["-F", "json"]).run();
        if output.status.code() == Some(3)
            && document(&output)["stuck"].as_array().unwrap().len() == expected_stuck(what)
        {
            running = Some(document(&output));
            break;
        }
        sleep(Duration::from_millis(20));
    }
    program.signal(libc::SIGKILL);
    program.wait().killed(libc::SIGKILL);
    let killed = report(test, &["-F", "json"]).run();
    killed.exited(3);
    [running.expect("the threads come to the deadlock"), document(&killed)]
}

fn expected_stuck(what: &str) -> usize {
    if what == "own" { 2 } else { 0 }
}

const BLOCKED: [(&str, &str); 2] = [("THR_TRACE_LEVEL", "blocked"), ("THR_TRACE_DETAIL", "1")];

#[test]
fn crossed_mutexes_are_a_deadlock_however_it_is_recorded() {
    let ring = [("THR_TRACE_RING", "64K")];
    for (what, variables) in [("crossed", &[][..]), ("crossed", &ring), ("crossed_by_main", &BLOCKED)] {
        let test = TestDirectory::new("report-crossed");
        for document in deadlocked(&test, what, variables) {
            assert_eq!(document["deadlocks"].as_array().unwrap().len(), 1, "{document:#}");
            let threads = document["deadlocks"][0]["threads"].as_array().unwrap();
            assert_eq!(threads.len(), 2, "{document:#}");
            let objects: Vec<&Value> = threads.iter().map(|thread| &thread["object"]).collect();
            assert_ne!(objects[0], objects[1], "{document:#}");
            assert!(threads.iter().all(|thread| thread["call"] == "mutex_lock"), "{document:#}");
            let holds = |index: usize| threads[index]["holds"].as_array().unwrap();
            assert!(holds(0).contains(objects[1]) && holds(1).contains(objects[0]), "{document:#}");
        }
    }
}

/// Main runs, and may have taken a mutex when it was free, which has no record: nobody knows whether it is a deadlock.
#[test]
fn crossed_mutexes_that_a_third_thread_may_have_are_said_to_be_in_doubt() {
    let test = TestDirectory::new("report-crossed-doubt");
    let command = test.traced(Program::c("report/known.c")).args(["crossed", "0"]);
    let mut program = BLOCKED.iter().fold(command, |command, (name, value)| command.env(name, value)).spawn();
    program.wait_for("ready\n");
    let text = || report(&test, &[]).run().success().stdout_text().to_owned();
    let doubt = "whether 2 threads are in a deadlock: ";
    let is_told = (0..2000).any(|_| {
        sleep(Duration::from_millis(20));
        text().contains(doubt)
    });
    program.signal(libc::SIGKILL);
    program.wait().killed(libc::SIGKILL);
    assert!(is_told && text().contains(doubt) && !text().contains("Deadlock of"), "{}", text());
    let gate = report(&test, &["--fail-if", "deadlocks > 0"]).run();
    let error = gate.exited(2).stderr_text();
    assert!(error.contains("a thread may wait for another thread than the one that it saw"), "{error}");
}

#[test]
fn who_joins_a_thread_that_locked_its_own_mutex_is_stuck() {
    let test = TestDirectory::new("report-own");
    for document in deadlocked(&test, "own", &[]) {
        let deadlock = document["deadlocks"][0]["threads"].as_array().unwrap();
        assert_eq!(deadlock.len(), 1, "{document:#}");
        let stuck = document["stuck"].as_array().unwrap();
        let of_call = |call: &str| stuck.iter().find(|stuck| stuck["call"] == call).unwrap();
        assert_eq!(of_call("thr_join")["held_by"], deadlock[0]["thread"], "{document:#}");
        assert_eq!(of_call("mutex_lock")["held_by"], of_call("thr_join")["thread"], "{document:#}");
    }
    let page = report(&test, &[]).run();
    let text = page.exited(3).stdout_text();
    assert!(text.contains("Deadlock of 1 thread") && text.contains("Stuck: "), "{text}");
}

#[test]
fn a_program_is_recorded_and_reported_in_one_step() {
    let test = TestDirectory::new("report-run");
    let program = Program::c("report/known.c");
    let run = |options: &[&str], program: &[&str]| {
        test.native(trace_cat()).args(["run", "-d", "trace"]).args(options).arg("--").args(program).run()
    };
    let known = program.path().to_str().unwrap();
    let page = " held by ";
    let output = run(&["--report"], &["sh", "-c", "\"$0\" waits 5; echo out; exit 7", known]);
    let text = output.exited(7).stderr_text();
    assert_eq!(output.stdout_text(), "out\n");
    assert!(text.contains(page) && text.contains("\ncontention  "), "{text}");
    let output = run(&["--report=page"], &[known, "waits", "5"]);
    let written = std::fs::read_to_string(test.directory().join("page")).unwrap();
    assert!(!output.success().stderr_text().contains(page) && written.contains(page), "{written}");
    // The report is of this run alone.
    let output = run(&["--report=page", "--fail-if", "contention > 0ns", "--fail-if", "waits(0x1) > 0"], &["true"]);
    let text = output.exited(2).stderr_text();
    assert!(!text.contains("fails, since") && text.contains("no object is named '0x1'"), "{text}");
    let output = run(&["--report", "--fail-if", "contention > 0ns"], &["sh", "-c", "\"$0\" waits 5; exit 7", known]);
    let text = output.exited(3).stderr_text();
    assert!(text.contains("trace-cat: --fail-if: fails, since contention > 0ns holds: it is "), "{text}");
    let output = run(&["--report", "--fail-if", "stuck > 0", "--only", "nobody"], &["true"]);
    assert!(output.exited(2).stderr_text().ends_with("'stuck > 0': not known: nothing was recorded\n"), "{output:?}");
    run(&["--fail-if", "stuck > 0"], &["true"]).exited(2);
    // All that is new is of this run, also what no process shows to be: the shell is not recorded.
    let only = program.path().file_name().unwrap();
    let twice = ["sh", "-c", "\"$0\" waits 5; \"$0\" waits 5; exit 7", known];
    for only_these in ["", "--run 3,4 "] {
        let run = test.native(trace_cat()).args(["run", "-d", "new", "--report", "--only"]);
        let output = run.arg(only).arg("--").args(twice).run();
        let text = output.exited(7).stderr_text();
        assert!(text.contains(", programs 2, "), "{text}");
        assert!(text.contains(&format!("; for a report: trace-cat report {only_these}new\n")), "{text}");
        assert!(text.contains(&format!("\n  trace-cat report --by pair {only_these}new\n")), "{text}");
        let report = test.native(trace_cat()).arg("report").args(only_these.split_whitespace()).arg("new").run();
        assert!(report.success().stdout_text().contains(", programs 2, "), "{report:?}");
    }
}
