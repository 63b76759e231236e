//! On, off, and on again.

use std::fs;

use super::{
    assert_all_or_none, kinds_of_files, numbered, set, so_far, status_line, stop, wait_for_changes, wait_until,
};
use crate::harness::{TestDirectory, trace_cat};

/// Waits until the trace has something new of this event.
#[track_caller]
fn wait_for_more(test: &TestDirectory, event: &str) {
    let count = || so_far(test).of(event).len();
    let before = count();
    wait_until(|| count() > before);
}

#[test]
fn a_process_shows_itself_and_creates_nothing_else() {
    let test = TestDirectory::new("control-shown");
    let run = numbered(&test, "2 100000").env("THR_TRACE_CONTROL", "1").env("THR_TRACE_EVENTS", "");
    let mut program = run.spawn();
    program.wait_for("ready");
    assert_eq!(kinds_of_files(&test), ["trbuf", "trclock", "trinfo"]);
    let line = status_line(&test);
    assert_eq!(line[..2], [program.pid().to_string(), "control_numbere".to_owned()]);
    assert_eq!(line[2..], ["0", "no", "all", "0", "off", "0", "0", "none"]);

    set(&test, program.pid(), "-e mutex --detail on --stack 5");
    wait_for_more(&test, "mutex_lock");
    assert_eq!(status_line(&test)[2..7], ["1", "no", "all", "5", "on"]);
    wait_for_changes(&test, 2);
    set(&test, program.pid(), "-e thr_setspecific --level all");
    wait_for_more(&test, "thr_setspecific");
    wait_for_changes(&test, 4);
    set(&test, program.pid(), "-e ''");
    stop(&test, program);

    let trace = test.trace();
    assert_eq!(kinds_of_files(&test), ["tr", "trclock", "trinfo"]);
    let (changes, calls) = assert_all_or_none(&trace);
    assert!((4..=6).contains(&changes) && calls > 0, "{changes} changes, {calls} calls");
    assert!(
        trace.of("mutex_lock").iter().any(|record| record.fields.which == 1 && record.fields.arguments[4].bits() != 0)
    );
    let text = trace.text();
    for record in trace.records.iter().filter(|record| !record.is("trace_events")) {
        assert!(
            record.is("thr_setspecific") || record.name().starts_with("mutex") || record.is("trace_stack"),
            "{text}"
        );
    }
    let info =
        fs::read_to_string(test.trace_directory().join(format!("trinfo.{:07x}", line[0].parse::<u32>().unwrap())))
            .unwrap();
    assert!(info.contains("\nevents \n") && info.contains("\nevents 2 thr_setspecific\n"), "{info}");
}

#[test]
fn without_the_variable_nothing_is_made() {
    let test = TestDirectory::new("control-hidden");
    let mut program = numbered(&test, "2 100000").env("THR_TRACE_EVENTS", "").spawn();
    program.wait_for("ready");
    assert_eq!(kinds_of_files(&test), [""; 0]);
    let output = test.native(trace_cat()).args(["set", "-e", "mutex", &program.pid().to_string()]).run();
    output.exited(1);
    assert!(output.stderr_text().contains("this process is not recorded"), "{}", output.stderr_text());
    let pid = program.pid().to_string();
    stop(&test, program);
    let output = test.native(trace_cat()).args(["set", "-e", "mutex", &pid]).run();
    output.exited(1);
    assert!(
        output.stderr_text().contains(&format!("{pid}: there is no process of this ID")),
        "{}",
        output.stderr_text()
    );
    assert_eq!(kinds_of_files(&test), [""; 0]);
}

#[test]
fn a_thousand_pauses_lose_and_double_nothing() {
    let test = TestDirectory::new("control-thousand");
    let run = numbered(&test, "8 20000").env("THR_TRACE_EVENTS", "thr_setspecific:mutex");
    let mut program = run.spawn();
    program.wait_for("ready");
    for _ in 0..500 {
        set(&test, program.pid(), "--pause");
        set(&test, program.pid(), "--resume");
    }
    assert_eq!(status_line(&test)[2..4], ["1000", "no"]);
    wait_until(|| so_far(&test).of("thr_setspecific").len() > 8000);
    stop(&test, program);
    let trace = test.trace();
    let (changes, calls) = assert_all_or_none(&trace);
    println!("{changes} changes, {calls} calls");
    // Each thread follows the last change at least.
    assert!(changes >= 8 && calls > 8000, "{changes} changes, {calls} calls");
    assert_eq!(trace.of("trace_lost").len(), 0);
    let locks = trace.of("mutex_lock").iter().filter(|record| record.fields.which == 2).count();
    assert!(locks.abs_diff(trace.of("mutex_unlock").len()) <= changes, "{locks} locks");
}

#[test]
fn a_flush_writes_what_is_in_buffers() {
    let test = TestDirectory::new("control-flush");
    let mut program = numbered(&test, "2 100000000").env("THR_TRACE_EVENTS", "thr_setspecific").spawn();
    program.wait_for("ready");
    wait_for_more(&test, "thr_setspecific");
    assert_eq!(test.trace().records.len(), 0, "all is in buffers");
    set(&test, program.pid(), "--flush");
    wait_for_more(&test, "thr_setspecific");
    let trace = test.trace();
    assert!(trace.records.len() >= 2, "{}", trace.text());
    assert_eq!(trace.of("trace_events").len(), 0, "nothing else has changed");
    stop(&test, program);
    assert_eq!(assert_all_or_none(&test.trace()).0, 0);
}

#[test]
fn reports_claim_nothing_because_of_a_pause() {
    let test = TestDirectory::new("control-report");
    let mut program = numbered(&test, "4 30000").spawn();
    program.wait_for("ready");
    set(&test, program.pid(), "--pause");
    wait_for_changes(&test, 1);
    set(&test, program.pid(), "--resume");
    for _ in 0..40 {
        set(&test, program.pid(), "--pause");
        set(&test, program.pid(), "--resume");
    }
    set(&test, program.pid(), "--pause");
    stop(&test, program);
    let report = test.native(trace_cat()).arg("report").arg(test.trace_directory()).run();
    let text = report.success().stdout_text();
    for claim in ["eadlock", "tuck", "isuse", "different orders"] {
        assert!(!text.contains(claim), "{claim}: {text}");
    }
    assert!(text.contains("what is recorded was changed while it ran"), "{text}");
    let output = test.trace_cat().args(["-F", "text", "-e", "trace_events"]).run();
    assert!(
        output.stdout_text().contains("trace_events(generation=1, blocked=0, paused=1)"),
        "{}",
        output.stdout_text()
    );
}
