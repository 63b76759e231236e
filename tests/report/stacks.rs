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

#[test]
fn frames_are_those_of_a_debugger() {
    let (test, program) = recorded(&["-O2"]);
    let commands = ["set debuginfod enabled off", "break pthread_mutex_init", "run", "backtrace"];
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]).args(commands.iter().flat_map(|command| ["-ex", command])).arg(program.path());
    let Ok(output) = gdb.output() else {
        println!("gdb is not there: the frames are not compared");
        return;
    };
    let output = String::from_utf8(output.stdout).unwrap();
    // `#1  0x0000555555555abc in initialise<7> (mutex=…) at …/stacks.cpp:42`, and for what was inlined without the address.
    let frames = output.lines().filter(|line| line.starts_with('#') && !line.starts_with("#0"));
    let expected: Vec<String> = frames
        .map(|line| {
            let (_, frame) = line.split_once("  ").unwrap();
            let function = frame.split_once(" in ").map_or(frame, |(_, function)| function);
            let (function, after) = function.split_once(" (").unwrap();
            format!("{function} {}", after.rsplit('/').next().unwrap())
        })
        .collect();
    assert!(expected.len() >= 4 && expected.last().unwrap().starts_with("main "), "{output}");
    let text =
        test.native(trace_cat()).args(["-F", "text", "--stack", "-e", "mutex_init"]).arg(test.trace_directory()).run();
    let text = text.success().stdout_text();
    let found: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('#')?.split_once(' '))
        .map(|(_, frame)| frame.trim())
        .collect();
    assert_eq!(found[..expected.len()], expected, "{output}\n{text}");
}
