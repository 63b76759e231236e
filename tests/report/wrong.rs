//! Possible deadlocks, misuse, and who waits for whom at a moment.

use std::collections::HashSet;
use std::fs::read_to_string;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::super::harness::{Program, TestDirectory, library, repository};
use super::{document, report};

/// How many steps each possible deadlock of a program's mode has.
fn cycle_lengths(mode: &str, variables: &[(&str, &str)]) -> Option<Vec<usize>> {
    let test = TestDirectory::new("report-order");
    let command = test.traced(Program::c("report/order.c")).arg(mode);
    variables.iter().fold(command, |command, (name, value)| command.env(name, value)).run().success();
    let document = document(report(&test, &["-F", "json"]).run().success());
    let cycles = document["cycles"].as_array()?;
    for cycle in cycles {
        let (objects, edges) = (cycle["objects"].as_array().unwrap(), cycle["edges"].as_array().unwrap());
        for (index, edge) in edges.iter().enumerate() {
            assert_eq!((&edge["from"], &edge["count"]), (&objects[index], &Value::from(1)), "{document:#}");
            assert_eq!(edge["to"], objects[(index + 1) % objects.len()], "{document:#}");
            assert!(edge["site_from"].as_str().unwrap().contains("order.c"), "{document:#}");
        }
    }
    Some(cycles.iter().map(|cycle| cycle["edges"].as_array().unwrap().len()).collect())
}

/// Modes of the program in which threads may come to a deadlock, and how many locks are in it.
const POSSIBLE_DEADLOCKS: [(&str, usize); 3] = [("crossed", 2), ("three", 3), ("writer", 2)];

/// Modes in which they cannot. Records do not have which kind of rwlock it is, so that `preferring` is as harmless as `readers`.
const HARMLESS: [&str; 8] = ["alone", "gate", "joined", "barrier", "try", "timed", "readers", "preferring"];

#[test]
fn locks_in_different_orders_are_possible_deadlocks() {
    let detail = [("THR_TRACE_DETAIL", "1")];
    for (mode, length) in POSSIBLE_DEADLOCKS {
        assert_eq!(cycle_lengths(mode, &detail), Some(vec![length]), "{mode}");
    }
    for mode in HARMLESS {
        assert_eq!(cycle_lengths(mode, &detail), Some(vec![]), "{mode}");
    }
    for (name, value) in
        [("THR_TRACE_LEVEL", "blocked"), ("THR_TRACE_EVENTS", "mutex:thread"), ("THR_TRACE_EVENTS", "-thr_join")]
    {
        assert_eq!(cycle_lengths("crossed", &[(name, value)]), None, "{name}={value}");
    }
}

/// What the report finds helgrind finds, too; where that finds more, there is no deadlock.
#[test]
fn possible_deadlocks_are_those_of_helgrind_without_the_harmless_ones() {
    let test = TestDirectory::new("report-helgrind");
    let program = Program::with_flags("report/order.c", &["-g"]);
    for mode in POSSIBLE_DEADLOCKS.map(|(mode, _)| mode).into_iter().chain(HARMLESS) {
        let helgrind = test.native("valgrind").args(["--tool=helgrind", "--error-exitcode=0"]);
        let output = helgrind.arg(program.path()).arg(mode).run();
        let violations = output.success().stderr_text().matches("lock order \"").count();
        assert_eq!(violations, 1, "{mode}: {}", output.stderr_text());
    }
}

/// Records a program that comes to a deadlock, and kills it then.
fn killed_in_deadlock(mode: &str) -> TestDirectory {
    killed_in_deadlock_of("report/order.c", mode, "all")
}

fn killed_in_deadlock_of(program: &'static str, mode: &str, level: &str) -> TestDirectory {
    let test = TestDirectory::new(&format!("report-{mode}"));
    let program = test.traced(Program::c(program)).arg(mode).env("THR_TRACE_DETAIL", "1").env("THR_TRACE_LEVEL", level);
    let mut program = program.spawn();
    program.wait_for("ready\n");
    let is_deadlocked = || report(&test, &[]).run().status.code() == Some(3);
    for _ in 0..2000 {
        if is_deadlocked() {
            break;
        }
        sleep(Duration::from_millis(20));
    }
    program.signal(libc::SIGKILL);
    program.wait().killed(libc::SIGKILL);
    test
}

