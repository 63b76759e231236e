//! Handlers: shared objects that get the records.

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::harness::{Program, TestDirectory, library, repository, trace_cat};

const SHARED: [&str; 2] = ["-shared", "-fPIC"];

/// One of the examples, compiled.
fn example(test: &TestDirectory, name: &str) -> String {
    let source = repository().join(format!("threadt/examples/{name}.c"));
    let output = test.directory().join(format!("{name}.so"));
    let include = format!("-I{}", repository().join("threadt/include").display());
    let gcc = test.native("gcc").args(["-O2", "-Wall", "-Wextra", "-Werror", &include]).args(SHARED);
    gcc.arg("-o").arg(&output).arg(source).run().success();
    output.to_str().unwrap().to_owned()
}

fn observer(flag: &str) -> Program {
    Program::with_flags("handler/observer.c", &[SHARED[0], SHARED[1], "-D_GNU_SOURCE", flag])
}

/// `LD_PRELOAD` with the library and the handler.
fn preload(handler: &Program) -> String {
    format!("{}:{}", library().display(), handler.path().display())
}

/// What the program and the handler print, sorted, without process IDs and addresses.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with("0x"))
        .map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest).to_owned())
        .collect();
    lines.sort();
    lines
}

#[test]
fn a_handler_gets_each_record_of_each_process_instead_of_the_trace_or_beside_it() {
    let handler = observer("-DNORMAL");
    for (parameters, files) in [("0 instead:x", false), ("1", true)] {
        let test = TestDirectory::new("handler");
        let run = test.traced(Program::c("handler/program.c")).env("LD_PRELOAD", preload(&handler));
        let run = run.env("THR_TRACE_EVENTS", "mutex:process");
        let output = run.env("THR_TRACE_HANDLER", format!("{}:{parameters}", handler.path().display())).run();
        let expected = [
            format!("init {parameters}"),
            format!("init {parameters}"),
            "locks 200 unlocks 200 begins 0 wrong 0".to_owned(),
            "locks 5 unlocks 5 begins 1 wrong 0".to_owned(),
        ];
        assert_eq!(lines(output.success().stdout_text()), expected);
        let trace = test.trace();
        assert_eq!(trace.of("mutex_lock").len(), if files { 2 * 205 } else { 0 });
        assert_eq!(trace.of("proc_begin").len(), usize::from(files));
        let names = std::fs::read_dir(test.trace_directory()).unwrap().count();
        assert_eq!(names > 0, files, "{names} files");
    }
}

/// What each thread follows reaches a handler that has the records for itself, too, though its threads have no buffers.
#[test]
fn a_handler_gets_the_changes_that_threads_follow() {
    let handler = Program::with_flags("handler/changes.c", &[SHARED[0], SHARED[1]]);
    let changes = ["0", "1"].map(|parameters| {
        let test = TestDirectory::new("handler-changes");
        let run = test.traced(Program::c("control/numbered.c")).args(["2", "50000"]).env("THR_TRACE_CONTROL", "1");
        let run = run.env("LD_PRELOAD", preload(&handler)).env("THR_TRACE_EVENTS", "thread");
        let mut program = run.env("THR_TRACE_HANDLER", format!("{}:{parameters}", handler.path().display())).spawn();
        program.wait_for("ready");
        let set = |option: &str, pid: u32| {
            test.native(trace_cat()).args(["set", option, &pid.to_string()]).run().success();
        };
        set("--pause", program.pid());
        program.wait_for("change 1\nchange 1\n");
        set("--resume", program.pid());
        std::fs::write(test.directory().join("stop"), "").unwrap();
        let output = program.wait();
        let text = output.success().stdout_text();
        let mut changes: Vec<String> =
            text.lines().filter(|line| line.starts_with("change")).map(str::to_owned).collect();
        changes.sort();
        changes
    });
    // The main thread makes no call while all is paused.
    assert_eq!(changes[0], ["change 0", "change 0", "change 0", "change 1", "change 1"]);
    assert_eq!(changes[0], changes[1]);
}

