//! Containers, where every program may have the process ID 1. Only root may make PID namespaces: elsewhere these tests
//! print a message and test nothing.

use std::fs;
use std::path::Path;

use super::super::harness::{Program, TestCommand, TestDirectory, Trace};
use super::names;

/// A command in a PID namespace of its own, if such can be made here. The library is preloaded within only.
pub fn contained<'a>(test: &'a TestDirectory, program: &Program) -> Option<TestCommand<'a>> {
    contained_with(test, program, &test.trace_directory())
}

/// The same, with a trace directory of its own.
fn contained_with<'a>(test: &'a TestDirectory, program: &Program, directory: &Path) -> Option<TestCommand<'a>> {
    let unshare = |run: TestCommand<'a>| run.args(["--pid", "--fork", "--kill-child"]);
    if !unshare(test.native("unshare")).arg("true").run().status.success() {
        println!("no PID namespaces here");
        return None;
    }
    let preload = format!("LD_PRELOAD={}", super::super::harness::library().display());
    let directory = format!("THR_TRACE_DIR={}", directory.display());
    Some(unshare(test.native("unshare")).args(["env", &preload, &directory]).arg(program))
}

/// The records of the program `environment/modest.c` from beginning to end.
#[track_caller]
fn assert_complete(trace: &Trace) {
    assert_eq!((super::pairs(trace, 1), trace.of("thr_join").len(), trace.of("proc_exit").len()), (4, 2, 1));
}

/// The files of a process in a user namespace change their owner when the namespace's map is written: nobody has removed them.
#[test]
fn nothing_is_said_of_files_in_a_new_user_namespace() {
    let test = TestDirectory::new("user-map");
    if !test.native("unshare").args(["-Urpf", "true"]).run().status.success() {
        println!("no user namespaces here");
        return;
    }
    let program = Program::c("environment/modest.c");
    test.traced("unshare").args(["-Urpf"]).arg(&program).run().exited(9);
    let trace = test.merged();
    assert_eq!((super::pairs(&trace, 1), trace.of("thr_join").len()), (4, 2));
}

/// The first process of a namespace makes one by vfork in a namespace within, where that is the first, too.
#[test]
fn a_vfork_child_with_the_same_id_is_not_its_parent() {
    let test = TestDirectory::new("same-id");
    let Some(run) = contained(&test, &Program::c("lifecycle/vfork_as_first.c")) else { return };
    let output = run.run();
    if !output.is_permitted("to make a PID namespace") {
        return;
    }
    output.exited(7);
    let trace = super::clean(&test);
    assert_eq!((super::pairs(&trace, 1), trace.of("proc_exit").len()), (20, 1));
    assert!(trace.records.last().unwrap().is("proc_exit"));
}

#[test]
fn three_containers_with_the_same_process_id() {
    let test = TestDirectory::new("again");
    let program = Program::c("environment/modest.c");
    for _ in 0..3 {
        let Some(run) = contained(&test, &program) else { return };
        run.run().exited(9);
    }
    assert_complete(&super::clean(&test));
    // The traces of both earlier processes can still be read: their files were renamed by start time.
    let renamed: Vec<String> =
        names(&test.trace_directory()).into_iter().filter(|name| name.starts_with("old.")).collect();
    assert_eq!(renamed.len(), 2 * 3, "two tr files and a trinfo each: {renamed:?}");
    let mut starts: Vec<&str> = renamed.iter().map(|name| name.split('.').nth(1).unwrap()).collect();
    starts.dedup();
    assert_eq!(starts.len(), 2, "{renamed:?}");
    for start in starts {
        let own = renamed.iter().filter(|name| name.starts_with(&format!("old.{start}.tr.")));
        let files = own.map(|name| test.trace_directory().join(name));
        let output = test.native(super::super::harness::trace_cat()).args(files).run();
        output.success();
        assert_complete(&Trace::parse("trace-cat", &output.stdout));
    }
    // Each run can be read without knowing names.
    let read = |arguments: &[&str]| {
        let output = test.native(super::super::harness::trace_cat()).args(arguments).arg(test.trace_directory()).run();
        output.success();
        output
    };
    let all = read(&["--all-runs"]).stdout_text().to_owned();
    let each = ["1", "2", "3"].map(|number| read(&["--run", number]));
    for run in &each {
        assert_complete(&Trace::parse("trace-cat", &run.stdout));
    }
    assert_eq!(each.map(|run| run.stdout_text().to_owned()).concat(), all);
    let merged = read(&[]);
    let message = merged.stderr_text();
    assert!(message.contains(": 3 runs; --last is ") && message.contains(": 4 renamed files (old.*) are not read"));
    assert_eq!(merged.stdout_text(), read(&["--last"]).stdout_text());
    let counted = read(&["--stat", "--all-runs"]);
    assert!(
        counted.stderr_text().contains("stand for 2 more processes; --run counts each "),
        "{}",
        counted.stderr_text()
    );
    let stat = read(&["--stat"]);
    let lines: Vec<&str> = stat.stdout_text().lines().skip(2).take(4).collect();
    assert_eq!(lines[0], "runs       3");
    for (number, line) in lines[1..].iter().enumerate() {
        assert!(line.starts_with(&format!("  --run {}  from ", number + 1)) && line.contains("modest"), "{line}");
    }
}

/// They have one host name. The kernel may give the second one's namespace the number of the first one's.
#[test]
fn containers_with_a_directory_each_are_told_apart() {
    let test = TestDirectory::new("apart");
    let program = Program::c("environment/modest.c");
    let directories = ["app", "sidecar"].map(|name| test.directory().join(name));
    for directory in &directories {
        fs::create_dir(directory).unwrap();
        let Some(run) = contained_with(&test, &program, directory) else { return };
        run.run().exited(9);
    }
    let output = test.native(super::super::harness::trace_cat()).args(&directories).run();
    let message = "they have one clock; 1 process is shown with another ID";
    assert!(output.success().stderr_text().contains(message), "{}", output.stderr_text());
    let of_pid = |pid: &str| {
        let lines = output.stdout_text().lines().filter(|line| line[29..].starts_with(pid));
        Trace::parse("trace-cat", lines.map(|line| format!("{line}\n")).collect::<String>().as_bytes())
    };
    let [app, sidecar] = ["0000001:", "9999999:"].map(of_pid);
    assert_complete(&app);
    assert_eq!(sidecar.records.len(), app.records.len());
}

#[test]
fn a_living_process_keeps_its_names() {
    let test = TestDirectory::new("alive");
    let program = Program::c("environment/modest.c");
    let Some(run) = contained(&test, &program) else { return };
    let mut first = run.arg("pause").spawn();
    first.wait_for("paused");
    let second = contained(&test, &program).expect("as before").noise_expected().run();
    second.exited(9);
    assert_eq!(second.noise().len(), 1, "{}", second.stderr_text());
    let directory = names(&test.trace_directory()).into_iter().find(|name| name.starts_with("ns"));
    let directory = test.trace_directory().join(directory.expect("a directory for the other namespace"));
    assert_complete(&Trace::read(&directory));
    // Killed, it leaves its six records in its buffer. unshare ends when its child is gone.
    let children = format!("/proc/{0}/task/{0}/children", first.pid());
    let child = fs::read_to_string(children).unwrap();
    test.native("kill").args(["-KILL", child.trim()]).run().success();
    first.wait();
    // The merge has both processes: the second one's trace is complete.
    assert_eq!(test.merged().records.iter().filter(|record| record.name().starts_with("mutex")).count(), 6 + 12);
}
