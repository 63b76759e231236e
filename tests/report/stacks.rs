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

/// The frames that gdb shows at the first call of a function, without that: each function, and the base name and line of its
/// source, if it is known. `None` without gdb.
fn debugger_frames(program: &Program, function: &str) -> Option<Vec<(String, Option<String>)>> {
    // It may be that only a library has the function.
    let commands =
        ["set debuginfod enabled off", "set breakpoint pending on", &format!("break {function}"), "run", "backtrace"];
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]).args(commands.iter().flat_map(|command| ["-ex", command])).arg(program.path());
    let Ok(output) = gdb.output() else {
        println!("gdb is not there: the frames are not compared");
        return None;
    };
    let output = String::from_utf8(output.stdout).unwrap();
    // `#1  0x0000555555555abc in initialise<7> (mutex=…) at …/stacks.cpp:42`, and for what was inlined without the address.
    let lines = output.lines().filter(|line| line.starts_with('#') && !line.starts_with("#0"));
    let frames: Vec<_> = lines
        .map(|line| {
            let (_, frame) = line.split_once(' ').unwrap();
            let frame = frame.split_once(" in ").map_or(frame, |(_, function)| function).trim();
            let (function, after) = frame.split_once(" (").unwrap();
            let place = after.rsplit_once(" at ").map(|(_, path)| path.rsplit('/').next().unwrap().to_owned());
            (function.to_owned(), place)
        })
        .collect();
    assert!(frames.len() >= 4, "{output}");
    Some(frames)
}

/// The frames of the first call of an event in a trace: function, file and line.
fn recorded_frames(test: &TestDirectory, event: &str) -> Vec<String> {
    let text = test.native(trace_cat()).args(["-F", "text", "--stack", "-e", event]).arg(test.trace_directory()).run();
    let frame = |line: &str| Some(line.trim_start().strip_prefix('#')?.split_once(' ')?.1.trim().to_owned());
    let lines = text.success().stdout_text().lines();
    lines.skip_while(|line| frame(line).is_none()).map_while(frame).collect()
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
