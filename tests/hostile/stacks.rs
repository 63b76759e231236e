//! Threads with the smallest stack there may be, and stacks that are not aligned, or more than the ABI demands.

use super::super::harness::{Program, TestCommand, TestDirectory};

/// A hook's own arrays, or a path built on the stack, would run into the guard page and end the program.
#[test]
fn every_kind_of_call_on_what_is_left_of_a_small_stack() {
    let program = Program::c("hostile/small_stacks.c");
    for unbuffered in [false, true] {
        let test = TestDirectory::new("stacks");
        test.native(&program).run().success();
        let run = test.traced(&program);
        let output = run.unbuffered_if(unbuffered).run();
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

/// Nothing of the hook of `clone` is where a child may have its stack, and its initialisation overwrites nothing of that, nor of its
/// parent's.
#[test]
fn children_with_a_stack_right_below_their_parents_frame() {
    let program = Program::c("hostile/near_stack.c");
    TestDirectory::new("near").native(&program).run().success();
    for (name, value) in [("THR_TRACE_STACK", "8"), ("THR_TRACE_BUF", "1"), ("THR_TRACE_EVENTS", "")] {
        let test = TestDirectory::new("near");
        let output = test.traced(&program).env("THR_TRACE_EVENTS", "mutex").env(name, value).run();
        let children: usize = output.success().stdout_text().trim_end().parse().unwrap();
        if name != "THR_TRACE_EVENTS" {
            assert_eq!(test.merged().of("mutex_unlock").len(), children);
        }
    }
}

/// A child's initialisation overwrites nothing that the program has below its parent's stack, where that is on memory of the program's.
#[test]
fn children_with_a_stack_between_the_programs_data_and_their_parents_stack() {
    let program = Program::c("hostile/crowded_stack.c");
    for how in ["alternate", "coroutine", "alternate-array"] {
        TestDirectory::new("crowded").native(&program).arg(how).run().success();
        let test = TestDirectory::new("crowded");
        let output = test.traced(&program).arg(how).env("THR_TRACE_EVENTS", "mutex").run();
        assert_eq!(output.success().stdout_text(), "0\n", "children whose data was overwritten, {how}");
    }
}

/// What children of a thread store in thread-local variables its parent has, too, if its stack is shared memory. Nothing is recorded of
/// them, nor of what they make.
#[test]
fn children_of_a_thread_on_shared_memory_leave_their_parent_alone() {
    let program = Program::c("hostile/shared_stack.c");
    for how in ["function", "syscall", "clone3", "instruction"] {
        TestDirectory::new("shared-stack").native(&program).arg(how).run().success();
        for (unbuffered, is_filtered) in [(false, false), (true, false), (false, true)] {
            let test = TestDirectory::new("shared-stack");
            let run = if is_filtered {
                test.traced(Program::c("hostile/refuse.c")).arg("membarrier").arg(&program)
            } else {
                test.traced(&program)
            };
            let run = run.arg(how).env("THR_TRACE_EVENTS", "mutex").noise_expected();
            let output = run.unbuffered_if(unbuffered).run();
            let pairs: usize = output.success().stdout_text().trim_end().parse().unwrap();
            let message =
                "libthreadt: this process may share thread-local variables with its parent; nothing is recorded";
            let stderr = output.stderr_text();
            assert!(stderr.lines().count() > 10 && stderr.lines().all(|line| line == message), "{stderr}");
            let trace = test.merged();
            let counts = (trace.of("mutex_unlock").len(), trace.of("trace_lost").len());
            assert_eq!(counts, (pairs, 0), "{how} {unbuffered} {is_filtered}");
        }
    }
}

/// Code that is compiled with `-mpreferred-stack-boundary=3` calls libc so, and libc's functions do not mind.
#[test]
fn every_kind_of_call_on_a_stack_that_is_not_aligned() {
    let program = Program::c("hostile/odd_stack.c");
    TestDirectory::new("odd").native(&program).run().success();
    let ways = [
        [("THR_TRACE_DETAIL", "1"), ("THR_TRACE_STACK", "8")],
        [("THR_TRACE_RING", "64K"), ("THR_TRACE_CONTROL", "1")],
        [("THR_TRACE_BUF", "1"), ("THR_TRACE_STACK", "8")],
        [("THR_TRACE_LEVEL", "blocked"), ("THR_TRACE_STACK", "8")],
        [("THR_TRACE_EVENTS", ""), ("THR_TRACE_CONTROL", "1")],
    ];
    for way in ways {
        let test = TestDirectory::new("odd");
        let output = way.into_iter().fold(test.traced(&program), |run, (name, value)| run.env(name, value)).run();
        output.success();
        assert_eq!(output.stdout_text(), "done\n");
        if way[0].0 == "THR_TRACE_DETAIL" {
            let trace = test.merged();
            assert_eq!(trace.of("mutex_trylock").len(), 2 * 2000);
            assert_eq!(trace.of("user_mark").len(), 2);
        }
    }
}

/// A function whose compiler counts on a stack that is aligned to more than the ABI's 16 bytes (`-mpreferred-stack-boundary`), finds it so
/// where it does natively.
#[test]
fn functions_that_libc_calls_find_the_stack_at_the_same_place() {
    let program = Program::with_flags("hostile/stack_place.c", &["-O1"]);
    // The child and its parent print as they are scheduled.
    let places = |run: TestCommand| {
        let output = run.run();
        let mut lines: Vec<String> = output.success().stdout_text().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let native = places(TestDirectory::new("stack-place").native(&program));
    assert_eq!(native.len(), 13, "{native:?}");
    let ways = [
        ("THR_TRACE_DETAIL", "1"),
        ("THR_TRACE_STACK", "8"),
        ("THR_TRACE_BUF", "1"),
        ("THR_TRACE_LEVEL", "blocked"),
        ("THR_TRACE_EVENTS", ""),
    ];
    for (name, value) in ways {
        let traced = places(TestDirectory::new("stack-place").traced(&program).env(name, value));
        assert_eq!(traced, native, "{name}={value}");
    }
}

/// What docs/limits.md says that a hook needs below its caller, with the handler's own frames.
#[test]
fn a_handler_on_the_smallest_alternate_stack_that_is_documented() {
    for environment in [&[][..], &["THR_TRACE_BUF"], &["THR_TRACE_STACK"], &["THR_TRACE_BUF", "THR_TRACE_STACK"]] {
        let test = TestDirectory::new("alternate-stack");
        let run = test.traced(Program::c("hostile/alternate_stack.c")).arg("4096").env("THR_TRACE_EVENTS", "sema");
        // The linker's own lazy binding would take as much.
        let run = run.env("LD_BIND_NOW", "1");
        environment.iter().fold(run, |run, name| run.env(name, "1")).run().exited(7);
        assert_eq!(test.merged().of("sema_post").len(), 2000);
    }
}