/// The kernel gives numbers of threads that have ended to others.
#[test]
fn threads_with_the_number_of_an_earlier_one_report_the_changes_that_they_follow() {
    let handler = Program::with_flags("handler/changes.c", &[SHARED[0], SHARED[1]]);
    let program = Program::c("handler/same_numbers.c");
    let script = "echo 900 >/proc/sys/kernel/ns_last_pid || exit 77; \
                  LD_PRELOAD=\"$preload\" \"$1\" >output & program=$!; \
                  until grep -q ready output; do sleep 0.01; done; \
                  \"$2\" set --stack 8 \"$program\" && : >changed; \
                  wait \"$program\"; status=$?; cat output; exit $status";
    for parameters in ["0", "1"] {
        let test = TestDirectory::new("handler-same-numbers");
        let run = test.native("unshare").args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script]);
        let run = run.arg("sh").arg(&program).arg(trace_cat()).current_dir(test.directory());
        let run = run.env("preload", preload(&handler)).env("THR_TRACE_DIR", test.trace_directory());
        let run = run.env("THR_TRACE_EVENTS", "mutex").env("THR_TRACE_CONTROL", "1").noise_expected();
        let output = run.env("THR_TRACE_HANDLER", format!("{}:{parameters}", handler.path().display())).run();
        if !output.is_permitted("to choose process IDs") {
            return;
        }
        if output.stderr_text().contains("unshare") {
            return println!("skipped: no PID namespace here: {}", output.stderr_text());
        }
        let text = output.success().stdout_text();
        let same: u32 = text.lines().find_map(|line| line.strip_prefix("same ")).unwrap().parse().unwrap();
        assert!(same > 1, "{text}");
        // The main thread, the others, and the child.
        assert_eq!(text.lines().filter(|line| line.starts_with("change ")).count(), 42, "{text}");
    }
}

