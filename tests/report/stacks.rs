//! Stacks: sites are the functions that call wrappers, and frames are those that a debugger finds.

use std::process::Command;

use serde_json::Value;

use super::super::harness::{Program, TestDirectory, trace_cat};
use super::names::{assert_names, place, reported};

/// Runs the program whose locks are in wrappers, and records its stacks.
fn recorded(flags: &[&str]) -> (TestDirectory, Program) {
    let test = TestDirectory::new("report-stacks");
    let program = Program::with_flags("report/stacks.cpp", flags);
    let command = test.traced(&program).env("THR_TRACE_STACK", "32");
    command.env("THR_TRACE_DETAIL", "1").env("THR_TRACE_LEVEL", "blocked").run().success();
    (test, program)
}

/// The sites of a report where a thread waited for a lock.
fn contended(report: &Value) -> Vec<&Value> {
    let sites = report["sites"].as_array().unwrap().iter();
    sites.filter(|site| site["contention"].as_u64().unwrap() > 0).collect()
}

#[test]
fn a_site_is_the_first_function_outside_of_wrappers() {
    for flags in [&["-O2"][..], &["-O2", "-fno-omit-frame-pointer"]] {
        let (test, _) = recorded(flags);
        let names = |options: &[&str]| {
            let report = reported(&test, options);
            let mut names: Vec<String> =
                contended(&report).iter().map(|site| site["site"].as_str().unwrap().to_owned()).collect();
            names.sort();
            names
        };
        let [inlined, first, second] = ["add_inlined", "first_use", "second_use"]
            .map(|function| format!("{function} {}", place("stacks.cpp", function)));
        assert_eq!(names(&["--skip", "wrapper::*"]), std::slice::from_ref(&inlined));
        assert_eq!(names(&["--skip", "wrapper::*", "--skip", "add_*"]), [first.clone(), second]);
        let [wrapper] = &names(&[])[..] else { panic!("{:?}", names(&[])) };
        assert!(wrapper.starts_with("wrapper::Guarded<long>::with<"), "{wrapper}");

        let report = reported(&test, &["--skip", "wrapper::*", "--skip", "add_*"]);
        assert_names(&report, "sites", "site", &[&format!("main {}", place("stacks.cpp", "main"))]);
        let site = contended(&report).into_iter().find(|site| site["site"] == first.as_str()).unwrap();
        let stack = site["stack"].as_array().unwrap().iter().map(|frame| frame["function"].as_str().unwrap());
        let stack: Vec<&str> = stack.collect();
        let at = stack.iter().position(|function| *function == "add_inlined").unwrap();
        assert!(stack[at - 1].starts_with("wrapper::") && stack[at + 1] == "first_use", "{stack:?}");

        let folded = super::report(&test, &["-F", "folded"]).run();
        let folded = folded.success().stdout_text();
        let frames = format!(";{first};{inlined};wrapper::");
        assert!(folded.lines().filter(|line| line.contains(&frames)).count() > 0, "{frames}\n{folded}");
        let text =
            test.native(trace_cat()).args(["-F", "text", "--stack", "--blocked"]).arg(test.trace_directory()).run();
        let text = text.success().stdout_text();
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.trim_start().trim_start_matches(|letter| "#0123456789 ".contains(letter)))
            .collect();
        assert!(lines.windows(2).any(|pair| pair == [&inlined, &first]), "{text}");
    }
}

/// Frames as a debugger shows them: each function, and the base name and line of its source, if it is known.
type DebuggerFrames = Vec<(String, Option<String>)>;

/// The frames that gdb shows at the calls of a function, without the function's own, for at most `calls` of them. `None` without gdb.
fn debugger_stacks(program: &Program, function: &str, calls: usize) -> Option<Vec<DebuggerFrames>> {
    // It may be that only a library has the function.
    let commands = ["set debuginfod enabled off", "set breakpoint pending on", &format!("break {function}"), "run"];
    let at_each_call = ["backtrace", "continue"].repeat(calls);
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]).args(commands.into_iter().chain(at_each_call).flat_map(|command| ["-ex", command]));
    let Ok(output) = gdb.arg(program.path()).output() else {
        println!("gdb is not there: the frames are not compared");
        return None;
    };
    let output = String::from_utf8(output.stdout).unwrap();
    let mut stacks: Vec<DebuggerFrames> = Vec::new();
    // `#1  0x0000555555555abc in initialise<7> (mutex=…) at …/stacks.cpp:42`, and for what was inlined without the address.
    for line in output.lines().filter(|line| line.starts_with('#')) {
        if line.starts_with("#0") {
            stacks.push(Vec::new());
            continue;
        }
        let (_, frame) = line.split_once(' ').unwrap();
        let frame = frame.split_once(" in ").map_or(frame, |(_, function)| function).trim();
        let (function, after) = frame.split_once(" (").unwrap();
        let place = after.rsplit_once(" at ").map(|(_, path)| path.rsplit('/').next().unwrap().to_owned());
        stacks.last_mut().expect("the function's own frame").push((function.to_owned(), place));
    }
    assert!(stacks.iter().all(|frames| frames.len() >= 2) && !stacks.is_empty(), "{output}");
    Some(stacks)
}