#[test]
fn readers_are_in_a_deadlock_if_preferred_writers_are_between_them() {
    let test = killed_in_deadlock("between");
    let output = report(&test, &["-F", "json"]).run();
    let document = document(output.exited(3));
    let threads = document["deadlocks"][0]["threads"].as_array().unwrap();
    let calls: Vec<&str> = threads.iter().map(|thread| thread["call"].as_str().unwrap()).collect();
    let is_alternating = calls == ["rw_rdlock", "rw_wrlock", "rw_rdlock", "rw_wrlock"]
        || calls == ["rw_wrlock", "rw_rdlock", "rw_wrlock", "rw_rdlock"];
    assert!(is_alternating, "{document:#}");
}

#[test]
fn philosophers_that_were_killed_are_in_a_deadlock() {
    let test = killed_in_deadlock("philosophers");
    let output = report(&test, &["-F", "json"]).run();
    let document = document(output.exited(3));
    let threads = document["deadlocks"][0]["threads"].as_array().unwrap();
    assert_eq!((document["deadlocks"].as_array().unwrap().len(), threads.len()), (1, 5), "{document:#}");
    for (index, thread) in threads.iter().enumerate() {
        // Each waits for what the next one holds.
        assert_eq!(threads[(index + 1) % 5]["holds"], Value::from(vec![thread["object"].clone()]), "{document:#}");
    }
    assert_eq!(document["cycles"][0]["edges"].as_array().unwrap().len(), 5, "{document:#}");
    let page = report(&test, &[]).run();
    let text = page.exited(3).stdout_text();
    // What has come about is not reported as possible, too.
    assert!(text.contains("Deadlock of 5 threads") && !text.contains("Possible deadlock"), "{text}");
    // At the beginning nobody waited.
    let output = report(&test, &["--at", "+0", "-F", "json"]).run();
    let before = super::document(output.success());
    assert_eq!((&before["deadlocks"], &before["stuck"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    report(&test, &["--at", "+1h"]).run().exited(3);
    // Another process has no deadlock.
    report(&test, &["-p", "1"]).run().success();
}

/// The calls, objects and mutexes of the threads of the only deadlock.
fn only_deadlock(test: &TestDirectory) -> Vec<[Value; 3]> {
    let document = document(report(test, &["-F", "json"]).run().exited(3));
    assert_eq!(document["deadlocks"].as_array().unwrap().len(), 1, "{document:#}");
    let threads = document["deadlocks"][0]["threads"].as_array().unwrap();
    threads.iter().map(|thread| ["call", "object", "mutex"].map(|name| thread[name].clone())).collect()
}

#[test]
fn a_thread_that_waits_for_itself_is_in_a_deadlock_at_each_level() {
    for level in ["all", "blocked"] {
        // The parent had the mutex without a wait, so that at the second level no record shows its acquisition.
        for (mode, call) in [("once", "thr_once"), ("fork", "mutex_lock")] {
            let test = killed_in_deadlock_of("report/deadlocks.c", mode, level);
            let threads = only_deadlock(&test);
            assert_eq!((threads.len(), &threads[0][0]), (1, &Value::from(call)), "{mode} {level}: {threads:#?}");
        }
    }
}

#[test]
fn a_child_that_waits_for_a_lock_of_both_processes_does_not_wait_for_itself() {
    for level in ["all", "blocked"] {
        let test = TestDirectory::new("report-shared");
        let program = test.traced(Program::c("report/deadlocks.c")).arg("shared");
        let mut program = program.env("THR_TRACE_DETAIL", "1").env("THR_TRACE_LEVEL", level).spawn();
        program.wait_for("ready\n");
        let waits = || report(&test, &[]).run().stdout_text().contains("who holds what 1 thread waits for");
        let has_waited = (0..2000).any(|_| {
            let waits = waits();
            sleep(Duration::from_millis(if waits { 0 } else { 20 }));
            waits
        });
        program.signal(libc::SIGKILL);
        program.wait().killed(libc::SIGKILL);
        assert!(has_waited, "{level}");
        let page = report(&test, &[]).run();
        let text = page.success().stdout_text();
        assert!(!text.contains("Deadlock") && !text.contains("Misuse"), "{level}: {text}");
    }
}

#[test]
fn two_processes_may_be_in_a_deadlock_with_each_other() {
    let test = killed_in_deadlock_of("report/deadlocks.c", "processes", "all");
    let document = document(report(&test, &["-F", "json"]).run().exited(3));
    let threads = document["deadlocks"][0]["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 2, "{document:#}");
    assert!(threads[0]["pid"] != threads[1]["pid"] && threads[0]["object"] != threads[1]["object"], "{document:#}");
}

/// The trbuf is there, but there is no room in it for what threads record: nothing is left of that when the process is killed.
#[test]
fn a_deadlock_in_the_processs_own_memory_is_not_known() {
    for first in ["", "nice"] {
        println!("first '{first}'");
        let test = TestDirectory::new("report-no-room");
        let script = format!("exec prlimit --fsize=307200 env LD_PRELOAD=\"$library\" {first} \"$0\" once");
        let program = test.native("sh").args(["-c", &script]).arg(Program::c("report/deadlocks.c").path());
        let program = program.env("library", library()).env("THR_TRACE_DIR", test.trace_directory());
        let mut program = program.noise_expected().spawn();
        program.wait_for("ready\n");
        program.signal(libc::SIGKILL);
        program.wait().killed(libc::SIGKILL);
        let page = report(&test, &["--fail-if", "deadlocks > 0"]).run();
        assert!(page.exited(2).stdout_text().contains("it has no record that was written"), "{}", page.stdout_text());
    }
}

/// A ring has overwritten who entered first: each of the threads is in a call that may run the routine.
#[test]
fn who_is_in_a_routine_that_a_ring_has_overwritten_is_not_known() {
    let test = TestDirectory::new("report-routines");
    let program = test.traced(Program::c("report/deadlocks.c")).arg("routines");
    let program = program.env("THR_TRACE_DETAIL", "1").env("THR_TRACE_RING", "64K");
    let mut program = program.spawn();
    program.wait_for("ready\n");
    let page = || report(&test, &[]).run().stdout_text().to_owned();
    let is_known = (0..2000).any(|_| {
        let is_known = page().contains("whether 2 threads run a routine of pthread_once or wait for one at the end");
        sleep(Duration::from_millis(if is_known { 0 } else { 20 }));
        is_known
    });
    program.signal(libc::SIGKILL);
    program.wait().killed(libc::SIGKILL);
    let text = page();
    assert!(is_known && !text.contains("a thread waited for"), "{text}");
    let failed = report(&test, &["--fail-if", "deadlocks > 0"]).run();
    assert!(failed.exited(2).stderr_text().contains("pthread_once"));
}

#[test]
fn who_was_woken_is_in_a_deadlock_with_who_has_its_mutex() {
    let test = killed_in_deadlock_of("report/deadlocks.c", "woken", "all");
    let mut threads = only_deadlock(&test);
    threads.sort_by_key(|[call, ..]| call.to_string());
    assert_eq!(threads.len(), 2, "{threads:#?}");
    let [[wait, cond, mutex], [lock, wanted, none]] = [threads[0].clone(), threads[1].clone()];
    assert_eq!((wait, lock, none), ("cond_wait".into(), "mutex_lock".into(), Value::Null));
    assert!(cond != wanted && mutex.is_string() && mutex != wanted && mutex != cond, "{threads:#?}");
    let page = report(&test, &[]).run();
    assert!(page.exited(3).stdout_text().contains("was woken and waits for mutex second"));
}

/// Also if the thread has called pthread_once since, which unwinding does.
#[test]
fn who_needs_its_mutex_after_a_limit_or_a_cancellation_is_in_a_deadlock() {
    for (mode, calls) in [("limit", ["cond_timedwait", "mutex_lock"]), ("cancelled", ["cond_wait", "thr_join"])] {
        let test = killed_in_deadlock_of("report/deadlocks.c", mode, "all");
        let mut threads = only_deadlock(&test);
        threads.sort_by_key(|[call, ..]| call.to_string());
        assert_eq!([&threads[0][0], &threads[1][0]], calls, "{threads:#?}");
        assert!(threads[0][2].is_string() && threads[1][2].is_null(), "{threads:#?}");
        let page = report(&test, &[]).run();
        assert!(page.exited(3).stdout_text().contains("cannot return without mutex second"));
    }
}

#[test]
fn who_has_left_a_circle_by_a_jump_and_only_posts_is_in_no_certain_deadlock() {
    let test = TestDirectory::new("report-jump");
    let program = test.traced(Program::c("report/deadlocks.c")).arg("jump");
    let mut program = program.env("THR_TRACE_DETAIL", "1").spawn();
    program.wait_for("left\n");
    let condition = ["--fail-if", "deadlocks > 0"];
    // The other thread waits for ever, from some time on.
    let is_complete = || report(&test, &condition).run().status.code() == Some(2);
    let is_known = (0..2000).any(|_| {
        let is_complete = is_complete();
        sleep(Duration::from_millis(if is_complete { 0 } else { 20 }));
        is_complete
    });
    program.signal(libc::SIGKILL);
    program.wait().killed(libc::SIGKILL);
    assert!(is_known);
    let page = report(&test, &[]).run();
    let text = page.success().stdout_text();
    assert!(text.contains("whether 2 threads are in a deadlock") && !text.contains("\nDeadlock"), "{text}");
    assert!(report(&test, &condition).run().exited(2).stderr_text().contains("by a jump"));
}

#[test]
fn a_child_that_waits_for_a_thread_of_its_parent_is_stuck() {
    let test = TestDirectory::new("report-left-behind");
    let program = test.traced(Program::c("report/known.c")).args(["fork", "0"]).env("THR_TRACE_DETAIL", "1").spawn();
    let is_left = |stuck: &&Value| stuck["note"].as_str().is_some_and(|note| note.contains("had it in the parent"));
    for _ in 0..2000 {
        // The holder locks the mutex again, which is a deadlock.
        let Ok(document) = serde_json::from_str::<Value>(report(&test, &["-F", "json"]).run().stdout_text()) else {
            continue;
        };
        let stuck = document["stuck"].as_array().unwrap();
        let Some(stuck) = stuck.iter().find(is_left) else {
            sleep(Duration::from_millis(20));
            continue;
        };
        assert_eq!(stuck["held_by"], document["deadlocks"][0]["threads"][0]["thread"], "{document:#}");
        // The parent waits for the child.
        let child = stuck["pid"].as_u64().unwrap() as libc::pid_t;
        // SAFETY: kill takes no pointers, and the child of a program that waits for it has its number still.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        program.wait().success();
        return;
    }
    panic!("the child is not stuck");
}

#[test]
fn misuse_is_reported_once_for_each_site() {
    let misuse = |arguments: &[&str]| {
        let test = TestDirectory::new("report-misuse");
        test.traced(Program::c("report/misuse.c")).args(arguments).env("THR_TRACE_DETAIL", "1").run().success();
        let document = document(report(&test, &["-F", "json"]).run().success());
        let rows = document["misuse"].as_array().unwrap().clone();
        for row in &rows {
            assert!(row["site"].as_str().unwrap().contains("misuse.c"), "{row:#}");
        }
        let row = |row: &Value| (row["kind"].as_str().unwrap().to_owned(), row["count"].as_u64().unwrap());
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let kinds = [
        "unlock_not_owner",
        "destroy_held",
        "exit_holding",
        "relock_self",
        "cond_two_mutexes",
        "never_joined",
        "error",
    ];
    assert_eq!(misuse(&[]), kinds.map(|kind| (kind.to_owned(), 1)));
    assert_eq!(misuse(&["well"]), []);
}

/// Appends the names of the members of a document, of those in lists too. The members of `left_out` are names of lists.
fn append_members(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| *name != "left_out") {
                names.push(name.clone());
                append_members(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| append_members(value, names)),
        _ => {}
    }
}

#[test]
fn the_manual_has_each_member_of_the_document() {
    let deadlock = killed_in_deadlock("philosophers");
    let misuse = TestDirectory::new("report-members");
    misuse.traced(Program::c("report/misuse.c")).env("THR_TRACE_DETAIL", "1").run().success();
    let mut names = Vec::new();
    append_members(&document(report(&deadlock, &["-F", "json"]).run().exited(3)), &mut names);
    append_members(&document(report(&misuse, &["-F", "json"]).run().success()), &mut names);
    let manual = read_to_string(repository().join("trace-cat/man/trace-cat-report.1.in")).unwrap();
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words: HashSet<&str> = manual.split(|letter| !is_of_name(letter)).collect();
    names.retain(|name| !words.contains(&name[..]));
    assert_eq!(names, [""; 0]);
}
