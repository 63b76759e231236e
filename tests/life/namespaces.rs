//! Containers, where every program may have the process ID 1. Only root may make PID namespaces: elsewhere these tests
//! say so and have nothing to test.

use std::fs;

use super::super::harness::{Program, Run, Trace, Trial};
use super::names;

/// A command in a PID namespace of its own, if such can be made here. The library is preloaded within only.
fn contained<'a>(trial: &'a Trial, program: &Program) -> Option<Run<'a>> {
    let unshare = |run: Run<'a>| run.args(["--pid", "--fork", "--kill-child"]);
    if !unshare(trial.native("unshare")).arg("true").run().status.success() {
        println!("no PID namespaces here");
        return None;
    }
    let preload = format!("LD_PRELOAD={}", super::super::harness::library().display());
    let directory = format!("THR_TRACE_DIR={}", trial.trace_directory().display());
    Some(unshare(trial.native("unshare")).args(["env", &preload, &directory]).arg(program))
}

/// The records of the program `environment/modest.c` from beginning to end.
#[track_caller]
fn assert_whole(trace: &Trace) {
    assert_eq!((super::pairs(trace, 1), trace.of("thr_join").len(), trace.of("proc_exit").len()), (4, 2, 1));
}

#[test]
fn one_number_again_and_again() {
    let trial = Trial::new("again");
    let program = Program::c("environment/modest.c");
    for _ in 0..3 {
        let Some(run) = contained(&trial, &program) else { return };
        run.run().exited(9);
    }
    assert_whole(&super::clean(&trial));
    // Both that came before can still be read: they were set aside, by start time.
    let aside: Vec<String> =
        names(&trial.trace_directory()).into_iter().filter(|name| name.starts_with("old.")).collect();
    assert_eq!(aside.len(), 2 * 3, "two tr files and a trinfo each: {aside:?}");
    let mut starts: Vec<&str> = aside.iter().map(|name| name.split('.').nth(1).unwrap()).collect();
    starts.dedup();
    assert_eq!(starts.len(), 2, "{aside:?}");
    for start in starts {
        let own = aside.iter().filter(|name| name.starts_with(&format!("old.{start}.tr.")));
        let files = own.map(|name| trial.trace_directory().join(name));
        let output = trial.native(super::super::harness::trace_cat()).args(files).run();
        output.success();
        assert_whole(&Trace::parse("trace-cat", &output.stdout));
    }
}

#[test]
fn a_living_process_keeps_its_names() {
    let trial = Trial::new("alive");
    let program = Program::c("environment/modest.c");
    let Some(run) = contained(&trial, &program) else { return };
    let mut first = run.arg("pause").spawn();
    first.wait_for("paused");
    let second = contained(&trial, &program).expect("as before").noise_expected().run();
    second.exited(9);
    assert_eq!(second.noise().len(), 1, "{}", second.stderr_text());
    let directory = names(&trial.trace_directory()).into_iter().find(|name| name.starts_with("ns"));
    let directory = trial.trace_directory().join(directory.expect("a directory for the other namespace"));
    assert_whole(&Trace::read(&directory));
    // Killed, it leaves its six records in its buffer. unshare ends when its child is gone.
    let children = format!("/proc/{0}/task/{0}/children", first.pid());
    let child = fs::read_to_string(children).unwrap();
    trial.native("kill").args(["-KILL", child.trim()]).run().success();
    first.wait();
    assert_eq!(trial.merged().records.iter().filter(|record| record.name().starts_with("mutex")).count(), 6);
}
