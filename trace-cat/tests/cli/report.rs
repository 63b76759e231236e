//! Reports of traces whose waits are known.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::{assert_output, run};

/// LWP 2 has mutex 0x10 from second 1 to 5, and LWP 3 waits for it from 2 to 6, when LWP 4 has signalled the condition 0x20 for
/// which LWP 5 waits from 3 to 7 with mutex 0x30. LWP 2 has rwlock 0x40, for which nobody waits, from 8 to 9.
fn waits() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let lines = [
        (0, 2, "01:30:0", "0"),
        (1, 2, "02:02:1", "0x10"),
        (1, 2, "02:02:2", "0:0"),
        (2, 3, "02:02:1", "0x10"),
        (2, 5, "02:02:1", "0x30"),
        (2, 5, "02:02:2", "0:0"),
        (3, 5, "03:04:1", "0x20:0x30"),
        (5, 2, "02:04:0", "0x10:0:1"),
        (6, 3, "02:02:2", "0:1"),
        (6, 4, "03:02:0", "0x20:0:1"),
        (7, 5, "03:04:2", "0"),
        (7, 3, "02:04:0", "0x10:0"),
        (7, 5, "02:04:0", "0x30:0"),
        (8, 2, "05:03:1", "0x40"),
        (8, 2, "05:03:2", "0:0"),
        (9, 2, "05:04:0", "0x40:0"),
        (10, 2, "11:04:0", "0"),
    ];
    let mut text = String::new();
    for (second, lwp, event, arguments) in lines {
        let zeros = ":0".repeat(4 - arguments.matches(':').count());
        text += &format!(
            "{:010}:000000000:{lwp:07}:0000001:0x{lwp:012x}:{event}:{arguments}{zeros}\n",
            1_795_174_740 + second
        );
    }
    fs::write(directory.path().join("tr.0000001.002"), text).unwrap();
    directory
}