/// The frames at the first call.
fn debugger_frames(program: &Program, function: &str) -> Option<DebuggerFrames> {
    debugger_stacks(program, function, 1).map(|mut stacks| stacks.swap_remove(0))
}

/// The frames of the calls of an event in a trace: function, file and line.
fn recorded_stacks(test: &TestDirectory, event: &str) -> Vec<Vec<String>> {
    let text = test.native(trace_cat()).args(["-F", "text", "--stack", "-e", event]).arg(test.trace_directory()).run();
    let mut stacks: Vec<Vec<String>> = Vec::new();
    for line in text.success().stdout_text().lines().map(str::trim_start) {
        match line.strip_prefix('#').map(|frame| frame.split_once(' ').unwrap().1.trim()) {
            Some(frame) => stacks.last_mut().expect("a call").push(frame.to_owned()),
            None => stacks.push(Vec::new()),
        }
    }
    stacks.retain(|frames| !frames.is_empty());
    stacks
}

/// The frames of the first one.
fn recorded_frames(test: &TestDirectory, event: &str) -> Vec<String> {
    recorded_stacks(test, event).swap_remove(0)
}

/// Where exceptions lead: landing pads apart from their functions, destructors that the runtime calls, functions called from within the
/// search for a handler, thunks, comparisons within inlined templates, what runs before `main` and at the exit.
#[test]
fn frames_of_exceptions_are_those_of_a_debugger() {
    for flags in [&["-O2"][..], &["-O3", "-fno-omit-frame-pointer"]] {
        // Elsewhere gdb names the line of a statement near by, although the table of lines has the one of the call.
        let program = Program::with_flags("report/exceptions.cpp", &[flags, &["-gno-statement-frontiers"]].concat());
        let Some(expected) = debugger_stacks(&program, "pthread_mutex_init", 30) else { return };
        let test = TestDirectory::new("report-stacks-exceptions");
        test.traced(&program).env("THR_TRACE_STACK", "64").run().success();
        let found = recorded_stacks(&test, "mutex_init");
        assert_eq!((found.len(), expected.len()), (22, 22));
        for (frames, found) in expected.iter().zip(&found) {
            for (index, (function, place)) in frames.iter().enumerate() {
                let frame = found.get(index).map_or("", String::as_str);
                // gdb writes templates and closures otherwise, and says `??` where it knows only the library.
                let is_plain = !function.contains(['<', '{', '?']) && !function.ends_with(')');
                let named = place.as_ref().is_none_or(|place| frame.ends_with(&format!(" {place}")));
                let same = named && (!is_plain || place.is_none() || frame.starts_with(function.as_str()));
                assert!(same && !frame.is_empty(), "{index}: {function} {place:?}: {found:#?}\n{frames:#?}");
            }
        }
    }
}

#[test]
fn frames_are_those_of_a_debugger() {
    let (test, program) = recorded(&["-O2"]);
    let Some(frames) = debugger_frames(&program, "pthread_mutex_init") else { return };
    let known = frames.iter().map_while(|(function, place)| Some(format!("{function} {}", place.as_ref()?)));
    let mut expected: Vec<String> = known.collect();
    let main = expected.iter().position(|frame| frame.starts_with("main ")).expect("a frame of main");
    expected.truncate(main + 1);
    assert_eq!(recorded_frames(&test, "mutex_init")[..expected.len()], expected);
}

/// gdb and rustc have other names for what is within `impl` and for closures; the lines are the same, frame by frame, from the
/// standard library's through generic and inlined functions, closures and trait objects.
#[test]
fn frames_of_rust_are_those_of_a_debugger() {
    let program = Program::c("report/stacks.rs");
    let Some(frames) = debugger_frames(&program, "pthread_create") else { return };
    let test = TestDirectory::new("report-stacks-rust");
    test.traced(&program).env("THR_TRACE_STACK", "64").run().success();
    let found = recorded_frames(&test, "thr_create");
    let main = frames.iter().position(|(function, _)| function == "stacks::main").expect("a frame of main");
    assert!(main >= 10, "{frames:?}");
    for (index, (function, place)) in frames[..=main].iter().enumerate() {
        let place = place.as_deref().expect("a line");
        assert!(found[index].ends_with(&format!(" {place}")), "{index}: {function} {place}: {found:#?}");
    }
    assert!(found[main].starts_with("stacks::main "), "{found:#?}");
}
