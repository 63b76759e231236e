//! The names of commands, and hints.

use std::fs;

use super::{FIRST, SECOND, assert_output, run, trace};

#[test]
fn a_missing_path_that_is_nearly_a_command_gets_a_hint() {
    let trace = trace();
    for (words, path, command) in [
        (&["reprot", "."][..], "reprot", "report"),
        (&["-F", "raw", "report", "."], "report", "report"),
        (&["recrod", "ls"], "recrod", "record"),
        (&["halp"], "halp", "help"),
    ] {
        let message = format!(
            "trace-cat: no such file or directory: '{path}'\n\n  tip: the command 'trace-cat {command}' exists\n\n\
             Usage: trace-cat [OPTIONS] [PATH]...\n       trace-cat <COMMAND>\n\nFor more information, try '--help'.\n"
        );
        assert_output(&run(trace.path(), words), 2, "", &message);
    }
    // What exists is read.
    fs::write(trace.path().join("reprot"), FIRST).unwrap();
    assert_output(&run(trace.path(), &["reprot"]), 0, FIRST, "");
}

#[test]
fn a_report_of_a_missing_path_says_so() {
    let trace = trace();
    let message = "trace-cat: none: No such file or directory\n";
    assert_output(&run(trace.path(), &["report", "none"]), 1, "", message);
    fs::write(trace.path().join("page"), "earlier").unwrap();
    assert_output(&run(trace.path(), &["report", "-o", "page", "none"]), 1, "", message);
    assert_eq!(fs::read_to_string(trace.path().join("page")).unwrap(), "earlier");
    let partly = run(trace.path(), &["report", "none", "."]);
    assert_eq!((partly.status.code(), String::from_utf8_lossy(&partly.stderr).as_ref()), (Some(1), message));
    assert!(String::from_utf8_lossy(&partly.stdout).contains(" 2 records, "));
}

#[test]
fn options_that_select_nothing_are_reported() {
    let trace = trace();
    let message = "trace-cat: no record matches: the options leave out all that the trace has\n";
    for words in
        [&["-l", "77"][..], &["-e", "cond"], &["--object", "0x1"], &["--since", "+1s"], &["-e", "cond", "--head", "1"]]
    {
        assert_output(&run(trace.path(), words), 0, "", message);
    }
    let text = run(trace.path(), &["-F", "text", "-l", "77"]);
    assert_eq!(String::from_utf8_lossy(&text.stderr), message);
    assert_output(&run(trace.path(), &["--head", "0"]), 0, "", "");
    fs::write(trace.path().join("empty"), "").unwrap();
    assert_output(&run(trace.path(), &["-l", "77", "empty"]), 0, "", "");
}

#[test]
fn events_are_separated_by_colons_or_commas() {
    let trace = trace();
    assert_output(&run(trace.path(), &["-e", "mutex_lock,cond"]), 0, FIRST, "");
    assert_output(&run(trace.path(), &["-e", "mutex_unlock,mutex_lock:cond"]), 0, &format!("{FIRST}{SECOND}"), "");
}

#[test]
fn a_change_of_nothing_is_reported() {
    let trace = trace();
    let message = "trace-cat: .: no running process records here\n";
    assert_output(&run(trace.path(), &["set", "--pause", "."]), 1, "", message);
    assert_output(&run(trace.path(), &["set", "--snapshot", "copy", "."]), 1, "", message);
    assert!(!trace.path().join("copy").exists());
    let heading = "PID  NAME  GENERATION  PAUSED  LEVEL  STACK  DETAIL  WRITTEN  LOST  EVENTS\n";
    assert_output(&run(trace.path(), &["status", "."]), 0, heading, "");
}
