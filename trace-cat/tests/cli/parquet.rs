//! `-F parquet`: what a reader of Parquet gets, and where files go.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use ::parquet::record::Field;

use super::hosts::{BOOTS, twins};
use super::{assert_output, run, trace};

/// The columns of a row that have a value, as texts.
type Cells = BTreeMap<String, String>;

fn rows(path: &Path) -> Vec<Cells> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let cells = |row: ::parquet::record::Row| {
        let columns = row.into_columns().into_iter().filter(|(_, field)| *field != Field::Null);
        columns.map(|(name, field)| (name, field.to_string().trim_matches('"').to_owned())).collect()
    };
    reader.get_row_iter(None).unwrap().map(|row| cells(row.unwrap())).collect()
}

/// The cells of these columns, of rows that have a kind.
fn cells(rows: &[Cells], kind: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let cell = |row: &Cells, column: &&str| row.get(*column).cloned().unwrap_or_default();
    let of_kind = rows.iter().filter(|row| row["kind"] == kind);
    of_kind.map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect()
}

/// Thread 2 has a mutex from 5 to 30; 3 waits for it from 10 to 31 and has it until it is killed; 4 waits for it from 40 on.
fn write_contended(directory: &Path) {
    let line = |time: u32, lwp: u32, event: &str, arguments: &str| {
        format!("1795174740:{time:09}:{lwp:07}:0000001:0x7fc5de3f8{lwp:03x}:{event}:{arguments}\n")
    };
    let write = |lwp: u32, lines: &[String]| {
        fs::write(directory.join(format!("tr.0000001.{lwp:03x}")), lines.concat()).unwrap();
    };
    let lock = |entry: u32, end: u32, lwp: u32, blocked: u32| {
        line(entry, lwp, "02:02:1", "0x10:0:0:0:0") + &line(end, lwp, "02:02:2", &format!("0:{blocked}:0:0:0"))
    };
    write(2, &[lock(5, 5, 2, 0), line(30, 2, "02:04:0", "0x10:0:1:0:0"), line(50, 2, "11:04:0", "-1:0:0:0:0")]);
    write(
        3,
        &[
            lock(10, 31, 3, 1),
            line(33, 3, "99:98:0", "18446744073709551615:-9223372036854775808:0xffffffffffffffff:0:7"),
        ],
    );
    write(4, &[line(40, 4, "02:02:1", "0x10:0:0:0:0")]);
}

/// The cells of a row in one text; times are since the beginning of the trace, and `-` is no value.
fn line(row: &[String]) -> String {
    let short = |cell: &String| match cell.strip_prefix("1795174740").and_then(|rest| rest.parse::<u64>().ok()) {
        Some(time) => time.to_string(),
        None if cell.is_empty() => "-".to_owned(),
        None => cell.clone(),
    };
    row.iter().map(short).collect::<Vec<String>>().join(" ")
}

#[test]
fn a_record_is_a_row_with_what_it_ended() {
    let trace = tempfile::tempdir().unwrap();
    write_contended(trace.path());
    assert_output(&run(trace.path(), &["-F", "parquet", "-o", "t.parquet", "--host", "db1", "."]), 0, "", "");
    let rows = rows(&trace.path().join("t.parquet"));
    let lines =
        |kind: &str, columns: &[&str]| cells(&rows, kind, columns).iter().map(|row| line(row)).collect::<Vec<_>>();
    let columns = "timestamp lwp event event_number which entry duration waited held holder waker object";
    let columns: Vec<&str> = columns.split(' ').collect();
    let expected = [
        "5 2 mutex_lock 202 1 - - - - - - 1:0x10#1",
        "5 2 mutex_lock 202 2 5 0 - - - - 1:0x10#1",
        "10 3 mutex_lock 202 1 - - - - - - 1:0x10#1",
        "30 2 mutex_unlock 204 0 30 0 - 25 - - 1:0x10#1",
        "31 3 mutex_lock 202 2 10 21 21 - 2 2 1:0x10#1",
        "33 3 99.98 9998 0 - - - - - - -",
        "40 4 mutex_lock 202 1 - - - - - - 1:0x10#1",
        "50 2 proc_exit 1104 0 50 0 - - - - -",
    ];
    assert_eq!(lines("record", &columns), expected);
    let arguments = cells(&rows, "record", &["a1", "a2", "a3", "a4", "a5"]);
    assert_eq!(arguments[5].join(" "), "-1 -9223372036854775808 -1 0 7");
    assert_eq!((arguments[3].join(" "), arguments[7].join(" ")), ("16 0 1 0 0".to_owned(), "-1 0 0 0 0".to_owned()));
    // What is open when the process ends has rows of its own.
    let columns = ["timestamp", "lwp", "entry", "duration", "waited", "held", "holder", "blamed", "open", "host"];
    assert_eq!(lines("call", &columns), ["50 4 40 10 - - - - true db1"]);
    assert_eq!(lines("wait", &columns), ["50 4 40 - 10 - 3 10 true db1"]);
    assert_eq!(lines("hold", &columns), ["50 3 31 - - 19 - - true db1"]);
}

