//! Where traces go, and which programs are in them.

use std::path::PathBuf;

use super::super::harness::{TestDirectory, Trace};
use super::{entries, script, started, started_anywhere};

#[test]
fn each_run_has_a_fresh_directory() {
    let test = TestDirectory::new("run-fresh");
    for _ in 0..2 {
        started_anywhere(&test).args(["sh", "-c", "cd / && true"]).run().success();
    }
    assert_eq!(entries(&test), ["sh.thr.1", "sh.thr.2", "trace"].map(PathBuf::from));
    for name in ["sh.thr.1", "sh.thr.2"] {
        let trace = Trace::read(&test.directory().join(name));
        assert_eq!(trace.of("proc_exit").len(), 1, "{name}");
    }
    std::fs::remove_dir_all(test.directory().join("sh.thr.1")).unwrap();
    started_anywhere(&test).args(["sh", "-c", ":"]).run().success();
    assert_eq!(entries(&test), ["sh.thr.2", "sh.thr.3", "trace"].map(PathBuf::from), "the highest is the newest");
    // THR_TRACE_DIR is not a wish for this run: it may be an outer one's.
    let output = started_anywhere(&test).arg("true").env("THR_TRACE_DIR", test.trace_directory()).run();
    output.success();
    assert_eq!(test.trace().records.len(), 0);
}

#[test]
fn children_are_recorded_unless_only_some_are_wanted() {
    let test = TestDirectory::new("run-children");
    started(&test).args(["sh", "-c", "env true | cat"]).run().success();
    // The shell, and cat; env has become true.
    assert_eq!(test.trace().of("proc_exit").len(), 3);
    let only = test.directory().join("only");
    let run =
        started_anywhere(&test).args(["-d", "only", "--only", "cat", "--only", "sort", "sh", "-c", "env true | cat"]);
    run.run().success();
    assert_eq!(Trace::read(&only).of("proc_exit").len(), 1);
}

#[test]
fn options_reach_the_program_and_others_are_inherited() {
    let test = TestDirectory::new("run-variables");
    let all = ["-e", "mutex", "-e", "cond", "--max", "10M/dir", "--unbuffered"];
    let run = started(&test).args(all).args(["sh", "-c", "env | grep ^THR_TRACE | sort"]);
    let output = run.env("THR_TRACE_ONLY", "sh:grep").env("THR_TRACE_EVENTS", "spin").run();
    let expected = format!(
        "THR_TRACE_BUF=1\nTHR_TRACE_DETAIL=1\nTHR_TRACE_DIR={}\nTHR_TRACE_EVENTS=mutex:cond\nTHR_TRACE_MAX=10485760/dir\nTHR_TRACE_ONLY=sh:grep\n",
        test.trace_directory().canonicalize().unwrap().display()
    );
    assert_eq!(output.stdout_text(), expected);
    for (option, value, expected) in [
        (None, None, "THR_TRACE_DETAIL=1\n"),
        (None, Some("yes"), "THR_TRACE_DETAIL=yes\n"),
        (Some("--detail"), Some("yes"), "THR_TRACE_DETAIL=1\n"),
        (Some("--no-detail"), Some("yes"), ""),
    ] {
        let run = started(&test).args(option).args(["sh", "-c", "env | grep ^THR_TRACE_DETAIL; true"]);
        let run = if let Some(value) = value { run.env("THR_TRACE_DETAIL", value) } else { run };
        assert_eq!(run.run().stdout_text(), expected, "{option:?} {value:?}");
    }
}

#[test]
fn a_purpose_reaches_the_program() {
    let test = TestDirectory::new("run-purpose");
    for (purpose, expected) in [
        ("contention", "THR_TRACE_DETAIL=1\nTHR_TRACE_LEVEL=blocked\nTHR_TRACE_STACK=32\n"),
        ("flight", "THR_TRACE_DETAIL=1\nTHR_TRACE_RING=1048576\n"),
    ] {
        let output = started(&test)
            .args(["--for", purpose, "sh", "-c", "env | grep ^THR_TRACE_[^D] | sort; env | grep ^THR_TRACE_DE"])
            .run();
        let mut lines: Vec<&str> = output.stdout_text().lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, expected.lines().collect::<Vec<_>>(), "{purpose}");
    }
    // Only calls that waited: none of these pairs.
    let steps = super::super::harness::Program::c("hostile/steps.c");
    let pairs = |purpose: &str| {
        let run = started_anywhere(&test).args(["-d", purpose, "--for", purpose]).arg(&steps).args(["pairs", "100"]);
        let output = run.run();
        output.exited(super::super::hostile::DONE);
        let is_partial = ["contention", "flight"].contains(&purpose);
        assert_eq!(
            output.stderr_text().contains("; not known of the others: "),
            is_partial,
            "{}",
            output.stderr_text()
        );
        Trace::read(&test.directory().join(purpose)).of("mutex_unlock").len()
    };
    assert_eq!(["contention", "timeline", "everything", "flight"].map(pairs), [0, 100, 100, 100]);
    // What `everything` says of the others is what they wrote.
    let run =
        started_anywhere(&test).args(["-d", "all", "--for", "everything"]).arg(&steps).args(["pairs", "100"]).run();
    let said = run.stderr_text().lines().find_map(|line| line.strip_prefix("trace-cat: what --for would write: "));
    let said: Vec<(&str, f64)> = said
        .unwrap_or_else(|| panic!("{}", run.stderr_text()))
        .split(", ")
        .map(|item| {
            let [purpose, size, unit, ..] = item.split(' ').collect::<Vec<_>>()[..] else { panic!("{item}") };
            (purpose, size.parse::<f64>().unwrap() * if unit == "kB" { 1000.0 } else { 1.0 })
        })
        .collect();
    assert_eq!(said.len(), 4, "{said:?}");
    for (purpose, size) in said {
        let trace = Trace::read(&test.directory().join(purpose));
        let records = trace.records.iter().filter(|record| !record.is("trace_stack"));
        let written: usize = records.map(|record| record.line.len() + 1).sum();
        assert!((size - written as f64).abs() <= 0.02 * written as f64 + 50.0, "{purpose}: {size}, wrote {written}");
    }
}

/// An inner run has its own directory; its programs are recorded there, once.
#[test]
fn runs_nest() {
    let test = TestDirectory::new("run-nested");
    let output = script(&test, "$run sh -c \"$run_inner cat /dev/null\"")
        .env("run_inner", format!("{} run -d inner", super::super::harness::trace_cat().display()))
        .run();
    output.success();
    assert_eq!(Trace::read(&test.directory().join("inner")).of("proc_exit").len(), 1);
    assert_eq!(test.trace().of("proc_exit").len(), 1, "the shell; trace-cat itself is not recorded");
}
