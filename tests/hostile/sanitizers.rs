//! Programs built with AddressSanitizer or ThreadSanitizer, whose runtimes interpose the same functions.

use super::super::harness::{Program, Run, Trial};
use super::{DONE, assert_complete, traced_mutexes};

const ARGUMENTS: [&str; 5] = ["pairs", "100", "threads", "2", "1000"];

/// AddressSanitizer's runtime wants to be the first library and refuses to run where it is not: the one setting that it
/// needs is in the README.
#[test]
fn address_sanitizer_needs_one_setting() {
    let program = Program::with_flags("hostile/steps.c", &["-fsanitize=address"]);
    let trial = Trial::new("asan");
    trial.native(&program).args(ARGUMENTS).run().exited(DONE);
    let output = traced_mutexes(&trial, &program).args(ARGUMENTS).run();
    output.exited(1);
    assert!(output.stderr_text().contains("ASan runtime does not come first"), "{}", output.stderr_text());
    recorded(&trial, traced_mutexes(&trial, &program).env("ASAN_OPTIONS", "verify_asan_link_order=0"));
}

#[test]
fn thread_sanitizer_works() {
    let program = Program::with_flags("hostile/steps.c", &["-fsanitize=thread"]);
    let trial = Trial::new("tsan");
    trial.native(&program).args(ARGUMENTS).run().exited(DONE);
    recorded(&trial, traced_mutexes(&trial, &program));
}

/// The program is recorded and has nothing to complain of. The runtime's own locks may be there, too.
#[track_caller]
fn recorded(trial: &Trial, run: Run<'_>) {
    let output = run.args(ARGUMENTS).run();
    output.exited(DONE);
    assert_eq!(output.stderr_text(), "");
    assert_complete(trial, 3 * 2100);
}