/// A handler that cannot be used is reported once, and the records go to the trace.
#[test]
fn a_handler_that_cannot_be_used_is_reported_and_the_trace_is_written() {
    for (flag, preloaded, parameters, message) in [
        ("-DNORMAL", false, "0", "' is not preloaded behind libthreadt.so, or is no handler; records go to the trace"),
        (
            "-DNO_HANDLER",
            true,
            "0",
            "' is not preloaded behind libthreadt.so, or is no handler; records go to the trace",
        ),
        ("-DOTHER_VERSION", true, "0", "' is for another version of libthreadt; records go to the trace"),
        ("-DNORMAL", true, "-1", "' does not want any records; records go to the trace"),
    ] {
        let (test, handler) = (TestDirectory::new("handler-refused"), observer(flag));
        let run = test.traced(Program::c("handler/program.c")).noise_expected();
        let run = if preloaded { run.env("LD_PRELOAD", preload(&handler)) } else { run };
        let output = run.env("THR_TRACE_HANDLER", format!("{}:{parameters}", handler.path().display())).run();
        let text = output.success().stderr_text();
        assert!(text.starts_with("libthreadt: THR_TRACE_HANDLER: '") && text.trim_end().ends_with(message), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(test.trace().of("mutex_lock").len(), 2 * 205);
    }
}

#[test]
fn the_example_counts_calls_by_object() {
    let test = TestDirectory::new("handler-counts");
    let handler = example(&test, "count_objects");
    let run = test.native(trace_cat()).args(["run", "--handler", &handler, "-e", "mutex", "-d"]);
    let output = run.arg(test.trace_directory()).arg(Program::c("handler/program.c")).noise_expected().run();
    let lock = output.success().stdout_text().trim();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in output.stderr_text().lines() {
        if let [_, address, calls] = line.split(' ').collect::<Vec<&str>>()[..]
            && address == lock
        {
            *counts.entry(address.to_owned()).or_default() += calls.parse::<u64>().unwrap();
        }
    }
    assert_eq!(counts, BTreeMap::from([(lock.to_owned(), 2 * 205)]), "{}", output.stderr_text());
    assert!(output.stderr_text().contains("the handler got the records"), "{}", output.stderr_text());
}

/// The bytes of `struct threadt_record`, and where its a1 is.
const RECORD: usize = 72;
const A1: usize = 32;

#[test]
fn the_example_sends_records_to_a_socket() {
    let test = TestDirectory::new("handler-socket");
    let handler = example(&test, "send_datagrams");
    let path = test.directory().join("s");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let run = test.native(trace_cat()).args([
        "run",
        "--handler",
        &format!("{handler}:{}", path.display()),
        "-e",
        "mutex",
        "-d",
    ]);
    let mut running = run.arg(test.trace_directory()).arg(Program::c("handler/program.c")).noise_expected().spawn();
    let (mut locks, mut has_ended) = (Vec::new(), false);
    loop {
        let mut record = [0; RECORD + 1];
        match socket.recv(&mut record) {
            Ok(length) => assert_eq!(length, RECORD),
            Err(_) if has_ended => break,
            Err(_) => has_ended = running.has_ended(),
        }
        if record[24..27] == [2, 2, 1] {
            locks.push(u64::from_le_bytes(record[A1..A1 + 8].try_into().unwrap()));
        }
    }
    let output = running.wait();
    let lock = output.success().stdout_text().trim().trim_start_matches("0x").to_owned();
    let lock = u64::from_str_radix(&lock, 16).unwrap();
    // A full socket loses records.
    assert!(!locks.is_empty() && locks.len() <= 205 && locks.iter().all(|address| *address == lock));
    assert_eq!(test.trace().of("mutex_lock").len(), 2 * 205);
}

/// A signal handler of the program's leaves the handler by siglongjmp, twenty times; the handler forks, and executes another program.
#[test]
fn a_handler_that_is_left_by_a_jump_or_makes_processes_gets_all_later_records() {
    let source = "handler/interrupted.c";
    let handler = Program::with_flags(source, &[SHARED[0], SHARED[1], "-D_GNU_SOURCE", "-DHANDLER"]);
    for parameters in ["0", "1"] {
        let test = TestDirectory::new("handler-interrupted");
        let run = test.traced(Program::c(source)).env("LD_PRELOAD", preload(&handler));
        let run = run.env("THR_TRACE_EVENTS", "mutex:cond:sema");
        let output = run.env("THR_TRACE_HANDLER", format!("{}:{parameters}", handler.path().display())).run();
        assert_eq!(output.success().stdout_text(), "locks 0 processes 0\nlocks 110 processes 2\n");
        assert_eq!(test.trace().of("mutex_lock").len(), if parameters == "1" { 2 * 110 } else { 0 });
    }
}

/// A signal handler that records comes at each instruction of the library and of the handler, or leaves what it interrupts by a jump.
#[test]
fn a_handler_is_not_called_while_it_runs_and_gets_what_comes_behind_a_jump_from_anywhere() {
    let source = "handler/stepped.c";
    let handler = Program::with_flags(source, &[SHARED[0], SHARED[1], "-DHANDLER"]);
    let run = |mode: &str| {
        let test = TestDirectory::new("handler-stepped");
        let run = test.traced(Program::c(source)).arg(mode).env("LD_PRELOAD", preload(&handler));
        let run = run.env("THR_TRACE_EVENTS", "mutex:sema");
        let output = run.env("THR_TRACE_HANDLER", format!("{}:0", handler.path().display())).run();
        let (calls, count) = output.success().stdout_text().trim().split_once('\n').expect("two lines");
        (calls.to_owned(), count.parse::<usize>().unwrap())
    };
    let (calls, steps) = run("calls");
    assert_eq!(calls, "called again 0 locks 1", "{steps} steps");
    assert!(steps > 1000, "{steps} steps");
    let (calls, jumps) = run("jumps");
    assert_eq!(calls, format!("called again 0 locks {}", 1 + jumps));
    assert!(jumps > 50, "{jumps} jumps");
}

/// What a signal handler records while a forked child is initialised, stopped at each system call, waits for the child's own handler.
#[test]
fn a_handler_gets_what_is_recorded_while_a_child_is_initialised() {
    let handler = Program::with_flags("handler/posts.c", &SHARED);
    for parameters in ["0", "1"] {
        for step in 0.. {
            let test = TestDirectory::new("handler-child");
            let run = test.traced(Program::c("hostile/interrupted_child.c")).args(["none", &step.to_string()]);
            let run = run.env("LD_PRELOAD", preload(&handler));
            let output = run.env("THR_TRACE_HANDLER", format!("{}:{parameters}", handler.path().display())).run();
            if !output.is_permitted("to stop a process") {
                return;
            }
            let (handled, mut printed): (Vec<&str>, Vec<&str>) =
                output.exited(7).stdout_text().lines().partition(|line| line.starts_with("handled "));
            let was_late = printed.pop() == Some("0");
            for line in printed {
                let is_counted = handled.contains(&format!("handled {line}").as_str());
                assert!(is_counted, "{parameters}, stopped at {step}: {handled:?} and not {line}");
            }
            if was_late {
                assert!(step > 15, "only {step} system calls");
                break;
            }
        }
    }
}
