//! Stacks of calls: they are selected and printed with their records.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{command, run};

/// Records of process 1, as time, LWP, event and arguments. LWP 2 waits for a mutex, LWP 3 for a condition at the same time, LWP 4
/// locks without a wait and then fails.
const RECORDS: [(u32, u32, &str, &str); 13] = [
    (10, 2, "02:02:1", "0x10:0:0:0:0x401136"),
    (10, 2, "00:03:1", "0x401136:0x401200:0x401300:0x401400:0x401500"),
    (10, 2, "00:03:2", "0x401600:0x1:0:0:0"),
    (10, 3, "03:04:1", "0x20:0x10:0:0:0"),
    (10, 3, "00:03:1", "0x402000:0:0:0:0"),
    (20, 4, "02:02:1", "0x30:0:0:0:0"),
    (20, 4, "02:02:2", "0:0:0:0:0"),
    (30, 4, "02:02:1", "0x30:0:0:0:0"),
    (30, 4, "02:02:2", "35:0:0:0:0"),
    (30, 4, "00:03:1", "0x403000:0x403100:0:0:0"),
    (60, 2, "02:02:2", "0:1:0:0:0"),
    (70, 3, "03:04:2", "0:0:0:0:0"),
    (80, 4, "11:04:0", "0:0:0:0:0"),
];

/// Which of the records are parts of stacks, and which records they belong to.
const STACKS: [(usize, usize); 4] = [(1, 0), (2, 0), (4, 3), (9, 8)];

fn line((time, lwp, event, arguments): (u32, u32, &str, &str)) -> String {
    format!("1795174740:{time:09}:{lwp:07}:0000001:0x7fc5de3f86c{lwp}:{event}:{arguments}\n")
}

fn trace() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for lwp in 2..5 {
        let lines: String = RECORDS.into_iter().filter(|record| record.1 == lwp).map(line).collect();
        fs::write(directory.path().join(format!("tr.0000001.{lwp:03}")), lines).unwrap();
    }
    directory
}

/// The indexes of the records in some lines.
fn indexes(text: &str) -> Vec<usize> {
    let index = |found: &str| RECORDS.iter().position(|record| line(*record).trim_end() == found).unwrap();
    text.lines().map(index).collect()
}

