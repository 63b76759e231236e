//! Which records and calls are printed, of which runs, and in which order.

use std::fs;
use std::path::Path;

use super::{FIRST, SECOND, assert_output, command, run, trace};

#[test]
fn filters_and_text() {
    let trace = trace();
    assert_output(&run(trace.path(), &["-l", "3", "-p", "1"]), 0, SECOND, "");
    assert_output(&run(trace.path(), &["-e", "mutex_lock"]), 0, FIRST, "");
    let output = command(trace.path()).args(["-F", "text", "-e", "-mutex_lock"]).env("TZ", "UTC0").output().unwrap();
    let expected = "times since 2026-11-20 11:39:00.000000001\n\
        \u{20} 0.000000001 1/3               mutex_unlock(0x559469ed90a0)          = 0\n";
    assert_output(&output, 0, expected, "");
    // A time that is printed can be typed.
    assert_output(&run(trace.path(), &["--since", "+0.000000001"]), 0, SECOND, "");
    for limit in ["--head", "--tail"] {
        let output = run(trace.path(), &["-F", "text", "-e", "-mutex_lock", limit, "1"]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("\n  0.000000001 1/3 "), "{output:?}");
    }
}

#[test]
fn records_of_a_time_range_and_a_number_of_records() {
    let trace = trace();
    for (arguments, expected) in [
        (&["--since", "+1ns"][..], SECOND),
        (&["--until", "+1ns"], FIRST),
        (&["--since", "1795174740.000000002"], SECOND),
        (&["--since", "1795174740:000000001", "--until", "@1795174740.000000002"], FIRST),
        (&["--head", "1"], FIRST),
        (&["--tail", "1"], SECOND),
        (&["--head", "1", "--tail", "5"], FIRST),
        (&["--tail", "1", "-e", "mutex_lock"], FIRST),
        (&["--head", "0"], ""),
    ] {
        assert_output(&run(trace.path(), arguments), 0, expected, "");
    }
    let message = "trace-cat: no record matches: the options leave out all that the trace has\n";
    assert_output(&run(trace.path(), &["--until", "2026-11-20 00:00"]), 0, "", message);
    let output = run(trace.path(), &["--since", "yesterday"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("+1.5s"));
}

#[test]
fn calls_by_their_object_and_by_how_long_they_waited() {
    let trace = trace();
    let line = |time: u32, event: &str, arguments: &str| {
        format!("1795174740:{time:09}:0000002:0000001:0x7fc5de3f86c0:{event}:{arguments}\n")
    };
    let waited = line(50, "02:02:2", "0:1:0:0:0");
    let wait = [line(60, "03:04:1", "0x10:0x559469ed90a0:0:0:0"), line(2060, "03:04:2", "0:0:0:0:0")].concat();
    let hangs = line(5000, "02:02:1", "0x20:0:0:0:0");
    let text = format!("rubbish\n{FIRST}{waited}{wait}{hangs}");
    fs::write(trace.path().join("tr.0000001.002"), text).unwrap();
    for (arguments, expected) in [
        (&["--object", "0x559469ed90a0"][..], format!("{FIRST}{SECOND}{waited}{wait}")),
        (&["--object", "0x10", "--object", "0x20"], format!("{wait}{hangs}")),
        (&["--object", "0x559469ed90a0", "-e", "mutex_lock"], format!("{FIRST}{waited}")),
        (&["--object", "0x559469ed90a0", "--tail", "1"], line(2060, "03:04:2", "0:0:0:0:0")),
        (&["--blocked"], format!("{FIRST}{waited}{wait}{hangs}")),
        (&["--blocked", "--since", "+49ns", "-e", "mutex"], format!("{waited}{hangs}")),
        // Nobody knows when the process ended, so the call that hangs may have lasted that long.
        (&["--longer", "2us"], format!("{wait}{hangs}")),
        (&["--longer", "49ns", "--head", "2"], format!("{FIRST}{waited}")),
        (&["--longer", "2us", "--object", "0x20"], hangs.clone()),
        (&["--longer", "3us", "--object", "0x10"], String::new()),
        (&["--tid", "0x7fc5de3f86c0", "-l", "3"], SECOND.to_owned()),
        (&["--tid", "0x7fc5de3f86c1"], String::new()),
    ] {
        let output = run(trace.path(), arguments);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{arguments:?}");
        assert_eq!(output.status.code(), Some(1), "the rubbish is reported");
    }
}

#[test]
fn records_are_sorted_by_event_or_thread_and_split_into_files() {
    let trace = trace();
    let third = "1795174740:000000003:0000002:0000001:0x00c5de3f86c0:02:02:2:0:0:0:0:0\n";
    fs::write(trace.path().join("tr.0000001.002"), format!("{FIRST}{third}")).unwrap();
    let all = format!("{FIRST}{SECOND}{third}");
    assert_output(&run(trace.path(), &["--sort", "event"]), 0, &format!("{FIRST}{third}{SECOND}"), "");
    assert_output(&run(trace.path(), &["--sort", "tid"]), 0, &format!("{third}{FIRST}{SECOND}"), "");
    assert_output(&run(trace.path(), &["--sort", "tid", "--head", "2"]), 0, &format!("{FIRST}{SECOND}"), "");
    assert_output(&run(trace.path(), &["--sort", "time"]), 0, &all, "");
    assert_output(&run(trace.path(), &["--split", "lwp", "-o", "threads"]), 0, "", "");
    assert_output(&run(trace.path(), &["threads/lwp.0000002"]), 0, &format!("{FIRST}{third}"), "");
    assert_eq!(fs::read_to_string(trace.path().join("threads/lwp.0000003")).unwrap(), SECOND);
    assert_output(&run(trace.path(), &["threads"]), 0, &all, "");
    assert_output(&run(trace.path(), &["--split", "pid", "--sort", "tid", "-o", "processes"]), 0, "", "");
    assert_eq!(
        fs::read_to_string(trace.path().join("processes/pid.0000001")).unwrap(),
        format!("{third}{FIRST}{SECOND}")
    );
    for (directory, message) in
        [("threads", "the directory for --split is not empty"), (".", "the directory for --split is not empty")]
    {
        let message = format!("trace-cat: {directory}: {message}\n");
        assert_output(&run(trace.path(), &["--split", "lwp", "-o", directory]), 1, "", &message);
    }
    let message = "trace-cat: tr.0000001.002: Not a directory\n";
    assert_output(&run(trace.path(), &["--split", "lwp", "-o", "tr.0000001.002", "tr.0000001.003"]), 1, "", message);
}

/// A call of two records is one line of `-F text`.
#[test]
fn head_and_tail_count_the_lines_of_text() {
    let trace = tempfile::tempdir().unwrap();
    let record =
        |time: u64, event: &str| format!("1795174740:{time:09}:0000002:0000001:0x7fc5de3f86c0:{event}:0x30:0:0:0:0\n");
    let pair = |time| [record(time, "02:02:1"), record(time, "02:02:2"), record(time + 1, "02:04:0")].concat();
    let records: String = (0..10).map(|number| pair(10 * number)).collect();
    fs::write(trace.path().join("tr.0000001.002"), &records).unwrap();
    let lines = |options: &[&str]| -> Vec<String> {
        let output = run(trace.path(), &[&["-F", "text"], options].concat());
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let all = lines(&[]);
    assert_eq!(all.len(), 1 + 20, "a heading and the calls");
    for count in [0, 1, 2, 5, 19, 20, 21] {
        let number = count.to_string();
        let [head, tail] = [["--head", &number], ["--tail", &number]].map(|options| lines(&options));
        let heading = if count == 0 { &all[..0] } else { &all[..1] };
        assert_eq!(head, [heading, &all[1..][..count.min(20)]].concat(), "{count}");
        assert_eq!(tail, [heading, &all[1..][20 - count.min(20)..]].concat(), "{count}");
    }
    assert_eq!(lines(&["--head", "7", "--tail", "3"]), [&all[..1], &all[5..8]].concat());
    assert_eq!(lines(&["--time", "abs", "--tail", "3"]).len(), 1 + 3);
    let calls = |options: &[&str]| run(trace.path(), &[&["-F", "json", "--calls"], options].concat()).stdout;
    assert!(calls(&[]).ends_with(&calls(&["--tail", "4"])) && calls(&[]).starts_with(&calls(&["--head", "4"])));
    assert_eq!(calls(&["--tail", "4"]).iter().filter(|byte| **byte == b'\n').count(), 4);
}

/// Adds a later run to the directory `trace`; its process has number 9. Returns its record.
fn second_run(trace: &Path) -> String {
    let later = SECOND.replace("740:000000002", "750:000000000").replace(":0000001:", ":0000009:");
    fs::write(trace.join("tr.0000009.003"), &later).unwrap();
    later
}

#[test]
fn several_runs_are_reported_and_the_last_can_be_selected() {
    let trace = trace();
    let later = second_run(trace.path());
    let output = run(trace.path(), &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{FIRST}{SECOND}{later}"));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.starts_with("trace-cat: .: 2 runs; --last is for the newest alone, of 2026-11-2"), "{message}");
    assert_eq!((message.matches('\n').count(), output.status.code()), (1, Some(0)));
    assert_output(&run(trace.path(), &["--last"]), 0, &later, "");
    // With files as arguments, runs do not matter.
    assert_output(&run(trace.path(), &["tr.0000001.002", "tr.0000009.003"]), 0, &format!("{FIRST}{later}"), "");
    let (first, all) = (format!("{FIRST}{SECOND}"), format!("{FIRST}{SECOND}{later}"));
    for (numbers, records) in [("1", first), ("2", later), ("2,1,1", all)] {
        assert_output(&run(trace.path(), &["--run", numbers]), 0, &records, "");
    }
    let message = "trace-cat: there is no run 3, but 2 (--stat lists several)";
    let output = run(trace.path(), &["--run", "3"]);
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).lines().next()),
        (Some(2), Some(message))
    );
    for arguments in
        [["--last", "--recover"], ["--run=1", "--last"], ["--all-runs", "--follow"], ["--run=1", "--recover"]]
    {
        assert_eq!(run(trace.path(), &arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn losses_are_counted_and_shown_whatever_calls_are_selected() {
    let trace = trace();
    let lost = SECOND.replace("02:04:0", "00:01:0");
    assert_ne!(lost, SECOND);
    fs::write(trace.path().join("tr.0000001.005"), lost).unwrap();
    for filter in [&["--blocked"][..], &["--longer", "1s"], &["--object", "0x9999"]] {
        let stat = run(trace.path(), &[filter, &["--stat"]].concat());
        let text = String::from_utf8(stat.stdout).unwrap();
        assert!(!text.lines().next().unwrap().ends_with(", 0 lost"), "{filter:?}: {text}");
        let shown = run(trace.path(), &[filter, &["-F", "text"]].concat());
        assert!(String::from_utf8_lossy(&shown.stdout).contains("trace_lost("), "{filter:?}");
    }
}

#[test]
fn stat_counts_what_is_selected() {
    let trace = trace();
    second_run(trace.path());
    let lines = |arguments: &[&str]| {
        let output = run(trace.path(), arguments);
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().take(3).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&["--stat"]), ["records    3, 0 lost", "processes  2, 3 threads", "runs       2"]);
    assert_eq!(lines(&["--stat", "-e", "mutex_lock"])[..2], ["records    1, 0 lost", "processes  1, 1 threads"]);
    assert_eq!(lines(&["--stat", "--last"]), ["records    1, 0 lost", "processes  1, 1 threads", "runs       1"]);
    assert_eq!(lines(&["--stat", "--run", "1,2"])[2], "runs       2");
    for format in ["-Fcsv", "--recover", "--time=abs"] {
        assert_eq!(run(trace.path(), &["--stat", format]).status.code(), Some(2), "{format}");
    }
}

/// Records of process 1, given as seconds, LWP, event and arguments.
fn records(records: &[(u64, u32, &str, &str)]) -> String {
    let line = |&(second, lwp, event, arguments): &(u64, u32, &str, &str)| {
        format!("{:010}:000000000:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:{arguments}:0:0:0:0\n", 1795174740 + second)
    };
    records.iter().map(line).collect()
}

#[test]
fn open_calls_last_as_long_as_their_process_is_known_to() {
    let trace = tempfile::tempdir().unwrap();
    let first = [(0, 2, "02:02:1", "0x10"), (1, 3, "02:04:0", "0x20")];
    let lines = |more: &[(u64, u32, &str, &str)], filter: &[&str]| {
        fs::write(trace.path().join("tr.0000001.002"), records(&[&first[..], more].concat())).unwrap();
        let output = run(trace.path(), &[&["-F", "text"], filter].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let shown = text.lines().filter(|line| line.contains("mutex_lock(")).map(|line| line[70..].to_owned());
        (shown.collect::<Vec<_>>(), String::from_utf8(output.stderr).unwrap())
    };
    // Of a killed process the end is unknown, so the call may have lasted longer.
    assert_eq!(lines(&[], &["--longer", "5s"]), (vec!["open           1.000 s or more".to_owned()], String::new()));
    let exit = (6, 3, "11:04:0", "0");
    assert_eq!(lines(&[exit], &["--longer", "5s"]).0, ["open           6.000 s at end"]);
    assert_eq!(lines(&[exit], &["--longer", "7s"]).0, [""; 0]);
    // The return record may be among the lost ones: the call is known to have lasted until then.
    let lost = (2, 2, "00:01:0", "9");
    let note = "trace-cat: calls: 1 more were open when records began to be lost, and may meet the conditions\n";
    assert_eq!(lines(&[lost, exit], &["--longer", "5s"]), (Vec::new(), note.to_owned()));
    assert_eq!(lines(&[lost, exit], &["--blocked"]), (Vec::new(), note.to_owned()));
    assert_eq!(lines(&[lost, exit], &["--longer", "2s"]).0, ["open           2.000 s cut off"]);
}
