//! Cancellation and pthread_exit through the library's frames.

use std::collections::HashMap;

use super::super::harness::{Program, TestCommand, TestDirectory};
use super::{clean, possible};

/// What a cancelled thread exits with.
const CANCELED: u64 = u64::MAX;

#[test]
fn handlers_run_and_the_call_has_its_second_record() {
    cancel_everywhere(&[]);
}

/// The unwinder takes a frame without unwind information for the last one, and does not get to the library's.
#[test]
fn a_thread_without_unwind_information_has_its_end() {
    cancel_everywhere(&["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"]);
}

/// Cancels a thread in each kind of place, in the program that is compiled with `flags`.
#[track_caller]
fn cancel_everywhere(flags: &[&str]) {
    for (place, event) in [
        ("cond", Some("cond_wait")),
        ("cond_timed", Some("cond_timedwait")),
        ("sem", Some("sema_wait")),
        ("sem_timed", Some("sema_timedwait")),
        ("join", Some("thr_join")),
        ("sleep", None),
        ("async", None),
        ("testcancel", None),
    ] {
        println!("{place}");
        let test = TestDirectory::new("cancel");
        let program = Program::with_flags("lifecycle/cancel.c", flags);
        let native = test.native(&program).arg(place).run();
        let traced = test.traced(&program).arg(place).run();
        native.success();
        traced.success();
        assert_eq!(native.stdout_text(), "handled 1, cancelled 1\n");
        assert_eq!(native.stdout_text(), traced.stdout_text());
        let trace = clean(&test);
        assert_eq!(trace.of("thr_cancel").iter().filter(|record| record.rval() == 0).count(), 1);
        // The thread that was cancelled, of the one or two that began.
        let exit = trace.of("thr_exit").into_iter().find(|record| record.get("exit_status") == CANCELED);
        let thread = exit.expect("a thr_exit of the cancelled thread").fields.lwpid;
        let join = trace.of("thr_join").into_iter().find(|record| record.fields.which == 2 && record.rval() == 0);
        assert_eq!(join.expect("main's join").get("exit_status"), CANCELED);
        if let Some(event) = event {
            let second = trace.of(event).into_iter().rfind(|record| record.fields.lwpid == thread);
            let second = second.expect("the call that was cancelled");
            assert_eq!((second.fields.which, second.rval()), (2, libc::ECANCELED.into()), "{}", second.line);
        }
    }
}

#[test]
fn cpp_destructors_run() {
    let test = TestDirectory::new("destructors");
    let program = Program::c("lifecycle/destructors.cpp");
    let native = test.native(&program).run();
    let traced = test.traced(&program).run();
    native.success();
    traced.success();
    assert_eq!(native.stdout_text(), traced.stdout_text());
    assert_eq!(traced.stdout_text().matches("destroyed").count(), 7);
    let trace = clean(&test);
    let exits = trace.of("thr_exit");
    assert_eq!(exits.iter().map(|record| record.get("exit_status")).collect::<Vec<_>>(), [CANCELED; 6]);
    for event in ["cond_wait", "sema_wait", "thr_join", "thr_once"] {
        let cancelled = trace.of(event).into_iter().filter(|record| record.fields.which == 2);
        let cancelled = cancelled.filter(|record| record.rval() == i64::from(libc::ECANCELED)).count();
        // The semaphore's wait was cancelled on its own and within pthread_once.
        assert_eq!(cancelled, if event == "sema_wait" { 2 } else { 1 }, "{event}");
    }
}

/// The main thread has its end as any other, once, and nothing of ours on its stack.
#[test]
fn a_cancelled_main_thread_has_its_end() {
    for flags in [&[][..], &["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"]] {
        let program = Program::with_flags("lifecycle/cancelled_main.c", flags);
        for (how, status) in [("cancel", CANCELED), ("async", CANCELED), ("exit", 0)] {
            println!("{how} {flags:?}");
            let test = TestDirectory::new("cancelled-main");
            let native = test.native(&program).arg(how).run();
            let traced = test.traced(&program).arg(how).run();
            native.success();
            traced.success();
            assert_eq!(traced.stdout_text(), native.stdout_text());
            let trace = clean(&test);
            let ends: Vec<_> =
                trace.of("thr_exit").iter().map(|end| (end.fields.lwpid, end.get("exit_status"))).collect();
            assert_eq!(ends, [(trace.records[0].fields.pid, status)]);
        }
    }
}

/// A thread may be cancelled in the middle of a record. That one may be missing; all before it are there, if only in
/// the buffers, which such a thread does not leave in order.
#[test]
fn asynchronous_cancellation_loses_at_most_the_last_record() {
    posts_until_cancelled(|run| run);
}

/// Here the cancellation mostly falls on a write to the file.
#[test]
fn asynchronous_cancellation_of_a_write_loses_at_most_the_last_record() {
    posts_until_cancelled(|run| run.env("THR_TRACE_BUF", "1"));
}

#[track_caller]
fn posts_until_cancelled(prepare: impl Fn(TestCommand<'_>) -> TestCommand<'_>) {
    let test = TestDirectory::new("async");
    let output = prepare(test.traced(Program::c("lifecycle/async_posts.c"))).run();
    output.success();
    let mut lines = output.stdout_text().lines();
    let mut head = lines.next().expect("address and size").split_whitespace();
    let first = u64::from_str_radix(head.next().unwrap().strip_prefix("0x").unwrap(), 16).unwrap();
    let size: u64 = head.next().unwrap().parse().unwrap();
    let values: Vec<u64> = lines.map(|line| line.parse().unwrap()).collect();
    assert_eq!(values.len(), 64);

    let trace = test.merged();
    possible(&trace);
    let mut posts: HashMap<u64, u64> = HashMap::new();
    for post in trace.of("sema_post") {
        let count = posts.entry(post.get("sem")).or_default();
        if (first..first + 64 * size).contains(&post.get("sem")) {
            assert_eq!((post.rval(), post.get("s_count")), (0, *count), "{}", post.line);
        }
        *count += 1;
    }
    let in_flight = trace.of("trace_inflight");
    for (index, &value) in values.iter().enumerate() {
        let semaphore = first + index as u64 * size;
        let recorded = posts.get(&semaphore).copied().unwrap_or(0);
        let may_have_posted = in_flight.iter().any(|record| record.get("object") == semaphore);
        let is_known = recorded == value || recorded + 1 == value && may_have_posted;
        assert!(is_known, "thread {index}: {value} posts, {recorded} records, in flight: {may_have_posted}");
    }
    println!("{} posts in flight", in_flight.len());
    let exits = trace.of("thr_exit");
    assert_eq!(exits.iter().filter(|record| record.get("exit_status") == CANCELED).count(), 64);
}
