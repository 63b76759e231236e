//! Stacks of a handler that runs because the program has done something wrong.

use super::names_of_frames;
use crate::harness::{Program, TestDirectory};

/// The names of the frames that a crash handler has interrupted, as trace-cat shows them, from the innermost one to `main`; in
/// brackets what is none. They are the same on an alternate signal stack.
fn interrupted_frames(case: &str) -> Vec<String> {
    let mut frames = Vec::new();
    for (flag, stack) in
        [("-fomit-frame-pointer", None), ("-fno-omit-frame-pointer", None), ("-fomit-frame-pointer", Some("alternate"))]
    {
        let test = TestDirectory::new("faults");
        let program = Program::with_flags("stack/faults.c", &["-O1", flag]);
        test.traced(&program).arg(case).args(stack).env("THR_TRACE_STACK", "16").run().success();
        let names = names_of_frames(&test);
        assert_eq!(names[0], "handle", "{names:?}");
        // Behind the handler is the code by which it returns to the kernel.
        frames.push(names[2..].to_vec());
    }
    assert!(frames.iter().all(|names| *names == frames[0]), "{frames:#?}");
    frames[0].clone()
}

/// The byte before that instruction belongs to another function.
#[test]
fn a_function_whose_first_instruction_faults_has_its_name() {
    assert_eq!(interrupted_frames("first"), ["first_faults", "call_first_faults", "main"]);
}

/// The next frame is found by the restored register.
#[test]
fn a_function_that_has_restored_the_frame_pointer_has_its_callers() {
    assert_eq!(interrupted_frames("epilogue"), ["epilogue_faults", "call_epilogue_faults", "main"]);
}

#[test]
fn a_function_that_keeps_its_callers_stack_pointer_in_memory_has_its_callers() {
    assert_eq!(interrupted_frames("kept"), ["kept_faults", "call_kept_faults", "main"]);
}

/// There is no frame at the address 0, nor behind all others. Elsewhere it has no name.
#[test]
fn who_has_called_what_is_no_code_is_in_the_stack() {
    assert_eq!(interrupted_frames("null"), ["call_pointer", "main"]);
    assert_eq!(interrupted_frames("ones"), ["call_pointer", "main"]);
    assert_eq!(interrupted_frames("wild"), ["[unmapped]", "call_pointer", "main"]);
    let in_handler = interrupted_frames("handler");
    assert_eq!(in_handler.first().map(String::as_str), Some("[unmapped]"));
    assert!(in_handler.ends_with(&["raise_other".to_owned(), "main".to_owned()]), "{in_handler:?}");
}

/// Nobody knows who that was.
#[test]
fn a_function_that_has_returned_to_no_code_ends_the_stack() {
    assert_eq!(interrupted_frames("returned"), ["[could not be followed further]"]);
}
