//! What the program finds around it: descriptors, other preloaded libraries, sanitizers; and programs that matter.

use super::super::harness::{Program, Trial};
use super::super::hostile::DONE;
use super::{script, started};

#[test]
fn descriptors_are_those_that_a_shell_would_give() {
    let trial = Trial::new("run-descriptors");
    for redirection in ["", "<&-", "5</dev/null"] {
        let [native, run] = ["", "$run"].map(|prefix| {
            let output = script(&trial, &format!("{prefix} sh -c 'ls /proc/$$/fd; :' {redirection}")).run();
            output.success();
            output.stdout_text().to_owned()
        });
        assert_eq!(native, run, "{redirection}");
    }
}

#[test]
fn the_users_own_preload_stays() {
    let trial = Trial::new("run-preload");
    let run = started(&trial).args(["sh", "-c", "echo $LD_PRELOAD"]).env("LD_PRELOAD", "libpthread.so.0 libdl.so.2");
    let output = run.run();
    output.success();
    let expected = format!("{}:libpthread.so.0:libdl.so.2\n", super::super::harness::library().display());
    assert_eq!(output.stdout_text(), expected);
}

#[test]
fn address_sanitizer_needs_no_setting() {
    let trial = Trial::new("run-asan");
    let program = Program::with_flags("hostile/steps.c", &["-fsanitize=address"]);
    started(&trial).arg(&program).args(["pairs", "100", "threads", "2", "1000"]).run().exited(DONE);
    assert_eq!(trial.trace().of("thr_create").len(), 2 * 2);
}

#[test]
fn sort_sorts_and_is_recorded() {
    let trial = Trial::new("run-sort");
    let sort = "seq 300000 -1 1 >numbers; $run sort -n --parallel=2 numbers | sort -n -c";
    script(&trial, sort).run().success();
    let trace = trial.merged();
    assert!(!trace.of("thr_create").is_empty() && !trace.of("thr_exit").is_empty());
}
