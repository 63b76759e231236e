//! The end of a process, in every way, with and without threads that run on.

use super::super::harness::{Program, TestDirectory};
use super::super::kill::{ENDINGS, ended, expected_records};
use super::{clean, possible};

/// Every stage of a process's life is recorded, from its constructors to its destructors.
#[test]
fn every_stage_is_recorded() {
    // Pairs: constructor 1, main 2, workers 3 each, handler 4, destructor 5.
    for (mode, status, pairs) in [
        ("return", 35, 1 + 2 + 6 + 4 + 5),
        ("exit", 31, 1 + 2 + 6 + 4 + 5),
        ("_exit", 32, 1 + 2 + 6),
        ("_Exit", 33, 1 + 2 + 6),
        ("quick_exit", 34, 1 + 2 + 6 + 4),
        ("main_pthread_exit", 0, 1 + 2 + 3 + 4 + 5),
    ] {
        println!("{mode}");
        let test = TestDirectory::new("endings");
        let program = Program::c("lifecycle/endings.c");
        test.native(&program).arg(mode).run().exited(status);
        let output = test.traced(&program).arg(mode).run();
        output.exited(status);
        let trace = clean(&test);
        let pid = trace.records[0].fields.pid;
        assert_eq!(super::pairs(&trace, pid), pairs, "{mode}");
        let ends: Vec<u64> = trace.of("proc_exit").iter().map(|record| record.get("status")).collect();
        assert_eq!(ends, [status as u64], "{mode}");
        let exits: Vec<_> = trace.of("thr_exit");
        if mode == "main_pthread_exit" {
            let main = exits.iter().find(|record| record.fields.lwpid == pid).expect("main's thr_exit");
            assert_eq!(main.get("exit_status"), 0x77);
        } else {
            assert_eq!(exits.len(), 2, "{mode}");
        }
    }
}

/// The handlers of `quick_exit` are the program's, as its main function is.
#[test]
fn what_a_handler_of_quick_exit_executes_goes_on_in_the_same_files() {
    let test = TestDirectory::new("endings-executes");
    test.traced(Program::c("lifecycle/endings.c")).arg("executes").run().exited(32);
    let trace = clean(&test);
    let pid = trace.records[0].fields.pid;
    assert_eq!(super::pairs(&trace, pid), (1 + 2 + 6 + 4) + (1 + 2 + 6));
    let renamed = super::names(&test.trace_directory()).into_iter().filter(|name| name.starts_with("old."));
    assert_eq!(renamed.count(), 0);
}

/// A call that ends its process, or its thread, does not return to be recorded.
#[test]
fn the_call_that_ends_a_thread_is_told() {
    for (call, number) in [("kill", 110), ("sigqueue", 141), ("cancel", 132)] {
        let test = TestDirectory::new("ends-itself");
        let output = test.traced(Program::c("lifecycle/ends_itself.c")).arg(call).run();
        match call {
            "cancel" => output.exited(7),
            _ => output.killed(libc::SIGTERM),
        };
        let trace = test.merged();
        let calls: Vec<u64> = trace.of("trace_inflight").iter().map(|record| record.get("call")).collect();
        assert_eq!(calls, [number], "{call}");
    }
}

/// Four threads record at full speed while the fifth ends the process: the trace has all that they had finished, once.
#[test]
fn an_end_while_others_run_loses_nothing() {
    for (ending, status) in ENDINGS {
        for unbuffered in [false, true] {
            println!("{ending}, unbuffered {unbuffered}");
            let test = TestDirectory::new("running");
            let counts = test.directory().join("counts");
            let mut run = test.traced(Program::c("kill/counting.c")).arg(&counts).args(["steady", ending]);
            if unbuffered {
                run = run.env("THR_TRACE_BUF", "1");
            }
            let output = run.run();
            let (finished, semaphores) = ended(&output, status, &counts);
            let merged = test.merged();
            let records = expected_records::check(merged.text().as_bytes(), semaphores, &finished)
                .unwrap_or_else(|why| panic!("{ending}, unbuffered {unbuffered}: {why}"));
            assert!(records > 4 * 2000, "{ending}: the program ends when each has finished 2000 calls");
            possible(&merged);
            let execs: Vec<u8> = merged.of("proc_exec").iter().map(|record| record.fields.which).collect();
            let expected: &[u8] = match ending {
                "exec" => &[1],
                "exec_fails" => &[1, 2],
                _ => &[],
            };
            assert_eq!(execs, expected, "{ending}");
            // Children of a process whose threads are in the middle of records have none of these, and their own.
            let children = if ending == "forks" { 50 } else { 0 };
            for event in ["proc_begin", "sema_getvalue"] {
                assert_eq!(merged.of(event).len(), children, "{ending}: {event}");
            }
            let parent = merged.records[0].fields.pid;
            let foreign = merged.records.iter().filter(|record| record.fields.pid != parent).count();
            assert_eq!(foreign, 3 * children, "{ending}: begin, getvalue and exit of each child");
        }
    }
}
