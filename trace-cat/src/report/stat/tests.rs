//! The counts of small traces, with exact tables.

use std::fs;

use super::counts::OBJECTS_MAX;
use super::*;
use crate::testing::test_trace::record;

#[test]
fn everything_is_counted_and_shown() {
    let directory = tempfile::tempdir().unwrap();
    let trinfo = "pid 1\nppid 7\ncmdline sort -n\nlevel blocked\nbuffer ring\nring 65536\n";
    fs::write(directory.path().join("trinfo.0000001"), trinfo).unwrap();
    fs::write(directory.path().join("tr.0000001.001"), "").unwrap();
    let mut counts = TraceCounts::new(vec![directory.path().to_owned().into()], Some(2));
    let mut out = Vec::new();
    let pid = |line: String| line.replace(":0000001:0x7fc5", ":0000002:0x7fc5");
    for line in [
        record(1_000_000_000, 1, "02:02:1", 16),
        record(1_000_001_500, 1, "02:02:2", 0).replace("02:02:2:0:0", "02:02:2:0:1"),
        record(1_000_002_000, 1, "02:04:0", 16),
        record(1_000_003_000, 3, "02:03:0", 17),
        pid(record(1_000_004_000, 2, "02:03:0", 16)),
        pid(record(1_000_005_000, 2, "04:31:0", 16)),
        pid(record(3_000_000_000, 2, "00:01:0", 5)),
        pid(record(3_000_000_000, 2, "12:07:0", 5)),
        "rubbish\n".to_owned(),
    ] {
        counts.record(line.as_bytes(), &mut out);
    }
    assert!(out.is_empty());
    counts.end(&mut out);
    let text = String::from_utf8(out).unwrap();
    let (before, time) = text.split_once("time       from ").unwrap();
    let (_, after) = time.split_once(" on, ").unwrap();
    let expected = "\
records    8, 5 lost
processes  2, 3 threads
runs       2
TIME
2.000 s

process   parent  threads     records       lost       began        took  command
      1        7        2           4          0        0 ns    3.000 us  sort -n
      2        -        1           4          5    4.000 us     1.999 s

event                       calls     records     blocked     in calls     open
mutex_lock                      1           2           1     1.500 us
mutex_trylock                   2           2
trace_lost                      1           1
mutex_unlock                    1           1
sema_open                       1           1
user.07                         1           1

objects                     count
mutex                           3
sema                            1

process 1: only calls that blocked were recorded (THR_TRACE_LEVEL)
process 1: each thread's ring has room for 65536 bytes of records (THR_TRACE_RING)
";
    assert_eq!(format!("{before}TIME\n{after}"), expected);
}

#[test]
fn the_document_has_what_the_tables_have() {
    let directory = tempfile::tempdir().unwrap();
    let trinfo = "pid 1\nppid 7\ncmdline sh -c echo\\x20\\x22x\\x22\nlevel blocked\n";
    fs::write(directory.path().join("trinfo.0000001"), trinfo).unwrap();
    fs::write(directory.path().join("tr.0000001.001"), "").unwrap();
    let mut counts = TraceCounts::new(vec![directory.path().to_owned().into()], Some(2));
    counts.as_document = true;
    let mut out = Vec::new();
    for line in [
        record(1_000_000_000, 1, "02:02:1", 16),
        record(1_000_001_500, 1, "02:02:2", 0).replace("02:02:2:0:0", "02:02:2:0:1"),
        record(1_000_002_000, 3, "02:04:0", 16),
        record(3_000_000_000, 1, "00:01:0", 5),
    ] {
        counts.record(line.as_bytes(), &mut out);
    }
    counts.end(&mut out);
    let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let event = |name: &str, category: &str, numbers: [u64; 2]| {
        serde_json::json!({ "event": name, "category": category, "calls": numbers[0], "records": numbers[1],
                            "blocked": null, "duration": null, "open": 0 })
    };
    let mut lock = event("mutex_lock", "mutex", [1, 2]);
    (lock["blocked"], lock["duration"]) = (1.into(), 1500.into());
    let expected = serde_json::json!({
        "format": 1, "origin": "0000000001.000000000", "span": 2_000_000_000, "records": 4, "lost": 5, "runs": 2,
        "processes": [{
            "pid": 1, "parent": 7, "command": "sh -c 'echo \"x\"'", "threads": 2, "records": 4, "lost": 5, "begin": 0,
            "end": 2_000_000_000, "notes": ["only calls that blocked were recorded (THR_TRACE_LEVEL)"],
        }],
        "events": [lock, event("trace_lost", "trace", [1, 1]), event("mutex_unlock", "mutex", [1, 1])],
        "objects": { "mutex": 1 },
    });
    assert_eq!(document, expected);
}

#[test]
fn an_empty_trace_has_counts() {
    let mut out = Vec::new();
    TraceCounts::new(Vec::new(), None).end(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "records    0, 0 lost\nprocesses  0, 0 threads\n");
}

