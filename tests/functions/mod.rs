//! Functions of programs that are compiled with `-finstrument-functions`.

use std::collections::{BTreeMap, HashMap};

use crate::harness::{Program, Record, TestDirectory, Trace, library, trace_cat};

const INSTRUMENT: &str = "-finstrument-functions";

fn shapes() -> Program {
    Program::with_flags("functions/shapes.cpp", &["-g", "-O1", INSTRUMENT, "-D_GNU_SOURCE"])
}

fn shared_library(flag: &str) -> Program {
    Program::with_flags("functions/library.c", &["-shared", "-fPIC", "-g", INSTRUMENT, flag])
}

fn functions(trace: &Trace) -> Vec<&Record> {
    trace.records.iter().filter(|record| record.fields.event1 == 13).collect()
}

/// The names of what `-F text` shows of functions, `+` for entered and `-` for left, each with its depth.
fn shown(test: &TestDirectory) -> Vec<String> {
    let output = test.trace_cat().args(["-F", "text", "-e", "func"]).run();
    let line = |line: &str| {
        let (before, call) = line.split_once("func_")?;
        let depth = before.len() - before.trim_end().len();
        let (what, arguments) = call.split_once('(')?;
        let name = arguments.trim_start_matches("(anonymous namespace)::").split([' ', ',', '(']).next()?;
        let sign = if what == "enter" { '+' } else { '-' };
        Some(format!("{}{sign}{name}", "  ".repeat((depth - 3) / 2)))
    };
    output.success().stdout_text().lines().filter_map(line).collect()
}

/// Enters and leaves of each thread in turn; `true` if each leave is that of the function entered last.
fn is_balanced(trace: &Trace) -> bool {
    let mut open: HashMap<(u32, u32), Vec<[&str; 2]>> = HashMap::new();
    functions(trace).into_iter().all(|record| {
        let fields = &record.fields;
        let stack = open.entry((fields.pid, fields.lwpid)).or_default();
        let [function, site, ..] = record.arguments();
        if fields.event2 == 1 {
            stack.push([function, site]);
            return true;
        }
        stack.pop() == Some([function, site])
    }) && open.values().all(Vec::is_empty)
}

fn run(what: &str, events: Option<&str>, chosen: Option<&str>) -> (TestDirectory, String) {
    let test = TestDirectory::new("functions");
    let mut command = test.traced(shapes()).arg(what);
    for (name, value) in [("THR_TRACE_EVENTS", events), ("THR_TRACE_FUNC", chosen)] {
        if let Some(value) = value {
            command = command.env(name, value);
        }
    }
    let output = command.noise_expected().run();
    let text = output.success().stderr_text().to_owned();
    (test, text)
}

#[test]
fn functions_are_recorded_only_where_they_are_named() {
    for (events, expected) in [(None, false), (Some("-cond"), false), (Some("-cond:func"), true), (Some("func"), true)]
    {
        let (test, _) = run("throws", events, None);
        assert_eq!(!functions(&test.trace()).is_empty(), expected, "{events:?}");
    }
}

#[test]
fn each_enter_has_its_leave_also_after_exceptions_cancellation_and_signals() {
    for what in ["throws", "is_cancelled", "is_interrupted", "vfork"] {
        let (test, _) = run(what, Some("func"), None);
        let trace = test.trace();
        assert!(functions(&trace).len() > 8, "{what}");
        assert!(is_balanced(&trace), "{what}: {}", trace.text());
    }
}

