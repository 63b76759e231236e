//! Standard input and output, exit statuses, deaths by signals, and the summary afterwards.

use std::fs;

use super::super::harness::{TestDirectory, Trace, assert_same_lines};
use super::{script, started};

#[test]
fn streams_and_the_exit_status_are_the_programs() {
    let test = TestDirectory::new("run-streams");
    let output = script(&test, "printf in | $run sh -c 'cat; echo out; echo err >&2; exit 7'").run();
    output.exited(7);
    assert_eq!(output.stdout_text(), "inout\n");
    assert!(output.stderr_text().starts_with("err\ntrace-cat: "), "{}", output.stderr_text());
    for status in [0, 1, 125, 255] {
        started(&test).args(["sh", "-c", &format!("exit {status}")]).run().exited(status);
    }
}

#[test]
fn a_death_by_a_signal_is_passed_on() {
    let test = TestDirectory::new("run-deaths");
    for signal in
        [libc::SIGTERM, libc::SIGKILL, libc::SIGINT, libc::SIGQUIT, libc::SIGSEGV, libc::SIGABRT, libc::SIGPIPE]
    {
        let output = started(&test).args(["sh", "-c", &format!("(true); kill -{signal} $$")]).run();
        output.killed(signal);
        assert!(
            output
                .stderr_text()
                .contains("in the buffers of 1 process that was killed or ended unnoticed; trace-cat reads them"),
            "{}",
            output.stderr_text()
        );
    }
    // As a shell shows it.
    let output = script(&test, "$run sh -c 'kill -9 $$'; echo $?").run();
    assert_eq!(output.stdout_text(), "137\n");
}

#[test]
fn a_process_that_still_runs_is_not_taken_for_a_killed_one() {
    let test = TestDirectory::new("run-daemon");
    let output = script(&test, "mkfifo begun end; $run sh -c '(: >begun; read line <end) & read line <begun; :'").run();
    output.success();
    let text = output.stderr_text();
    assert!(text.starts_with("trace-cat: ") && text.contains(": 1 process still runs; trace-cat reads"), "{text}");
    assert!(text.contains(": 2 processes, 2 files, ") && !text.contains("killed"), "{text}");
    // It ends with its input.
    fs::write(test.directory().join("end"), "end\n").unwrap();
}

/// Records that no file could take are counted, and no other reason is guessed.
#[test]
fn losses_are_counted_in_the_summary() {
    let test = TestDirectory::new("run-losses");
    let output = script(&test, "ulimit -f 1; $run $steps pairs 5000")
        .env("steps", super::super::harness::Program::c("hostile/steps.c").path())
        .noise_expected()
        .run();
    output.exited(super::super::hostile::DONE);
    assert_reports_losses(output.stderr_text(), &test.trace());
}

/// Fails unless the summary `text` has the number of records that the trace lost.
#[track_caller]
fn assert_reports_losses(text: &str, trace: &Trace) {
    let lost: u64 = trace.of("trace_lost").iter().map(|record| record.get("lost")).sum();
    assert!(lost > 0 && text.contains(&format!(": {lost} records were lost (trace_lost)\n")), "{lost}: {text}");
}

/// A process that ended, but behind a change of its root, was not killed.
#[test]
fn a_process_that_could_not_write_is_not_taken_for_a_killed_one() {
    let test = TestDirectory::new("run-chroot");
    if !super::super::hostile::privileged(&test) {
        return;
    }
    fs::create_dir(test.directory().join("root")).unwrap();
    let steps = super::super::harness::Program::c("hostile/steps.c");
    let output =
        started(&test).arg(steps).args(["pairs", "100", "chroot", "root", "pairs", "5000"]).noise_expected().run();
    output.exited(super::super::hostile::DONE);
    let text = output.stderr_text();
    assert!(text.contains("in the buffers of 1 process that could not write them; trace-cat reads them"), "{text}");
    assert_reports_losses(text, &test.merged());
}

#[test]
fn a_directory_that_is_not_there_any_more_is_the_reason() {
    let test = TestDirectory::new("run-moved");
    let output = started(&test).args(["sh", "-c", "(true); mv trace elsewhere"]).noise_expected().run();
    let text = output.success().stderr_text();
    assert!(text.contains(": nothing was recorded: the directory was moved or removed meanwhile\n"), "{text}");
}

