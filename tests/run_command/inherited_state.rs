//! What the program finds around it: descriptors, other preloaded libraries, sanitizers; and programs that matter.

use super::super::harness::{Program, TestDirectory};
use super::super::hostile::DONE;
use super::{script, started};

#[test]
fn descriptors_are_those_that_a_shell_would_give() {
    let test = TestDirectory::new("run-descriptors");
    for redirection in ["", "<&-", "5</dev/null"] {
        let [native, run] = ["", "$run"].map(|prefix| {
            let output = script(&test, &format!("{prefix} sh -c 'ls /proc/$$/fd; :' {redirection}")).run();
            output.success();
            output.stdout_text().to_owned()
        });
        assert_eq!(native, run, "{redirection}");
    }
}

#[test]
fn the_users_own_preload_stays() {
    let test = TestDirectory::new("run-preload");
    let run = started(&test).args(["sh", "-c", "echo $LD_PRELOAD"]).env("LD_PRELOAD", "libpthread.so.0 libdl.so.2");
    let output = run.run();
    output.success();
    let expected = format!("{}:libpthread.so.0:libdl.so.2\n", super::super::harness::library().display());
    assert_eq!(output.stdout_text(), expected);
}

#[test]
fn address_sanitizer_needs_no_setting() {
    let test = TestDirectory::new("run-asan");
    let program = Program::with_flags("hostile/steps.c", &["-fsanitize=address"]);
    started(&test).arg(&program).args(["pairs", "100", "threads", "2", "1000"]).run().exited(DONE);
    assert_eq!(test.trace().of("thr_create").len(), 2 * 2);
}

#[test]
fn sort_sorts_and_is_recorded() {
    let test = TestDirectory::new("run-sort");
    let sort = "seq 300000 -1 1 >numbers; $run sort -n --parallel=2 numbers | sort -n -c";
    script(&test, sort).run().success();
    let trace = test.merged();
    assert!(!trace.of("thr_create").is_empty() && !trace.of("thr_exit").is_empty());
}