#[test]
fn text_indents_functions_and_names_them() {
    let (test, _) = run("throws", Some("func"), Some("_ZN12_GLOBAL__N_1"));
    let lines = shown(&test);
    let expected = [
        "+begins_early",
        "  +job_leaf",
        "  -job_leaf",
        "-begins_early",
        "+throws",
        "  +other_root",
        "    +job_branch",
        "      +job_leaf",
        "      -job_leaf",
        "    -job_branch",
        "  -other_root",
        "-throws",
        "+ends_late",
        "  +job_leaf",
        "  -job_leaf",
        "-ends_late",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn functions_are_chosen_by_symbols_and_libraries() {
    let count = |test: &TestDirectory| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for record in functions(&test.trace()) {
            *counts.entry(record.arguments()[0].to_owned()).or_default() += 1;
        }
        counts
    };
    // Local functions have symbols only in the file.
    let (test, text) = run("throws", Some("func"), Some("_ZN12_GLOBAL__N_18job_leaf:_ZN12_GLOBAL__N_110job_branch"));
    assert_eq!(text, "");
    let mut counts: Vec<usize> = count(&test).into_values().collect();
    counts.sort();
    // The constructor and the destructor call the leaf, too.
    assert_eq!(counts, [2, 6]);
    assert!(is_balanced(&test.trace()));
    let (test, text) = run("throws", Some("func"), Some("nothing"));
    assert!(text.contains("THR_TRACE_FUNC: no library and no function that is loaded so far begins with 'nothing'"));
    assert!(count(&test).is_empty());
    let library = shared_library("-DPLAIN");
    let name = library.path().file_name().unwrap().to_str().unwrap();
    for chosen in [name, "library_"] {
        let (test, _) = run(library.path().to_str().unwrap(), Some("func"), Some(chosen));
        let counts = count(&test);
        assert_eq!(counts.len(), if chosen == name { 2 } else { 1 }, "{chosen} {counts:?}");
        assert!(is_balanced(&test.trace()));
    }
}

/// The resolver of an indirect function runs while the dynamic linker has not relocated this library yet.
#[test]
fn a_resolver_that_is_compiled_so_runs() {
    let test = TestDirectory::new("functions-resolver");
    let preloaded = format!("{}:{}", library().display(), shared_library("-DRESOLVER").path().display());
    let command = test.traced(shapes()).arg("throws").env("LD_PRELOAD", preloaded).env("THR_TRACE_EVENTS", "func");
    command.run().success();
    assert!(is_balanced(&test.trace()));
}

/// What a module's functions are is found once, however often libraries come and go.
#[test]
fn all_functions_of_a_program_are_recorded_that_closes_libraries() {
    let test = TestDirectory::new("functions-closings");
    let program = Program::with_flags("functions/closings.c", &["-g", "-O1", "-ldl", INSTRUMENT]);
    let library = Program::with_flags("stack/library.c", &["-shared", "-fPIC", "-O1", "-DNAME=call_0"]);
    let run = test.traced(program).arg(&library).env("THR_TRACE_FUNC", "functions_closings");
    run.env("THR_TRACE_EVENTS", "func").run().success();
    let trace = test.trace();
    assert!(is_balanced(&trace));
    assert_eq!(functions(&trace).len(), 2 * (600 + 1));
}

/// Where the functions behind the library are not libc's, which do nothing, they are called.
#[test]
fn another_tool_gets_all_functions() {
    let tool = Program::with_flags("functions/counter.c", &["-shared", "-fPIC", "-O1"]);
    let counted = |preloaded: String, events: &str| {
        let test = TestDirectory::new("functions-tool");
        let command = test.traced(shapes()).arg("throws").env("LD_PRELOAD", preloaded).env("THR_TRACE_EVENTS", events);
        let output = command.run();
        let text = output.success().stdout_text();
        text.lines().find(|line| line.starts_with("entered ")).expect("the tool prints").to_owned()
    };
    let tool = tool.path().display();
    let natively = counted(tool.to_string(), "");
    assert!(!natively.starts_with("entered 0"), "{natively}");
    for events in ["", "mutex", "func"] {
        assert_eq!(counted(format!("{}:{tool}", library().display()), events), natively, "{events}");
    }
}

/// Libraries that look alike are loaded one at the address of the other, also while another thread closes that.
#[test]
fn a_library_is_not_taken_for_the_closed_one_at_its_address() {
    let program = Program::with_flags("functions/successors.c", &["-g", "-O1", "-pthread", "-ldl", INSTRUMENT]);
    let library = |number: u32| {
        let names = [format!("-DNAME=call_{number}"), format!("-DLOCAL=local_{number}")];
        let flags = ["-shared", "-fPIC", "-g", "-O1", INSTRUMENT, &names[0], &names[1]];
        Program::with_flags("functions/successor.c", &flags)
    };
    let libraries = [0, 1, 2].map(library);
    for way in ["one-by-one", "threads"] {
        for (number, library) in libraries.iter().enumerate() {
            let name = library.path().file_name().unwrap().to_str().unwrap().to_owned();
            for (chosen, functions_of_each) in [(name, 2), (format!("call_{number}"), 1)] {
                let test = TestDirectory::new("functions-successors");
                let run = test.traced(&program).arg(way).args(&libraries).env("THR_TRACE_EVENTS", "func");
                let output = run.env("THR_TRACE_FUNC", &chosen).noise_expected().run();
                let text = output.success().stdout_text();
                let calls: usize = text.lines().nth(number).unwrap().parse().unwrap();
                let trace = test.trace();
                assert!(is_balanced(&trace), "{way} {chosen}: {}", trace.text());
                assert_eq!(functions(&trace).len(), 2 * functions_of_each * calls, "{way} {chosen} {text}");
            }
        }
    }
}

/// One is loaded at the address of the other. Neither callers nor stacks are recorded, and no functions are chosen.
#[test]
fn functions_and_threads_of_closed_libraries_have_their_own_names() {
    let program = Program::with_flags("functions/closed_workers.c", &["-g", "-pthread", "-ldl"]);
    let library = |number: u32| {
        let names = [format!("-DWORKER=worker_{number}"), format!("-DLOCAL=local_{number}")];
        let flags = ["-shared", "-fPIC", "-g", "-O1", INSTRUMENT, &names[0], &names[1]];
        Program::with_flags("functions/closed_worker.c", &flags)
    };
    let libraries = [0, 1].map(library);
    let order = [0, 1, 0].map(|number: usize| &libraries[number]);
    let run = |events: &str| {
        let test = TestDirectory::new("functions-closed");
        test.traced(&program).args(order).env("THR_TRACE_EVENTS", events).run().success();
        test
    };
    let locals: Vec<String> = shown(&run("func"))
        .into_iter()
        .filter(|function| function.contains("+local"))
        .map(|function| function.trim().to_owned())
        .collect();
    assert_eq!(locals, ["+local_0", "+local_1", "+local_0"]);
    let threads = run("thread");
    let report = threads.native(trace_cat()).args(["report", "--by", "thread"]).arg(threads.trace_directory()).run();
    let text = report.success().stdout_text();
    let count = |name: &str| text.lines().filter(|line| line.contains(name)).count();
    assert_eq!([count("worker_0/"), count("worker_1/")], [2, 1], "{text}");
}