#[test]
fn the_summary_names_the_trace_and_how_to_read_it() {
    let test = TestDirectory::new("run-report");
    let output = started(&test).args(["sh", "-c", "true | true"]).run();
    output.success();
    let lines: Vec<&str> = output.stderr_text().lines().collect();
    let [what, how] = lines[..] else { panic!("{lines:?}") };
    assert!(what.starts_with("trace-cat: trace: 3 processes, 3 files, ") && what.ends_with(" of records"), "{what}");
    assert_eq!(how, "trace-cat: to read it: trace-cat -F text trace; for a report: trace-cat report trace");
    for command in how.strip_prefix("trace-cat: to read it: ").unwrap().split("; for a report: ") {
        let arguments = command.strip_prefix("trace-cat ").unwrap().split(' ');
        test.native(super::super::harness::trace_cat()).args(arguments).run().success();
    }
    let output = started(&test).args(["sh", "-c", "true | true"]).run();
    let text = output.stderr_text();
    assert!(
        text.contains(" of records; an earlier trace is there too\n")
            && text.contains("trace-cat --run 2 -F text trace; for a report: trace-cat report --run 2 trace\n"),
        "{text}"
    );
}

#[test]
fn the_trace_is_merged_into_a_file() {
    let test = TestDirectory::new("run-merge");
    let output = started(&test).args(["-o", "merged", "sh", "-c", "true | true"]).run();
    output.success();
    let note = "trace-cat: merged: the merged trace; the names of its code are in trace\n";
    assert!(output.stderr_text().ends_with(note), "{}", output.stderr_text());
    let merged = fs::read_to_string(test.directory().join("merged")).unwrap();
    assert!(!merged.is_empty() && merged == test.merged().text());
    // Of a directory with an earlier trace, what this run left.
    started(&test).args(["-o", "newest", "sh", "-c", "true | true"]).run().success();
    let newest = fs::read_to_string(test.directory().join("newest")).unwrap();
    assert_same_lines(&test.merged().text(), &format!("{merged}{newest}"), "both runs");
    started(&test).args(["-o", "text", "-F", "text", "true"]).run().success();
    assert!(fs::read_to_string(test.directory().join("text")).unwrap().contains("proc_exit("));
    // An output that cannot be written is reported before the program runs.
    let output = started(&test).args(["-o", "none/merged", "touch", "ran"]).run();
    output.exited(125);
    assert_eq!(output.stderr_text(), "trace-cat: none/merged: No such file or directory\n");
    assert!(!test.directory().join("ran").exists());
    // Where it fails later, a status of 0 would hide it; another one is the program's.
    for (status, expected) in [(0, 125), (3, 3)] {
        let output = started(&test).args(["-o", "/dev/full", "sh", "-c", &format!("exit {status}")]).run();
        output.exited(expected);
        assert!(output.stderr_text().contains("/dev/full: No space left on device"), "{}", output.stderr_text());
    }
}

/// An earlier run's text is not taken for this one's.
#[test]
fn the_merged_file_of_a_run_without_records_is_empty() {
    let test = TestDirectory::new("run-merge-nothing");
    let merged = test.directory().join("merged");
    for (status, expected) in [(0, 125), (3, 3)] {
        fs::write(&merged, "an earlier run's\n").unwrap();
        let output = started(&test).args(["-e", "", "-o", "merged", "sh", "-c", &format!("exit {status}")]).run();
        output.exited(expected);
        assert_eq!(fs::read_to_string(&merged).unwrap(), "");
        let expected = "trace-cat: merged: is empty: nothing was recorded\n";
        assert!(output.stderr_text().ends_with(expected), "{}", output.stderr_text());
    }
    // A command that finds no trace replaces nothing.
    fs::write(&merged, "an earlier output\n").unwrap();
    for input in ["none", "trace"] {
        test.native(super::super::harness::trace_cat()).args(["-o", "merged", input]).run().exited(1);
        assert_eq!(fs::read_to_string(&merged).unwrap(), "an earlier output\n");
    }
}

#[test]
fn the_summary_gives_reasons_why_nothing_was_recorded() {
    let test = TestDirectory::new("run-nothing");
    for (arguments, reason) in [
        (&["-e", ""][..], "-e was given an empty list"),
        (&["-e", "mutex"], "perhaps nothing of 'mutex' happened, or"),
        (&["--only", "sort"], "no program was named sort"),
        (&["-e", "-process", "env", "-u", "LD_PRELOAD"], "perhaps nothing of '-process' happened"),
        (&["-e", "-process", "env", "-u", "LD_PRELOAD"], "LD_PRELOAD was taken out of the environment"),
    ] {
        let output = started(&test).args(arguments).arg("true").run();
        output.success();
        let expected = "trace-cat: trace: nothing was recorded: ";
        assert!(output.stderr_text().starts_with(expected) && output.stderr_text().contains(reason), "{arguments:?}");
    }
    let output = started(&test).arg("true").env("THR_TRACE_ONLY", "sort").run();
    assert!(
        output.stderr_text().contains("THR_TRACE_ONLY=sort in the environment excludes it"),
        "{}",
        output.stderr_text()
    );
}