/// Counts and sums over all rows are the report's, with and without a selection of times.
#[test]
fn counts_and_sums_are_those_of_the_report() {
    let trace = tempfile::tempdir().unwrap();
    write_contended(trace.path());
    for times in [&[][..], &["--since", "+10ns", "--until", "+40ns"]] {
        let table = run(trace.path(), &[&["-F", "parquet", "-o", "t.parquet", "."], times].concat());
        assert_output(&table, 0, "", "");
        let report = run(trace.path(), &[&["report", "-F", "json", "."], times].concat());
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        let rows = rows(&trace.path().join("t.parquet"));
        let sum = |column: &str| -> (u64, u64) {
            let values: Vec<u64> = rows.iter().filter_map(|row| row.get(column)?.parse().ok()).collect();
            (values.len() as u64, values.iter().sum())
        };
        let object = &report["objects"][0];
        let figures = |count: &str, sum: &str| (object[count].as_u64().unwrap(), object[sum].as_u64().unwrap());
        assert_eq!(sum("waited"), figures("waits", "waited"), "{times:?}");
        assert_eq!(sum("held"), figures("holds", "held"), "{times:?}");
        let pairs = report["pairs"].as_array().unwrap();
        let pairs = pairs.iter().map(|pair| pair["waited"].as_u64().unwrap());
        assert_eq!(sum("blamed"), (pairs.len() as u64, pairs.sum()), "{times:?}");
    }
}

#[test]
fn hosts_and_hours_have_directories_to_which_traces_are_added() {
    let (trace, fleet) = (trace(), tempfile::tempdir().unwrap());
    let later = "1795178341:000000002:0000003:0000001:0x7fc5de3f86c0:02:04:0:0x559469ed90a0:0:0:0:0\n";
    fs::write(trace.path().join("tr.0000001.003"), later).unwrap();
    let directory = fleet.path().join("fleet");
    let arguments = |host| ["-F", "parquet", "--partition", "--host", host, "-o", directory.to_str().unwrap(), "."];
    for host in ["a", "b/c"] {
        assert_output(&run(trace.path(), &arguments(host)), 0, "", "");
    }
    let name = "1795174740000000001.parquet";
    for host in ["host=a", "host=b%2Fc"] {
        let read = |hour: &str| rows(&directory.join(host).join(hour).join(name));
        let (first, second) = (read("hour=2026-11-20T11"), read("hour=2026-11-20T12"));
        let records = [cells(&first, "record", &["event"]), cells(&second, "record", &["event"])].concat();
        assert_eq!(records.concat(), ["mutex_lock", "mutex_unlock"]);
    }
    // The same trace again is refused, and nothing changes.
    let before = fs::read(directory.join("host=a/hour=2026-11-20T11").join(name)).unwrap();
    let output = run(trace.path(), &arguments("a"));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && message.contains("is in the table already"), "{message}");
    assert_eq!(fs::read(directory.join("host=a/hour=2026-11-20T11").join(name)).unwrap(), before);
    assert_eq!(fs::read_dir(directory.join("host=a/hour=2026-11-20T11")).unwrap().count(), 1);
}

