//! Children, other programs, other users, and real programs.

use std::fs;

use super::{
    assert_all_or_none, kinds_of_files, numbered, set, so_far, status, status_line, stop, wait_for_changes, wait_until,
    words,
};
use crate::harness::{Program, TestDirectory, trace_cat};
use crate::hostile::{open_to_all, privileged};
use crate::lifecycle::namespaces::contained;

/// The process IDs that `trace-cat status` lists.
fn listed(test: &TestDirectory) -> Vec<u32> {
    let output = status(test, test.trace_directory().to_str().unwrap());
    let text = output.success().stdout_text();
    text.lines().skip(1).map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_child_goes_on_as_its_parent_was_changed_and_is_changed_alone() {
    let test = TestDirectory::new("control-fork");
    // A shell forks when it is told to, and the child executes a program.
    let script = "while [ ! -e fork ]; do :; done; (exec \"$1\" 1 50000); wait";
    let program = Program::c("control/numbered.c");
    let run = test.traced("/bin/sh").args(["-c", script, "sh"]).arg(program.path());
    let shell = run.env("THR_TRACE_CONTROL", "1").env("THR_TRACE_EVENTS", "").spawn();
    wait_until(|| !listed(&test).is_empty());
    set(&test, shell.pid(), "-e thr_setspecific");
    fs::write(test.directory().join("fork"), "").unwrap();
    let traced = || so_far(&test);
    wait_until(|| !traced().of("thr_setspecific").is_empty());
    let child = traced().of("thr_setspecific")[0].fields.pid;
    assert_ne!(child, shell.pid());
    set(&test, child, "--pause");
    stop(&test, shell);
    let trace = test.trace();
    assert!(assert_all_or_none(&trace).0 >= 2);
    assert!(trace.of("trace_events").iter().all(|record| record.fields.pid == child), "{}", trace.text());
}

#[test]
fn a_process_of_another_namespace_is_listed_by_the_number_that_set_takes() {
    let test = TestDirectory::new("control-namespace");
    let Some(run) = contained(&test, &Program::c("control/numbered.c")) else { return };
    let mut program = run.args(["2", "50000"]).env("THR_TRACE_EVENTS", "thr_setspecific").spawn();
    program.wait_for("ready");
    let listed = listed(&test);
    assert!(matches!(listed[..], [pid] if pid != 1), "{listed:?}");
    set(&test, listed[0], "--pause");
    assert_eq!(status_line(&test)[3], "yes");
    stop(&test, program);
}

#[test]
fn all_processes_of_a_directory_are_changed_together() {
    let test = TestDirectory::new("control-directory");
    let mut program = numbered(&test, "2 50000 fork").env("THR_TRACE_EVENTS", "thr_setspecific").spawn();
    program.wait_for("ready");
    program.wait_for("child");
    wait_until(|| listed(&test).len() == 2);
    let directory = test.trace_directory();
    test.native(trace_cat()).args(["set", "--pause"]).arg(&directory).run().success();
    wait_for_changes(&test, 3);
    test.native(trace_cat()).args(["set", "--resume"]).arg(&directory).run().success();
    stop(&test, program);
    let (changes, calls) = assert_all_or_none(&test.trace());
    assert!(changes >= 6 && calls > 0, "{changes} changes, {calls} calls");
}

#[test]
fn python_is_switched_on_and_off() {
    let test = TestDirectory::new("control-python");
    let line = "import os, threading, time\n\
         def work():\n    while not os.path.exists('stop'):\n        with lock: time.sleep(0.0001)\n\
         lock = threading.Lock()\n\
         threads = [threading.Thread(target=work) for _ in range(6)]\n\
         [thread.start() for thread in threads]\nprint('ready', flush=True)\n[thread.join() for thread in threads]\nprint('done')";
    let run = test.traced("/usr/bin/python3").args(["-c", line]).env("THR_TRACE_CONTROL", "1");
    let mut program = run.env("THR_TRACE_EVENTS", "").spawn();
    program.wait_for("ready");
    assert_eq!(kinds_of_files(&test), ["trbuf", "trclock", "trinfo"]);
    for _ in 0..20 {
        for options in ["-e all", "-e sema:cond:mutex", "--level blocked", "--pause", "--resume --level all", "-e ''"] {
            let options = options.replace("-e all", "-e -thr_self");
            set(&test, program.pid(), &options);
        }
    }
    fs::write(test.directory().join("stop"), "").unwrap();
    let output = program.wait();
    assert!(output.success().stdout_text().ends_with("done\n"));
    let trace = test.merged();
    assert!(trace.of("trace_events").len() > 20, "{}", trace.records.len());
}

/// From an exec until the first record of the next program nobody has the trbuf mapped.
#[test]
fn a_process_that_executes_another_program_is_not_called_unrecorded() {
    let test = TestDirectory::new("control-executes");
    let run = test.traced(Program::c("control/executes.c")).env("THR_TRACE_EVENTS", "thr_setspecific");
    let mut program = run.spawn();
    program.wait_for("second");
    let pid = program.pid().to_string();
    let output = test.native(trace_cat()).args(["set", "--pause", &pid]).noise_expected().run();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr_text().ends_with("executes another program, which has recorded nothing so far\n"),
        "{output:?}"
    );
    let recorded = so_far(&test).records.len();
    fs::write(test.directory().join("go"), "").unwrap();
    wait_until(|| so_far(&test).records.len() > recorded);
    set(&test, program.pid(), "--pause");
    stop(&test, program);
    assert!(!test.trace().of("trace_events").is_empty());
}

/// A shell that is started so makes a process a command.
#[test]
fn processes_that_recorded_nothing_leave_nothing() {
    let shells = [
        ("true; (:); /bin/true; exec /bin/true", ""),
        ("/bin/true; exec /bin/sh -c 'exec /bin/true'", ""),
        // The program before the exec has recorded something.
        ("/bin/true; exec /usr/bin/python3 -c 'import os; os.execv(\"/bin/true\", [\"true\"])'", "sema:mutex"),
    ];
    for (script, events) in shells {
        let test = TestDirectory::new("control-nothing");
        let run = test.traced("/bin/sh").args(["-c", script]).env("THR_TRACE_CONTROL", "1");
        run.env("THR_TRACE_EVENTS", events).run().success();
        let kept: &[&str] = if events.is_empty() { &["trclock"] } else { &["tr", "trclock", "trinfo"] };
        assert_eq!(kinds_of_files(&test), kept, "{script}");
        let files = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().file_name().into_string());
        let info = files.filter(|name| name.as_ref().unwrap().starts_with("trinfo")).count();
        assert_eq!(info, usize::from(!events.is_empty()), "{script}");
    }
}

#[test]
fn only_the_user_and_root_can() {
    let test = TestDirectory::new("control-user");
    if !privileged(&test) {
        return;
    }
    open_to_all(&test);
    let mut program = numbered(&test, "1 50000").env("THR_TRACE_EVENTS", "thr_setspecific").spawn();
    program.wait_for("ready");
    let directory = test.trace_directory();
    wait_until(|| !listed(&test).is_empty());
    // Where another user cannot even execute trace-cat, nothing is changed either.
    let copy = test.directory().join("trace-cat");
    test.install(&trace_cat(), &copy);
    for target in [program.pid().to_string(), directory.display().to_string()] {
        let run = test.native("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
        let output = run.args(words("set --pause")).arg(&target).run();
        output.exited(1);
        assert!(output.stderr_text().contains("ermission denied"), "{}", output.stderr_text());
    }
    stop(&test, program);
    assert_eq!(assert_all_or_none(&test.trace()).0, 0);
}
