//! What another thread unmaps is near a stack, or its addresses are on it: the walk must not be the end of the program.

use super::{Stack, names_of_frames, stacks_of};
use crate::harness::{Program, TestDirectory};

/// A plugin, and a library that opens it when it is loaded.
fn plugin_and_opener() -> [Program; 2] {
    let library = |source, flags: &[&str]| Program::with_flags(source, &[&["-shared", "-fPIC", "-O2"], flags].concat());
    [library("stack/reloaded.c", &[]), library("stack/opener.c", &["-ldl"])]
}

/// The stacks of a case, which ends as it does natively.
fn stacks(case: &str) -> Vec<Stack> {
    let [plugin, opener] = plugin_and_opener();
    let opener = opener.path().to_str().unwrap();
    let flags =
        ["-O2", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-pthread", "-ldl", "-Wl,--no-as-needed"];
    let program = Program::with_flags("stack/reloads.c", &[&flags[..], &[opener]].concat());
    let test = TestDirectory::new("stack-reloads");
    let traced = test.traced(&program).arg(case).env("PLUGIN", plugin.path()).env("THR_TRACE_STACK", "32").run();
    traced.success();
    assert_eq!(traced.stdout_text(), "50000\n");
    stacks_of(&test.merged(), "mutex_trylock")
}

/// The linker has opened it after the libraries that the program needs, and does not hold it.
#[test]
fn a_library_that_a_constructor_has_opened_is_not_taken_for_one_that_stays() {
    assert_eq!(stacks("table").len(), 50_000);
}

#[test]
fn a_false_frame_in_a_closed_library_is_not_read() {
    for case in ["pointer", "filtered"] {
        let stacks = stacks(case);
        assert_eq!(stacks.len(), 50_000, "{case}");
        let unmarked = stacks.iter().filter(|stack| !stack.is_cut).count();
        assert_eq!(unmarked, 0, "{case}");
    }
}

/// The return address of the coroutine's function would be in it. It may be below the thread's own stack, with no page between them that
/// cannot be read; before it is unmapped for the first time, all of that can.
#[test]
fn memory_above_a_coroutines_stack_is_not_the_threads() {
    let program = Program::with_flags("stack/neighbours.c", &["-O1", "-pthread"]);
    for arguments in [&[][..], &["below"]] {
        let test = TestDirectory::new("stack-neighbours");
        let command = test.traced(&program).args(arguments).env("THR_TRACE_STACK", "32");
        let traced = command.env("THR_TRACE_RING", "1M").run();
        traced.success();
        assert_eq!(traced.stdout_text(), "200000\n");
        assert_eq!(names_of_frames(&test)[..2], ["fail", "coroutine"], "{arguments:?}");
    }
}

/// What is behind its outermost frame looks like one of the plugin's, to which unwind information has led.
#[test]
fn a_coroutine_within_the_threads_stack_does_not_hold_a_closed_library() {
    let [plugin, opener] = plugin_and_opener();
    let flags = ["-O1", "-pthread", "-ldl", "-Wl,--no-as-needed", opener.path().to_str().unwrap()];
    let program = Program::with_flags("stack/own_coroutine.c", &flags);
    let test = TestDirectory::new("stack-own-coroutine");
    let command = test.traced(&program).env("PLUGIN", plugin.path()).env("THR_TRACE_STACK", "32");
    let traced = command.env("THR_TRACE_RING", "1M").run();
    traced.success();
    assert_eq!(traced.stdout_text(), "100000\n");
    assert_eq!(names_of_frames(&test)[..2], ["fail", "coroutine"]);
}

/// The word is no return address, whatever is there; to read it the kernel would wait for the thread that reads it.
#[test]
fn a_page_fault_that_a_thread_serves_is_not_made_by_its_walk() {
    let flags = ["-O2", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-pthread"];
    let program = Program::with_flags("stack/fault_handler.c", &flags);
    let test = TestDirectory::new("stack-fault-handler");
    let traced = test.traced(&program).env("THR_TRACE_STACK", "32").run();
    traced.success();
    if traced.stdout_text() == "none\n" {
        eprintln!("not tested: the kernel gives no userfaultfd");
        return;
    }
    assert_eq!(traced.stdout_text(), "16 16\n");
    assert_eq!(stacks_of(&test.merged(), "mutex_trylock").len(), 16);
}