/// Two hosts with the same process IDs have the same tables together as each alone, but for corrected times.
#[test]
fn processes_have_the_ids_of_their_own_host() {
    let trace = twins([&["1000 synchronized 0 0"], &["1000 synchronized 0 0"]], BOOTS, 0);
    let objects = |hosts: &[&str], host: &str| {
        run(trace.path(), &[&["-F", "parquet", "-o", "t.parquet"], hosts].concat());
        let mut rows = rows(&trace.path().join("t.parquet"));
        rows.retain(|row| row["host"] == host);
        cells(&rows, "record", &["pid", "lwp", "event", "a1", "object", "object_name", "waker"])
    };
    for host in ["alpha", "beta"] {
        let alone = objects(&[host], host);
        assert_eq!(objects(&["alpha", "beta"], host), alone);
        assert!(alone.iter().any(|row| row[4] == "1:0x10#1"), "{alone:?}");
    }
}

#[test]
fn a_table_that_cannot_be_completed_leaves_the_earlier_file() {
    let trace = trace();
    fs::create_dir(trace.path().join("out")).unwrap();
    let table = trace.path().join("out/t.parquet");
    fs::write(&table, "earlier").unwrap();
    // The header of the file is small, what follows is not.
    let line = format!("ulimit -f 0; exec {} -F parquet -o out/t.parquet .", env!("CARGO_BIN_EXE_trace-cat"));
    let output = Command::new("sh").args(["-c", &line]).current_dir(trace.path()).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && message.contains("File too large"), "{message}");
    assert_eq!(fs::read(&table).unwrap(), b"earlier");
    assert_eq!(fs::read_dir(trace.path().join("out")).unwrap().count(), 1);
    assert_output(&run(trace.path(), &["-F", "parquet", "-o", "out/t.parquet", "."]), 0, "", "");
    assert_eq!(cells(&rows(&table), "record", &["lwp"]).concat(), ["2", "3"]);
}

#[test]
fn an_empty_trace_is_a_table_without_rows() {
    let trace = tempfile::tempdir().unwrap();
    fs::write(trace.path().join("tr.0000001.001"), "").unwrap();
    assert_output(&run(trace.path(), &["-F", "parquet", "-o", "t.parquet", "."]), 0, "", "");
    assert_eq!(rows(&trace.path().join("t.parquet")), Vec::<Cells>::new());
}

#[test]
fn a_table_goes_through_a_pipe() {
    let trace = trace();
    let output = run(trace.path(), &["-F", "parquet", "--host", "a", "."]);
    fs::write(trace.path().join("piped"), output.stdout).unwrap();
    assert_eq!(cells(&rows(&trace.path().join("piped")), "record", &["host"]).concat(), ["a", "a"]);
}

#[test]
fn what_a_table_cannot_be_is_refused() {
    let trace = trace();
    for (arguments, message) in [
        (&["-F", "parquet", "--longer", "1ms"][..], "ask for those with waited or duration"),
        (&["-F", "parquet", "--blocked"], "ask for those with waited or duration"),
        (&["-F", "parquet", "--follow"], "a table that is complete"),
        (&["-F", "parquet", "--head", "3"], "--since and --until"),
        (&["-F", "parquet", "--partition"], "name one with -o"),
        (&["-F", "csv", "--partition", "-o", "x"], "--partition is for -F parquet"),
        (&["-F", "csv", "--host", "x"], "--host is for -F parquet"),
    ] {
        let output = run(trace.path(), arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(message), "{arguments:?}: {text}");
    }
    let message = "trace-cat: .: it is a directory: --partition makes a table of one\n";
    assert_output(&run(trace.path(), &["-F", "parquet", "-o", ".", "."]), 1, "", message);
    let line = format!("{} -F parquet .", env!("CARGO_BIN_EXE_trace-cat"));
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(trace.path()).stdin(Stdio::null());
    match script.env_remove("THR_TRACE_DIR").output() {
        Ok(output) => assert!(String::from_utf8_lossy(&output.stdout).contains("is not for terminals")),
        Err(error) => println!("script(1) provides no terminal here: {error}"),
    }
}