#[test]
fn losses_that_no_loss_record_counts_are_counted() {
    let losing = || {
        let mut counts = TraceCounts::new(Vec::new(), None).with_unreported_losses(vec![(1, 8), (2, 3)]);
        counts.record(record(1_000_000_000, 1, "02:02:1", 16).as_bytes(), &mut Vec::new());
        counts
    };
    let mut tables = Vec::new();
    losing().end(&mut tables);
    let tables = String::from_utf8(tables).unwrap();
    assert!(tables.starts_with("records    1, 11 lost\n"), "{tables}");
    let process = tables.lines().find(|line| line.starts_with("      1 ")).unwrap();
    assert_eq!(process.split_whitespace().nth(4), Some("8"), "{process}");
    let (mut counts, mut document) = (losing(), Vec::new());
    counts.as_document = true;
    counts.end(&mut document);
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    assert_eq!((&document["lost"], &document["processes"][0]["lost"]), (&11.into(), &8.into()));
}

#[test]
fn objects_are_bounded() {
    let mut counts = TraceCounts::new(Vec::new(), None);
    counts.object_count = OBJECTS_MAX - 1;
    let mut out = Vec::new();
    for address in 1..10 {
        counts.record(record(1, 1, "02:04:0", address).as_bytes(), &mut out);
    }
    assert_eq!(counts.objects[&2].len(), 1);
    counts.end(&mut out);
    assert!(String::from_utf8(out).unwrap().contains("There are more objects"));
}

/// The line of an event in the counts of these records.
fn event_line(lines: &[String], event: &str) -> String {
    let (mut counts, mut out) = (TraceCounts::new(Vec::new(), None), Vec::new());
    lines.iter().for_each(|line| counts.record(line.as_bytes(), &mut out));
    counts.end(&mut out);
    let text = String::from_utf8(out).unwrap();
    text.lines().find(|line| line.starts_with(event)).unwrap().to_owned()
}

#[test]
fn a_call_in_a_handler_does_not_end_the_call_that_it_interrupts() {
    let lines = [
        record(1_000, 1, "04:02:1", 16),
        record(1_500, 1, "04:02:1", 32),
        record(1_600, 1, "04:02:2", 0),
        record(2_000, 1, "04:02:2", 0),
    ];
    assert_eq!(
        event_line(&lines, "sema_wait"),
        "sema_wait                       2           4           2     1.100 us"
    );
}

#[test]
fn open_calls_wait_and_last_until_the_last_record_of_their_process() {
    let lines = [
        record(1_000, 1, "02:02:1", 16),
        record(2_000, 2, "02:02:1", 32),
        record(2_500, 1, "02:02:2", 0),
        record(3_000, 1, "02:02:1", 32),
        record(5_000, 3, "02:04:0", 48),
    ];
    let expected = "mutex_lock                      3           4           2     6.500 us        2";
    assert_eq!(event_line(&lines, "mutex_lock"), expected);
    let semaphore = [record(1_000, 1, "04:02:1", 16)];
    assert_eq!(
        event_line(&semaphore, "sema_wait"),
        "sema_wait                       1           1           1         0 ns        1"
    );
}

#[test]
fn a_return_record_alone_is_a_call() {
    let lines = [record(1_000, 1, "02:02:2", 0)];
    assert_eq!(
        event_line(&lines, "mutex_lock"),
        "mutex_lock                      1           1           0         0 ns"
    );
}

#[test]
fn a_semaphore_that_processes_share_is_one_object() {
    let mut counts = TraceCounts::new(Vec::new(), None);
    let mut put = |pid: u32, event: &str, arguments: &str| {
        let line = format!("1795174740:000000000:0000001:{pid:07}:0x7fc5de3f86c0:{event}:{arguments}\n");
        counts.record(line.as_bytes(), &mut Vec::new());
    };
    put(1, "04:01:0", "0x10:1:0:0:0");
    put(1, "04:01:0", "0x20:0:0:0:0");
    put(1, "04:31:0", "0x30:0:0:0:0");
    put(4, "04:01:0", "0x10:0:0:0:0");
    for pid in 1..=5 {
        for address in ["0x10", "0x20", "0x30"] {
            put(pid, "04:04:0", &format!("{address}:0:0:0:0"));
        }
    }
    // 3 is a child of 2, and 2 of 1; 4 is one, too, and has made a semaphore of its own. 5 is none.
    let parent = |pid| [None, None, Some(1), Some(2), Some(1), Some(5)][pid as usize];
    // 0x10: of 1, of 4 and of 5; 0x20: of each; 0x30: of 1 and of 5.
    assert_eq!(counts.count_objects(4, parent), 3 + 5 + 2);
    assert_eq!(counts.count_objects(4, |_| None), 15);
}
