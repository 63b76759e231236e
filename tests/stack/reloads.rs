//! Addresses of a library that another thread closes are on a stack, and no frame of it: the walk must not read that library.

use super::{Stack, stacks_of};
use crate::harness::{Program, TestDirectory};

/// The stacks of a case, which ends as it does natively.
fn stacks(case: &str) -> Vec<Stack> {
    let library = |source, flags: &[&str]| Program::with_flags(source, &[&["-shared", "-fPIC", "-O2"], flags].concat());
    let plugin = library("stack/reloaded.c", &[]);
    let opener = library("stack/opener.c", &["-ldl"]);
    let opener = opener.path().to_str().unwrap();
    let flags =
        ["-O2", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-pthread", "-ldl", "-Wl,--no-as-needed"];
    let program = Program::with_flags("stack/reloads.c", &[&flags[..], &[opener]].concat());
    let test = TestDirectory::new("stack-reloads");
    let traced = test.traced(&program).arg(case).env("PLUGIN", plugin.path()).env("THR_TRACE_STACK", "32").run();
    traced.success();
    assert_eq!(traced.stdout_text(), "20000\n");
    stacks_of(&test.merged(), "mutex_trylock")
}

/// The linker has opened it after the libraries that the program needs, and does not hold it.
#[test]
fn a_library_that_a_constructor_has_opened_is_not_taken_for_one_that_stays() {
    assert_eq!(stacks("table").len(), 20_000);
}