fn document(directory: &Path, options: &[&str]) -> Value {
    let output = run(directory, &[&["report", "-F", "json"], options].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A figure in seconds; -1 if it is not known.
fn seconds(value: &Value) -> i64 {
    value.as_u64().map_or(-1, |time| {
        assert_eq!(time % 1_000_000_000, 0);
        time as i64 / 1_000_000_000
    })
}

/// Address, waits, and seconds waited, handoff and held of each object.
fn objects(document: &Value) -> Vec<(&str, u64, [i64; 3])> {
    let objects = document["objects"].as_array().unwrap().iter();
    let figures = |object: &Value| ["waited", "handoff", "held"].map(|key| seconds(&object[key]));
    objects
        .map(|object| (object["address"].as_str().unwrap(), object["waits"].as_u64().unwrap(), figures(object)))
        .collect()
}

#[test]
fn a_range_of_time_has_its_part_of_waits_and_holds() {
    let trace = waits();
    let all = document(trace.path(), &[]);
    let (mutex, cond) = (("0x10", 1, [4, 1, 5]), ("0x20", 1, [4, -1, -1]));
    assert_eq!(objects(&all), [mutex, cond, ("0x30", 0, [0, 0, 1]), ("0x40", 0, [0, 0, 1])]);
    assert_eq!([&all["contention"], &all["idleness"], &all["since"]].map(seconds), [4, 4, -1]);
    // The hold and the wait began before.
    let part = document(trace.path(), &["--since", "+4s", "--until", "+6s"]);
    assert_eq!(objects(&part), [("0x10", 1, [2, 1, 1]), ("0x20", 1, [2, -1, -1])]);
    assert_eq!([&part["contention"], &part["idleness"], &part["since"], &part["until"]].map(seconds), [2, 2, 4, 6]);
    assert_eq!(seconds(&part["objects"][0]["blamed"][0]["time"]), 1);
    assert_eq!(part["objects"][0]["blamed"][0]["thread"], 2);
    let threads: Vec<i64> = part["threads"].as_array().unwrap().iter().map(|row| seconds(&row["contention"])).collect();
    assert_eq!(threads.iter().sum::<i64>(), 2, "{part:#}");
    assert_eq!(seconds(&part["pairs"][0]["waited"]), 1);
    let text = run(trace.path(), &["report", "--since", "+4s", "--until", "+6s"]).stdout;
    assert!(
        String::from_utf8(text).unwrap().contains("\nonly        from 4.000 s to 6.000 s after the first record\n")
    );
    assert_eq!(objects(&document(trace.path(), &["--since", "+8s"])), [("0x40", 0, [0, 0, 1])]);
}

#[test]
fn kinds_of_objects_are_selected_by_their_events() {
    let trace = waits();
    let selected = |options: &[&str]| {
        let document = document(trace.path(), options);
        let addresses = objects(&document).iter().map(|object| object.0.to_owned()).collect::<Vec<_>>().join(" ");
        (addresses, [&document["contention"], &document["idleness"]].map(seconds))
    };
    assert_eq!(selected(&["-e", "mutex,rwlock"]), ("0x10 0x30 0x40".to_owned(), [4, 0]));
    assert_eq!(selected(&["-e", "cond:thread"]), ("0x20".to_owned(), [0, 4]));
    assert_eq!(selected(&["-e", "-mutex"]), ("0x20 0x40".to_owned(), [0, 4]));
    assert_eq!(selected(&["--only-contention"]), ("0x10 0x30 0x40".to_owned(), [4, -1]));
    assert_eq!(selected(&["--only-contention", "-p", "7"]), (String::new(), [0, -1]));
    assert_eq!(selected(&["-l", "5"]).1, [0, 4]);
    let text = run(trace.path(), &["report", "--only-contention"]);
    assert!(!String::from_utf8(text.stdout).unwrap().contains("idleness"));
    let thread = run(trace.path(), &["report", "--by", "thread", "--top", "1", "-e", "mutex"]);
    let thread = String::from_utf8(thread.stdout).unwrap();
    assert!(
        thread.contains("/3 of 1 ") && !thread.contains("/5 of") && thread.ends_with(" more (--top)\n"),
        "{thread}"
    );
    assert_eq!(run(trace.path(), &["report", "-e", "mutxe"]).status.code(), Some(2));
    let nothing = run(trace.path(), &["report", "-l", "77", "-o", "page"]);
    let message = "trace-cat: no wait matches: the options leave out all that the trace has\n";
    assert_output(&nothing, 0, "", message);
}

#[test]
fn tables_are_printed_as_csv() {
    let trace = waits();
    let table = |options: &[&str]| {
        let output = run(trace.path(), &[&["report", "-F", "csv"], options].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let objects = table(&[]);
    assert!(
        objects.starts_with("object,kind,name,pid,address,site,calls,waits,waited,wait_mean,")
            && objects.lines().count() == 5
    );
    assert!(
        objects.lines().nth(1).unwrap().starts_with("1:0x10#1,mutex,,1,0x10,,4,1,4000000000,4000000000,"),
        "{objects}"
    );
    assert_eq!(
        table(&["--top", "1", "--by", "object"]).lines().collect::<Vec<_>>(),
        objects.lines().take(2).collect::<Vec<_>>()
    );
    assert_eq!(table(&["--by", "pair"]), "waiter,holder,object,waits,waited\n3,2,1:0x10#1,1,3000000000\n");
    assert_eq!(table(&["--by", "pair", "-l", "5"]), "waiter,holder,object,waits,waited\n");
    assert_eq!(table(&["--by", "site"]), "site,calls,waits,contention,idleness,held,blamed\n");
    assert!(
        table(&["--by", "thread", "--since", "+6s"]).contains("\n5,1,,,"),
        "{}",
        table(&["--by", "thread", "--since", "+6s"])
    );
}

#[test]
fn limits_that_are_exceeded_are_status_3() {
    let trace = waits();
    // Without it nobody knows whether all calls were recorded.
    fs::write(trace.path().join("trinfo.0000001"), "format 1\npid 1\nevents all\nlevel all\n").unwrap();
    let checked = |conditions: &[&str]| {
        let words: Vec<&str> = conditions.iter().flat_map(|condition| ["--fail-if", condition]).collect();
        let output = run(trace.path(), &[&["report", "--by", "pair"], &words[..]].concat());
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap(), output.stdout.len() > 80)
    };
    assert_eq!(checked(&["contention > 50%", "deadlocks > 0", "max(0x10) > 4s"]), (0, String::new(), true));
    // 4 of the 30 seconds that the four threads lived together.
    let message = "trace-cat: --fail-if: fails, since contention > 9% holds: it is 13.3 %\n\
                   trace-cat: --fail-if: fails, since max(0x10) >= 4s holds: it is 4.00 s (mutex 1:0x10#1)\n";
    assert_eq!(checked(&["contention > 9%", "stuck > 0", "max(0x10) >= 4s"]), (3, message.to_owned(), true));
    let (status, error, is_printed) = checked(&["waits(0x10) > 0", "p99(queue) > 1s"]);
    assert!(
        error.contains("waits(0x10) > 0 holds: it is 1 ") && error.contains("no object is named 'queue'"),
        "{error}"
    );
    // What is found is not in doubt because of another figure.
    assert_eq!((status, is_printed), (3, true));
    let (status, error, is_printed) = checked(&["p99(queue) > 1s"]);
    assert!(status == 2 && is_printed && error.contains("no object is named 'queue'"), "{error}");
    let (status, error, is_printed) = checked(&["contention >> 1%"]);
    assert!(status == 2 && !is_printed && error.contains("column 13: a share"), "{error}");
}

/// LWP 3 waits 50 times for mutex 0x10, which LWP 2 has, for some microseconds each time, and as long for 0x20 in every trace.
fn repeated_waits(microseconds: u64) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for round in 0..100 {
        let (object, wait) = if round % 2 == 0 { ("0x10", microseconds) } else { ("0x20", 100) };
        let start = round * 5_000_000;
        let end = start + 1_000 + wait * (900 + round * 2);
        let lines = [
            (start, 2, "02:02:1", format!("{object}:0")),
            (start, 2, "02:02:2", "0:0".to_owned()),
            (start + 1_000, 3, "02:02:1", format!("{object}:0")),
            (end, 2, "02:04:0", format!("{object}:0")),
            (end, 3, "02:02:2", "0:1".to_owned()),
            (end + 10, 3, "02:04:0", format!("{object}:0")),
        ];
        for (time, lwp, event, arguments) in lines {
            text += &format!("1795174740:{time:09}:{lwp:07}:0000001:0x{lwp:012x}:{event}:{arguments}:0:0:0\n");
        }
    }
    fs::write(directory.path().join("tr.0000001.002"), text).unwrap();
    fs::write(directory.path().join("names"), "0x10 queue\n0x20 same\n").unwrap();
    directory
}

#[test]
fn a_trace_is_compared_with_an_older_one() {
    let (before, after) = (repeated_waits(100), repeated_waits(200));
    let compare = |old: &TempDir, new: &TempDir, options: &[&str]| {
        let old = old.path().to_str().unwrap();
        let output = run(new.path(), &[&["report", "--alias", "names", "--against", old], options].concat());
        let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), out, error)
    };
    let (status, text, error) = compare(&before, &after, &[]);
    assert_eq!((status, error.as_str()), (0, ""));
    let (worse, same) = ("\nmutex queue ", "\nobjects with waits, but no change that is certain: 1\n");
    assert!(text.contains(worse) && text.contains(" worse\n") && text.contains(same), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let (_, text, _) = compare(&after, &before, &["--by", "object"]);
    assert!(text.contains(worse) && text.contains(" better\n") && !text.contains("sites"), "{text}");

    let (_, document, _) = compare(&before, &after, &["-F", "json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    let rows = document["against"]["objects"].as_array().unwrap();
    let shown: Vec<_> = rows.iter().map(|row| (&row["name"], &row["change"], row["new"]["waits"].as_u64())).collect();
    assert_eq!(shown, [(&"queue".into(), &"worse".into(), Some(50)), (&"same".into(), &"none".into(), Some(50))]);
    let [low, high] = [0, 1].map(|index| rows[0]["interval"][index].as_f64().unwrap());
    assert!(low > 1.9 && high < 2.1, "{low} {high}");
    assert_eq!(document["objects"][0]["name"], "queue");

    let limit = ["--fail-if", "regression > 10%"];
    let (status, _, error) = compare(&before, &after, &limit);
    assert!(status == 3 && error.contains("since regression > 10% holds: it is "), "{error}");
    assert_eq!(compare(&before, &before, &limit).0, 0);
    assert_eq!(compare(&after, &before, &limit).0, 0);
    let alone = run(after.path(), &[&["report"], &limit[..]].concat());
    assert_eq!(alone.status.code(), Some(2));
    assert_eq!(compare(&before, &after, &["-F", "csv"]).0, 2);
    assert_eq!(compare(&before, &after, &["-o", "tr.0000001.002"]).0, 2);
}

#[test]
fn processes_that_lack_the_same_share_a_line() {
    let trace = tempfile::tempdir().unwrap();
    for (pid, level) in [(1, "blocked"), (2, "blocked"), (3, "all"), (4, "blocked"), (5, "blocked")] {
        let record = format!("1795174740:{pid:09}:{pid:07}:{pid:07}:0x{pid:012x}:01:04:0:0:0:0:0:0\n");
        fs::write(trace.path().join(format!("tr.{pid:07x}.{pid:03x}")), record).unwrap();
        let trinfo = format!("format 1\npid {pid}\nlevel {level}\n");
        fs::write(trace.path().join(format!("trinfo.{pid:07x}")), trinfo).unwrap();
    }
    let output = run(trace.path(), &["report"]);
    let page = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = page.lines().filter(|line| line.contains("THR_TRACE_LEVEL")).collect();
    let expected = "missing     processes 1, 2 and 2 more: only calls that blocked were recorded (THR_TRACE_LEVEL)";
    assert_eq!(lines, [expected], "{page}");
}
