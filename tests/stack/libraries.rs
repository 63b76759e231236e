//! Libraries that the program closes, and others that it opens at the same addresses: a stack names the one that was there.

use std::fs;

use crate::harness::{Program, TestCommand, TestDirectory, trace_cat};

/// Four libraries of the same size, and the program that opens them.
fn programs() -> (Program, Vec<Program>) {
    let library = |number: usize| {
        let name = format!("-DNAME=call_{number}");
        Program::with_flags("stack/library.c", &["-shared", "-fPIC", "-O1", &name])
    };
    (Program::with_flags("stack/libraries.c", &["-pthread", "-ldl"]), (0..4).map(library).collect())
}

fn trinfo(test: &TestDirectory) -> String {
    let files = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut trinfos = files.filter(|path| path.to_string_lossy().contains("/trinfo."));
    fs::read_to_string(trinfos.next().unwrap()).unwrap()
}

fn lines_with(text: &str, start: &str) -> usize {
    text.lines().filter(|line| line.starts_with(start)).count()
}

/// The mutex of each record with a stack, and its innermost frame, as `trace-cat` prints them.
fn innermost_frames(test: &TestDirectory) -> Vec<(String, String)> {
    let output = test.trace_cat().args(["-F", "text", "--stack"]).run();
    let mut frames = Vec::new();
    let mut record = String::new();
    for line in output.success().stdout_text().lines() {
        match line.trim_start().strip_prefix("#0  ") {
            Some(frame) => frames.push((record.clone(), frame.to_owned())),
            None if line.trim_start().starts_with('#') => {}
            None => record = line.to_owned(),
        }
    }
    frames
}

/// Runs the program, and returns the mutexes' addresses.
fn run(command: TestCommand, mode: &str) -> Vec<String> {
    let (_, libraries) = programs();
    let output = command.arg(mode).args(&libraries).env("THR_TRACE_STACK", "8").run();
    output.success().stdout_text().lines().map(str::to_owned).collect()
}

/// How many of the calls in libraries are named for certain, and for how many it is one of two. None has another library's name.
fn named(test: &TestDirectory, mutexes: &[String], event: &str) -> (usize, usize) {
    let (mut certain, mut uncertain) = (0, 0);
    for (record, frame) in innermost_frames(test).iter().filter(|(record, _)| record.contains(event)) {
        let number = mutexes.iter().position(|mutex| record.contains(mutex.as_str())).unwrap();
        let name = format!("call_{number}");
        assert!(frame.split(" or ").any(|one| one.contains(&name)), "{frame}:\n{record}\n{}", trinfo(test));
        if frame.contains(" or ") { uncertain += 1 } else { certain += 1 }
    }
    (certain, uncertain)
}

#[test]
fn a_library_at_the_address_of_a_closed_one_is_not_named_like_that() {
    let test = TestDirectory::new("stack-libraries");
    let mutexes = run(test.traced(programs().0), "0");
    assert_eq!(named(&test, &mutexes, "> mutex_lock"), (4, 0));
    for format in ["folded", "json", "html"] {
        let report = test.native(trace_cat()).args(["report", "-F", format]).arg(test.trace_directory()).run();
        let text = report.success().stdout_text();
        let missing = (0..4).map(|number| format!("call_{number}")).find(|name| !text.contains(name.as_str()));
        assert_eq!(missing, None, "{format}:\n{text}");
    }
}

#[test]
fn threads_that_open_and_close_libraries_at_the_same_time_have_stacks_of_those() {
    let test = TestDirectory::new("stack-libraries-threads");
    let mutexes = run(test.traced(programs().0), "threads");
    let (certain, uncertain) = named(&test, &mutexes, "mutex_trylock");
    assert!(certain + uncertain >= 400 && certain > 0, "{certain} certain, {uncertain} uncertain");
    assert_eq!(lines_with(&trinfo(&test), "maps_partial "), 0);
}

/// Readings have a limit, and so has what they write; whatever comes later is named only if it is certain.
#[test]
fn libraries_are_closed_too_often() {
    let test = TestDirectory::new("stack-libraries-often");
    let mutexes = run(test.traced(programs().0), "10000");
    let text = trinfo(&test);
    assert_eq!(lines_with(&text, "maps_partial "), 1);
    assert!(lines_with(&text, "unmap ") > 1000 && text.len() < 4 << 20, "{}", text.len());
    let frames = innermost_frames(&test);
    let waits: Vec<_> = frames.iter().filter(|(record, _)| record.contains("> mutex_lock")).collect();
    assert_eq!(waits.len(), mutexes.len());
    for (record, frame) in waits {
        assert!(frame.ends_with(" or another library"), "{record}\n{frame}");
    }
    // A thread that has ended is not waited for, and that call has no stack.
    let (joins, others): (Vec<_>, Vec<_>) = frames
        .iter()
        .filter(|(_, frame)| frame.starts_with("main "))
        .partition(|(record, _)| record.contains("> thr_join"));
    assert!(others.len() == mutexes.len() && joins.len() <= mutexes.len(), "{frames:?}");
    assert!(
        frames.iter().all(|(record, frame)| record.contains("> mutex_lock") || frame.starts_with("main ")),
        "{frames:?}"
    );
}

/// But for the routine of the one thread, which is recorded whatever is of callers.
#[test]
fn where_no_code_is_recorded_closing_libraries_reads_nothing() {
    let test = TestDirectory::new("stack-libraries-none");
    let (program, libraries) = programs();
    test.traced(program).arg("100").args(&libraries).run().success();
    let gone = lines_with(&trinfo(&test), "unmap ");
    assert!(gone <= 2 * libraries.len(), "{gone}");
}
