//! Programs built with AddressSanitizer or ThreadSanitizer, whose runtimes interpose the same functions.

use super::super::harness::{Program, TestCommand, TestDirectory};
use super::{DONE, assert_complete, traced_mutexes};

const ARGUMENTS: [&str; 5] = ["pairs", "100", "threads", "2", "1000"];

/// AddressSanitizer's runtime wants to be the first library and refuses to run where it is not: the one setting that it
/// needs is in docs/limits.md.
#[test]
fn address_sanitizer_needs_one_setting() {
    let program = Program::with_flags("hostile/steps.c", &["-fsanitize=address"]);
    let test = TestDirectory::new("asan");
    test.native(&program).args(ARGUMENTS).run().exited(DONE);
    let output = traced_mutexes(&test, &program).args(ARGUMENTS).run();
    output.exited(1);
    assert!(output.stderr_text().contains("ASan runtime does not come first"), "{}", output.stderr_text());
    recorded(&test, traced_mutexes(&test, &program).env("ASAN_OPTIONS", "verify_asan_link_order=0"));
}

#[test]
fn thread_sanitizer_works() {
    let program = Program::with_flags("hostile/steps.c", &["-fsanitize=thread"]);
    let test = TestDirectory::new("tsan");
    test.native(&program).args(ARGUMENTS).run().exited(DONE);
    recorded(&test, traced_mutexes(&test, &program));
}

/// The program is recorded and has nothing to complain of. The runtime's own locks may be there, too.
#[track_caller]
fn recorded(test: &TestDirectory, run: TestCommand<'_>) {
    let output = run.args(ARGUMENTS).run();
    output.exited(DONE);
    assert_eq!(output.stderr_text(), "");
    assert_complete(test, 3 * 2100);
}
