//! Threads with the smallest stack there may be.

use super::super::harness::{Program, TestDirectory};

/// A hook's own arrays, or a path built on the stack, would run into the guard page and end the program.
#[test]
fn every_kind_of_call_on_what_is_left_of_a_small_stack() {
    let program = Program::c("hostile/small_stacks.c");
    for unbuffered in [false, true] {
        let test = TestDirectory::new("stacks");
        test.native(&program).run().success();
        let run = test.traced(&program);
        let output = if unbuffered { run.env("THR_TRACE_BUF", "1") } else { run }.run();
        output.success();
        assert_eq!(output.stdout_text(), "done\n");
        let trace = test.merged();
        // Twenty threads and, in each of two turns, the one that one of them makes.
        assert_eq!((trace.of("thr_begin").len(), trace.of("thr_exit").len()), (22, 22));
        // In each turn: 1, 2000 and 1 pairs; one each in cond_wait, timed lock and C11.
        assert_eq!(trace.of("mutex_unlock").len(), 2 * (1 + 2000 + 1 + 1 + 1 + 1));
        for event in ["cond_timedwait", "sema_timedwait", "mutex_timedlock", "proc_exec"] {
            assert!(trace.of(event).len() >= 4, "{event}");
        }
    }
}
