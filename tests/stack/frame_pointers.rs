//! Code without unwind information, between functions that have some and keep frame pointers.

use super::names_of_frames;
use crate::harness::{Program, TestDirectory};

const CUT: &str = "[could not be followed further]";

/// The names of the frames of a case's failed try, from the function that makes it to `main`.
fn frames(case: &str) -> Vec<String> {
    let test = TestDirectory::new("frame-pointers");
    let program = Program::with_flags("stack/frame_pointers.c", &["-O1", "-fno-omit-frame-pointer"]);
    test.traced(&program).arg(case).env("THR_TRACE_STACK", "32").run().success();
    let names = names_of_frames(&test);
    assert_eq!(names[0], "fail", "{names:?}");
    names
}

#[test]
fn a_frame_pointer_leads_to_the_caller() {
    assert_eq!(frames("frame"), ["fail", "frame", "inner", "outer", "main"]);
    let handler = frames("handler_frame");
    assert_eq!(handler[1], "handler_frame");
    assert!(handler.ends_with(&["raise_with", "inner", "outer", "main"].map(str::to_owned)), "{handler:?}");
}

/// The frame pointer is its caller's, and leads past that.
#[test]
fn code_that_has_left_the_frame_pointer_alone_ends_the_stack() {
    assert_eq!(frames("no_frame"), ["fail", "no_frame", CUT]);
    assert_eq!(frames("handler_no_frame"), ["fail", "handler_no_frame", CUT]);
    let interrupted = frames("interrupted");
    assert!(interrupted[1..].starts_with(&["fail_and_end".to_owned()]), "{interrupted:?}");
    assert!(interrupted.ends_with(&["interrupted", CUT].map(str::to_owned)), "{interrupted:?}");
    for case in ["generated", "generated_caller", "far"] {
        assert_eq!(frames(case), ["fail", "[jit]", CUT], "{case}");
    }
    assert_eq!(frames("calls_module"), ["fail", "no_frame", CUT]);
}

/// A call names another function than the one that has set up the frame.
#[test]
fn a_function_that_was_jumped_to_has_its_callers_caller() {
    assert_eq!(frames("jumped"), ["fail", "frame", "inner", "outer", "main"]);
}

/// The frame pointer may be any number, and the word above what it points to the address of a function. A call before that names no
/// function that has jumped to where the frame is; or it names none.
#[test]
fn an_address_behind_a_call_is_no_return_address_for_certain() {
    assert_eq!(frames("behind_abort"), ["fail", "points_to", CUT]);
    assert_eq!(frames("behind_call"), ["fail", "points_to", "ends_in_call", CUT]);
}

/// The interrupted function was missing.
#[test]
fn what_handlers_return_to_needs_no_unwind_information() {
    assert_eq!(
        frames("restorer"),
        ["fail", "fail_and_end", "restorer", "raise_with_restorer", "inner", "outer", "main"]
    );
}
