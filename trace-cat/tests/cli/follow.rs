//! `--follow` without running processes: what is refused, and how it ends.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};

use super::{FIRST, SECOND, assert_output, command, run, spawn, trace};

#[test]
fn what_cannot_be_followed_is_wrong_usage() {
    let trace = trace();
    for (arguments, message) in [
        (&["--window", "1s"][..], "--follow"),
        (&["--until-exit"], "--follow"),
        (&["--follow", "--window", "1"], "unit"),
        (&["--follow", "--sort", "tid"], "--sort"),
        (&["--follow", "--split", "pid", "-o", "out"], "--split"),
        (&["--follow", "--stat"], "--stat"),
        (&["--follow", "--recover"], "--recover"),
        (&["--follow", "-o", "tr.0000001.002"], "one of the inputs"),
    ] {
        let output = run(trace.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?} {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
    assert_eq!(fs::read_to_string(trace.path().join("tr.0000001.002")).unwrap(), FIRST);
    let appended = OpenOptions::new().append(true).open(trace.path().join("tr.0000001.002")).unwrap();
    let output = command(trace.path()).args(["--follow", "--until-exit"]).stdout(appended).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(trace.path().join("tr.0000001.002")).unwrap(), FIRST);
}

#[test]
fn a_trace_that_does_not_grow_is_printed_and_ends() {
    let trace = trace();
    let all = format!("{FIRST}{SECOND}");
    assert_output(&run(trace.path(), &["--follow", "--until-exit"]), 0, &all, "");
    assert_output(&run(trace.path(), &["-f", "--until-exit", "-e", "mutex_unlock", "-o", "all"]), 0, SECOND, "");
    assert_eq!(fs::read_to_string(trace.path().join("all")).unwrap(), all);
    for (arguments, expected) in [
        (&["--head", "1"][..], FIRST),
        (&["--head", "0"], ""),
        (&["--tail", "1"], SECOND),
        (&["--until", "+1ns"], FIRST),
        // Times count from the first record of all, also if it is not selected.
        (&["--since", "+1ns", "-e", "mutex_unlock"], SECOND),
        (&["--since", "+2ns"], ""),
    ] {
        let output = command(trace.path()).args(["--follow", "--until-exit"]).args(arguments).output().unwrap();
        assert_output(&output, 0, expected, "");
    }
    let message = "trace-cat: none: No such file or directory\n";
    assert_output(&run(trace.path(), &["--follow", "none"]), 1, "", message);
}

/// The existing records, and what is wrong with them, are not even read; a journal has them nevertheless.
#[test]
fn now_begins_behind_the_existing_records() {
    let trace = trace();
    let path = trace.path().join("tr.0000001.003");
    fs::write(&path, format!("{SECOND}rubbish\n")).unwrap();
    let damage = "trace-cat: ./tr.0000001.003:2: not a record: the line ends in time1\n";
    assert_output(&run(trace.path(), &["--follow", "--until-exit", "--since", "now"]), 0, "", "");
    let output = run(trace.path(), &["--follow", "--until-exit", "--since", "now", "-o", "journal"]);
    assert_output(&output, 1, "", damage);
    assert_eq!(fs::read_to_string(trace.path().join("journal")).unwrap(), format!("{FIRST}{SECOND}"));

    let mut child = spawn(trace.path(), &["--follow", "--since", "now"]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    // When the first of these records is printed, following has begun. They are ahead of the clock, so none of them is late.
    let later = SECOND.replace("1795174740:", "9000000000:");
    let mut line = String::new();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let reader = std::thread::spawn(move || {
        out.read_line(&mut line).unwrap();
        line
    });
    while !reader.is_finished() {
        file.write_all(later.as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(reader.join().unwrap(), later);
    // SAFETY: kill takes no pointers, and the child has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) }, 0);
    assert_output(&child.wait_with_output().unwrap(), 0, "", "");
}

#[test]
fn after_a_signal_it_prints_all_records_and_ends() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let trace = trace();
        let mut child = spawn(trace.path(), &["--follow", "--window", "100s"]);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        out.read_line(&mut text).unwrap();
        // A record of the current time is held back for the window.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let third = SECOND.replace("1795174740", &format!("{now:010}"));
        let mut file = OpenOptions::new().append(true).open(trace.path().join("tr.0000001.003")).unwrap();
        file.write_all(third.as_bytes()).unwrap();
        // SAFETY: kill takes no pointers, and the child has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
        out.read_to_string(&mut text).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(text, format!("{FIRST}{SECOND}{third}"));
        assert_output(&output, 0, "", "");
    }
}

#[test]
fn a_closed_pipe_is_a_silent_end_of_following() {
    let trace = trace();
    let mut child = spawn(trace.path(), &["--follow"]);
    drop(child.stdout.take());
    // The first record that is printed to the closed pipe ends it.
    let mut file = OpenOptions::new().append(true).open(trace.path().join("tr.0000001.003")).unwrap();
    while child.try_wait().unwrap().is_none() {
        file.write_all(SECOND.as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_output(&child.wait_with_output().unwrap(), 0, "", "");
}

#[test]
fn late_records_are_marked_in_each_format() {
    for (format, mark, others) in [
        ("csv", ",1", ",0"),
        ("json", ",\"late\":true}", "}"),
        ("text", "  late", "= 0"),
        ("raw", ":0:0:0:0", ":0:0:0:0"),
    ] {
        let trace = trace();
        let mut child = spawn(trace.path(), &["--follow", "-F", format, "-e", "mutex_unlock"]);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut lines = Vec::new();
        let mut next = || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            lines.push(line.trim_end().to_owned());
        };
        if matches!(format, "csv" | "text") {
            next();
        }
        next();
        // Of late records only those are counted that are printed.
        let late = SECOND.replace(":000000002:", ":000000001:");
        let unselected = late.replace(":02:04:0:", ":02:03:0:").repeat(3);
        fs::write(trace.path().join("tr.0000001.004"), unselected + &late).unwrap();
        next();
        // SAFETY: kill takes no pointers, and the child has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) }, 0);
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("trace-cat: --follow: 1 record") && error.lines().count() == 1, "{error}");
        assert_eq!(output.status.code(), Some(0));
        if format == "csv" {
            assert!(lines.remove(0).ends_with(",columns,name,late"));
        }
        if format == "text" {
            assert!(lines.remove(0).starts_with("times since "));
        }
        assert!(lines[0].ends_with(others) && !lines[0].contains("late"), "{lines:?}");
        assert!(lines[1].ends_with(mark), "{lines:?}");
    }
}

/// A call that did not return is shown as without following: how long it lasted at least, and why that is not known better.
#[test]
fn an_open_call_of_a_killed_process_is_followed_as_it_is_printed() {
    let trace = trace();
    let later = SECOND.replace("1795174740:", "1795174746:");
    fs::write(trace.path().join("tr.0000001.003"), later).unwrap();
    for format in [&["-F", "text"][..], &["-F", "json", "--calls"]] {
        for filter in [&["--blocked"][..], &["--longer", "5s"]] {
            let arguments = [format, filter].concat();
            let printed = run(trace.path(), &arguments);
            let text = String::from_utf8_lossy(&printed.stdout).into_owned();
            assert!(text.contains("or more") || text.contains("\"duration\":6000000001"), "{text}");
            let followed = run(trace.path(), &[&arguments[..], &["--follow", "--until-exit"]].concat());
            assert_output(&followed, 0, &text, "");
        }
    }
}

#[test]
fn the_last_lines_of_calls_are_those_that_are_printed_without_following() {
    let trace = tempfile::tempdir().unwrap();
    let returned =
        |line: &str| line.replace(":02:02:1:0x559469ed90a0:", ":02:02:2:0:").replace("000000001", "000000009");
    let later = |line: &str, second: &str| line.replace("1795174740", second);
    let call = |second| later(FIRST, second) + &later(&returned(FIRST), second);
    let records = ["1795174740", "1795174741", "1795174742"].map(call).concat() + &later(SECOND, "1795174743");
    fs::write(trace.path().join("tr.0000001.002"), records).unwrap();
    for tail in ["1", "2", "3", "4", "9"] {
        for time in ["rel", "abs"] {
            let arguments = ["-F", "text", "--time", time, "--tail", tail];
            let printed = run(trace.path(), &arguments);
            let text = String::from_utf8_lossy(&printed.stdout).into_owned();
            let followed = run(trace.path(), &[&arguments[..], &["--follow", "--until-exit"]].concat());
            assert_output(&followed, 0, &text, "");
        }
    }
}