/// What the options print.
fn printed(directory: &Path, options: &[&str]) -> String {
    let output = run(directory, options);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn stacks_are_selected_with_their_records() {
    let trace = trace();
    let all = [&["-l", "2", "-l", "3", "-l", "4"][..], &["--since", "+0"], &["--head", "99"], &["--tail", "99"]];
    for (options, expected) in [
        (&["-e", "mutex"][..], &[0, 5, 6, 7, 8, 10][..]),
        (&["-e", "cond"], &[3, 11]),
        (&["-e", "sema"], &[]),
        (&["-e", "-mutex,-cond"], &[12]),
        (&["-l", "3"], &[3, 11]),
        (&["--blocked"], &[0, 3, 10, 11]),
        (&["--object", "0x10"], &[0, 3, 10, 11]),
        (&["--object", "0x30", "-e", "mutex"], &[5, 6, 7, 8]),
        (&["--longer", "51ns"], &[3, 11]),
        (&["--since", "+15ns", "--until", "+65ns"], &[7, 8, 10, 11]),
        (&["--until", "+5ns"], &[0, 3]),
        (&["--head", "1"], &[0]),
        (&["--head", "2"], &[0, 3]),
        (&["--tail", "4"], &[8, 10, 11, 12]),
        (&["--tail", "5", "-e", "mutex"], &[5, 6, 7, 8, 10]),
        (&["--tail", "4", "--head", "7"], &[6, 7, 8, 10]),
    ] {
        let stacks = STACKS.into_iter().filter(|(_, owner)| expected.contains(owner)).map(|(stack, _)| stack);
        let mut expected: Vec<usize> = expected.iter().copied().chain(stacks).collect();
        expected.sort_unstable();
        let mut found = indexes(&printed(trace.path(), options));
        found.sort_unstable();
        assert_eq!(found, expected, "{options:?}");
    }
    for options in all {
        assert_eq!(indexes(&printed(trace.path(), options)).len(), RECORDS.len(), "{options:?}");
    }
    let csv = printed(trace.path(), &["-F", "csv", "--head", "1", "-e", "cond"]);
    assert!(csv.lines().count() == 3 && csv.ends_with(",frame_1 frame_2 frame_3 frame_4 frame_5,\n"), "{csv}");
}

#[test]
fn stacks_have_the_places_and_files_of_their_records() {
    let trace = trace();
    let by_event = indexes(&printed(trace.path(), &["--sort", "event", "-e", "mutex,cond"]));
    assert_eq!(by_event, [0, 1, 2, 5, 6, 7, 8, 9, 10, 3, 4, 11]);
    let parts = trace.path().join("parts");
    assert!(run(trace.path(), &["--split", "object", "-o", parts.to_str().unwrap(), "."]).status.success());
    let file = |name: &str| indexes(&fs::read_to_string(parts.join(name)).unwrap());
    assert_eq!(file("object.0x10"), [0, 1, 2, 10]);
    assert_eq!((file("object.0x20"), file("object.0x30")), (vec![3, 4, 11], vec![5, 6, 7, 8, 9]));
    assert_eq!(file("object.none"), [12]);
}

#[test]
fn text_has_the_frames_under_the_calls() {
    let trace = trace();
    let info = "format 1\npid 1\nmap 0x401000 0x403000 0x1000 - /bin/program\n";
    fs::write(trace.path().join("trinfo.0000001"), info).unwrap();
    let without = printed(trace.path(), &["-F", "text"]);
    assert!(!without.contains("trace_stack") && !without.contains('#') && without.lines().count() == 8, "{without}");
    let frames = |text: &str| {
        let lines = text.lines().skip(1).map(|line| match line.trim_start().strip_prefix('#') {
            Some(frame) => frame.to_owned(),
            None => {
                line.split(&['(', '>', '<'][..]).next().unwrap()[13..].split_whitespace().collect::<Vec<_>>().join(" ")
            }
        });
        lines.collect::<Vec<String>>()
    };
    let first = ["0  program+0x1136", "1  program+0x1200", "2  program+0x1300", "3  program+0x1400"];
    let first =
        [&first[..], &["4  program+0x1500", "5  program+0x1600", "6  [could not be followed further]"]].concat();
    let condition = ["1/3", "0  program+0x2000"];
    let failed = ["1/4 mutex_lock", "0  [unmapped]", "1  [unmapped]"];
    let complete =
        [&["1/2"][..], &first, &condition, &["1/4 mutex_lock"], &failed, &["1/2", "1/3", "1/4 proc_exit"]].concat();
    assert_eq!(frames(&printed(trace.path(), &["-F", "text", "--stack"])), complete);
    for (options, expected) in [
        (&["--head", "1"][..], [&["1/2"], &first[..]].concat()),
        (&["--head", "2"], [&["1/2"][..], &first, &condition].concat()),
        (&["--tail", "4"], complete[complete.len() - 6..].to_vec()),
        (&["-e", "cond"], ["1/3 cond_wait", "0  program+0x2000"].to_vec()),
    ] {
        let text = printed(trace.path(), &[&["-F", "text", "--stack"], options].concat());
        assert_eq!(frames(&text), expected, "{options:?}\n{text}");
    }
    let wrong = run(trace.path(), &["-F", "csv", "--stack"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--stack is for -F text"));
}

#[test]
fn json_has_stacks() {
    let trace = trace();
    let records = printed(trace.path(), &["-F", "json", "-l", "2"]);
    let stacks: Vec<&str> =
        records.lines().filter_map(|line| Some(line.split_once("\"event\":\"trace_stack\",")?.1)).collect();
    let expected = [
        r#""which":1,"stack":["0x401136","0x401200","0x401300","0x401400","0x401500"]}"#,
        r#""which":2,"stack":["0x401600"],"stack_cut_off":true}"#,
    ];
    assert_eq!(stacks, expected);
    let stack_of = |options: &[&str]| {
        let text = printed(trace.path(), &[&["-F", "json", "--calls"], options].concat());
        let stacks = text.lines().map(|line| line.split_once(",\"stack\":").map_or("", |(_, stack)| stack).to_owned());
        stacks.collect::<Vec<String>>()
    };
    let first = r#"["0x401136","0x401200","0x401300","0x401400","0x401500","0x401600"],"stack_cut_off":true}"#;
    assert_eq!(stack_of(&[]), ["", r#"["0x403000","0x403100"]}"#, first, r#"["0x402000"]}"#, ""]);
    assert_eq!(stack_of(&["--head", "2"]), ["", r#"["0x403000","0x403100"]}"#]);
    let info = "format 1\npid 1\nmap 0x401000 0x403000 0x1000 - /bin/program\n";
    fs::write(trace.path().join("trinfo.0000001"), info).unwrap();
    assert_eq!(stack_of(&["--stack", "-e", "cond"]), [r#"["program+0x2000"]}"#]);
}

#[test]
fn followed_records_have_their_stacks() {
    let trace = trace();
    // Nothing runs there: what exists is printed.
    for (options, expected) in [
        (&["-e", "mutex"][..], &[0, 1, 2, 5, 6, 7, 8, 9, 10][..]),
        (&["--blocked"], &[0, 1, 2, 3, 4, 10, 11]),
        (&["--object", "0x20"], &[3, 4, 11]),
        (&["--longer", "51ns"], &[3, 4, 11]),
        (&["--tail", "4"], &[8, 9, 10, 11, 12]),
    ] {
        let output = command(trace.path()).args(["--follow", "--until-exit"]).args(options).output().unwrap();
        let mut found = indexes(std::str::from_utf8(&output.stdout).unwrap());
        found.sort_unstable();
        assert_eq!(found, expected, "{options:?} {output:?}");
    }
}
