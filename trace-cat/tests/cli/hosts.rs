//! Traces of several hosts that are read together.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::{assert_output, run};

pub const BOOTS: [&str; 2] = ["11111111-8a55-430e-bb95-28c687f883ed", "22222222-8a55-430e-bb95-28c687f883ed"];

/// One record of process `pid`: microseconds, LWP, event, arguments.
type Line<'a> = (u64, u32, &'a str, &'a str);

fn record(pid: u32, &(time, lwp, event, arguments): &Line, second: u64) -> String {
    let zeros = ":0".repeat(4 - arguments.matches(':').count());
    let (seconds, nanoseconds) = (second + time / 1_000_000, time % 1_000_000 * 1_000);
    format!("{seconds:010}:{nanoseconds:09}:{lwp:07}:{pid:07}:0x{lwp:012x}:{event}:{arguments}{zeros}\n")
}

/// A directory of a host, with its clock's lines, and the records of its processes.
fn host(parent: &Path, name: &str, boot: &str, clock: &[&str], processes: &[(u32, &[Line])]) {
    let directory = parent.join(name);
    fs::create_dir_all(&directory).unwrap();
    let clock: String = clock.iter().map(|line| format!("clock_error {line} 1795174740:000000000\n")).collect();
    for (pid, lines) in processes {
        let info = format!(
            "format 1\nhost {name}\nboot_id {boot}\nstart 1\npid {pid}\nexe /bin/{name}\ncmdline {name}\noffset 7\nevents all\n{clock}"
        );
        fs::write(directory.join(format!("trinfo.{pid:07x}")), info).unwrap();
        let text: String = lines.iter().map(|line| record(*pid, line, 1_795_174_740)).collect();
        fs::write(directory.join(format!("tr.{pid:07x}.{pid:03x}")), text).unwrap();
    }
}

/// On each of two hosts, process 1 makes a shared semaphore at the same address, and its child 2 waits for it until process 1
/// posts; threads 1 and 3 of process 1 fight for a mutex. All of it is `late` microseconds later on the second one.
pub fn twins(clocks: [&[&str]; 2], boots: [&str; 2], late: u64) -> TempDir {
    let parent = tempfile::tempdir().unwrap();
    for (index, name) in ["alpha", "beta"].into_iter().enumerate() {
        let late = late * index as u64;
        let first: Vec<Line> = [
            (10, 1, "04:01:0", "0x90:1"),
            (20, 1, "11:01:1", "0"),
            (30, 1, "11:01:2", "2"),
            (1_000, 1, "02:02:1", "0x10"),
            (1_000, 1, "02:02:2", "0:0"),
            (2_000, 3, "02:02:1", "0x10"),
            (3_000, 1, "02:04:0", "0x10:0:1"),
            (3_010, 3, "02:02:2", "0:1"),
            (4_000, 3, "02:04:0", "0x10:0"),
            (5_000, 1, "04:04:0", "0x90:0:0"),
            (6_000, 1, "11:04:0", "0"),
        ]
        .map(|(time, lwp, event, arguments)| (time + late, lwp, event, arguments))
        .to_vec();
        let second: Vec<Line> = [
            (40, 2, "11:02:0", "1"),
            (50, 2, "04:02:1", "0x90:0"),
            (5_020, 2, "04:02:2", "0"),
            (5_500, 2, "11:04:0", "0"),
        ]
        .map(|(time, lwp, event, arguments)| (time + late, lwp, event, arguments))
        .to_vec();
        host(parent.path(), name, boots[index], clocks[index], &[(1, &first), (2, &second)]);
    }
    parent
}

fn text(output: &[u8]) -> &str {
    std::str::from_utf8(output).unwrap()
}

/// The columns of times of the records, and the process IDs.
fn times_and_numbers(records: &str) -> Vec<(&str, &str)> {
    records.lines().map(|line| (&line[..20], &line[29..36])).collect()
}

#[test]
fn records_are_merged_by_corrected_times() {
    // The second host's clock is 100 us ahead, as it knows itself.
    let trace = twins([&["1000 synchronized 0 0"], &["2000 synchronized -90000 -10000"]], BOOTS, 100);
    let output = run(trace.path(), &["alpha", "beta"]);
    let note = "trace-cat: hosts alpha, beta: the order of hosts' records is certain if they are more than 3.000 us apart; \
                2 processes are shown with other IDs, since their own are also another host's; --hosts shows more\n";
    assert!(text(&output.stderr).ends_with(note), "{}", text(&output.stderr));
    let records = times_and_numbers(text(&output.stdout));
    assert_eq!(records.len(), 30);
    for pair in records.chunks(2) {
        assert_eq!(pair[0].0, pair[1].0, "both did the same at the same time");
    }
    let numbers: std::collections::BTreeSet<&str> = records.iter().map(|record| record.1).collect();
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), ["0000001", "0000002", "9999998", "9999999"]);
    // In the other order, it is the first host's processes that get other numbers.
    let output = run(trace.path(), &["beta", "alpha"]);
    assert_eq!(times_and_numbers(text(&output.stdout))[0], ("1795174740:000010000", "9999999"));
    // Each by itself is as it is.
    let output = run(trace.path(), &["beta"]);
    assert_eq!(times_and_numbers(text(&output.stdout))[0], ("1795174740:000110000", "0000001"));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn no_order_is_claimed_that_the_clocks_do_not_carry() {
    let marked = |clocks: [&[&str]; 2], boots, late| {
        let trace = twins(clocks, boots, late);
        let output = run(trace.path(), &["-F", "text", "alpha", "beta"]);
        let lines: Vec<String> = text(&output.stdout).lines().skip(1).map(str::to_owned).collect();
        let is_marked = |line: &&String| line.as_bytes()[13] == b'~';
        let is_betas = |line: &&String| line[14..].starts_with("beta:");
        let betas = lines.iter().filter(is_betas);
        assert!(betas.clone().count() >= 13 && lines.len() >= 26);
        (lines.iter().filter(is_marked).count(), betas.clone().count(), betas.filter(is_marked).count())
    };
    // No line is, or those of the second host are, and no others.
    let is_none = |(all, ..): (usize, usize, usize)| all == 0;
    let is_betas = |(all, betas, marked): (usize, usize, usize)| (all, marked) == (betas, betas);
    let (sure, unsure): (&[&str], &[&str]) = (&["1000 synchronized 0 0"], &["16000000000 unsynchronized 0 0"]);
    // The second host's records are 1 us later, which is the bound; 7 us are more.
    assert!(is_betas(marked([sure, &["0 synchronized 0 0"]], BOOTS, 1)));
    assert!(is_none(marked([sure, sure], BOOTS, 7)));
    assert!(is_betas(marked([sure, unsure], BOOTS, 1_000_000)));
    assert!(is_betas(marked([sure, &[]], BOOTS, 1_000_000)));
    assert!(is_none(marked([unsure, unsure], [BOOTS[0]; 2], 1)), "containers of one kernel have one clock");
}

#[test]
fn nothing_of_one_host_is_taken_for_another_ones() {
    let clocks: [&[&str]; 2] = [&["1000 synchronized 0 0"], &["1000 synchronized 0 0"]];
    let trace = twins(clocks, BOOTS, 3);
    let document = |paths: &[&str]| -> Value {
        let output = run(trace.path(), &[&["report", "-F", "json"], paths].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (one, both) = (document(&["alpha"]), document(&["alpha", "beta"]));
    for figure in ["contention", "idleness", "thread_time"] {
        assert_eq!(both[figure].as_u64(), one[figure].as_u64().map(|time| 2 * time), "{figure}");
    }
    let objects = both["objects"].as_array().unwrap();
    let names: Vec<&str> = objects.iter().map(|object| object["object"].as_str().unwrap()).collect();
    assert_eq!(names, ["1:0x10#1", "9999999:0x10#1", "1:0x90#1", "9999999:0x90#1"]);
    let waits: Vec<_> = objects.iter().map(|object| (object["waits"].as_u64(), object["waited"].as_u64())).collect();
    let expected = [(Some(1), Some(1_010_000)), (Some(1), Some(4_970_000))];
    assert_eq!(waits, [expected[0], expected[0], expected[1], expected[1]]);
    // Both the posts that end the waits, and the holders, are of the same host.
    for object in objects {
        let pid = object["pid"].as_u64();
        let others = ["blamed", "wakers"].map(|list| object[list].as_array().cloned().unwrap_or_default()).concat();
        assert!(!others.is_empty());
        for other in others {
            assert_eq!(other["pid"].as_u64(), pid, "{object}");
        }
    }
    let commands: Vec<&str> =
        both["processes"].as_array().unwrap().iter().map(|process| process["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["alpha 1: alpha", "beta 1: beta", "alpha 2: alpha", "beta 2: beta"]);
}

/// An update from one version to the next leaves traces without the lines.
#[test]
fn a_clock_of_which_nothing_is_known_is_left_as_it_is() {
    let trace = twins([&["1000 synchronized 0 50000"], &[]], BOOTS, 100);
    let output = run(trace.path(), &["alpha", "beta"]);
    let message = "the order of hosts' records is not known, as the error of the clock is not known of beta";
    assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    let first: Vec<&str> = text(&output.stdout).lines().take(5).map(|line| &line[..20]).collect();
    let alphas = ["1795174740:000060000", "1795174740:000070000", "1795174740:000080000", "1795174740:000090000"];
    assert_eq!(first[..4], alphas);
    assert_eq!(first[4], "1795174740:000100000");
}

/// A process that is known by another number has the main thread and the programs that it has alone.
#[test]
fn executed_programs_are_those_of_each_host() {
    let trace = tempfile::tempdir().unwrap();
    let lines: Vec<Line> = vec![
        (10, 7, "02:02:1", "0x10"),
        (10, 7, "02:02:2", "0:0"),
        (20, 7, "11:03:1", "0"),
        (30, 7, "02:02:1", "0x10"),
        (30, 7, "02:02:2", "0:0"),
        (40, 7, "11:04:0", "0"),
    ];
    for (index, name) in ["alpha", "beta"].into_iter().enumerate() {
        host(trace.path(), name, BOOTS[index], &["1000 synchronized 0 0"], &[(7, &lines)]);
        let path = trace.path().join(name).join("trinfo.0000007");
        let info = fs::read_to_string(&path).unwrap();
        fs::write(path, info.clone() + &info.replace("exe /bin/", "exe /bin/second-")).unwrap();
    }
    let programs = |host: &str, hosts: &[&str]| {
        let output = run(trace.path(), &[&["report", "-F", "json"], hosts].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of_host = |program: &&Value| program["exe"].as_str().unwrap().ends_with(host);
        let programs = document["processes"].as_array().unwrap().iter().filter(of_host);
        programs.map(|program| ["image", "exe", "ended", "records"].map(|key| program[key].clone())).collect::<Vec<_>>()
    };
    for name in ["alpha", "beta"] {
        let alone = programs(name, &[name]);
        assert_eq!(alone.len(), 2, "{alone:?}");
        assert_eq!(programs(name, &["alpha", "beta"]), alone);
    }
}

#[test]
fn hosts_lists_the_clocks() {
    // The second host's wall clock was stepped by 40 us between its start and its end.
    let clocks: [&[&str]; 2] =
        [&["1000 synchronized 0 0"], &["250000 synchronized 1000 0", "250000 synchronized 1000 40000"]];
    let trace = twins(clocks, BOOTS, 3);
    let table = "\
host   clock           at most wrong by  corrected by  processes  directory
alpha  synchronized            1.000 us             0          2  alpha
beta   synchronized          270.000 us    +21.000 us          2  beta
process 1 of beta is shown as 9999999
process 2 of beta is shown as 9999998
";
    assert_output(&run(trace.path(), &["--hosts", "alpha", "beta"]), 0, table, "");
    let output = run(trace.path(), &["--hosts", "-F", "json", "alpha", "beta"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let beta = &document["hosts"][1];
    assert_eq!(
        (&beta["host"], &beta["boot_id"], &beta["clock"]),
        (&"beta".into(), &BOOTS[1].into(), &"synchronized".into())
    );
    assert_eq!((&beta["error"], &beta["directories"][0]["correction"]), (&270_000.into(), &21_000.into()));
    assert_eq!(beta["renumbered"][0], serde_json::json!({"pid": 1, "shown_as": 9_999_999}));
    let alone = "\
host  clock           at most wrong by  corrected by  processes  directory
beta  synchronized          270.000 us             0          2  beta
";
    assert_output(&run(trace.path(), &["--hosts", "beta"]), 0, alone, "");
    for arguments in [&["--hosts", "-F", "csv"][..], &["--hosts", "-F", "perfetto"], &["--hosts", "--tail", "1"]] {
        assert_eq!(run(trace.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_output(&run(trace.path(), &["--hosts", "none"]), 1, "", "trace-cat: none: no trace directory\n");
}

/// Makes the first process of a directory that of a PID namespace of host `h`, as a container's is.
fn contain(directory: &Path, namespace: u32) {
    let path = directory.join("trinfo.0000001");
    let lines = fs::read_to_string(&path).unwrap();
    let lines = lines.lines().filter(|line| !line.starts_with("host ") && !line.starts_with("start "));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    fs::write(path, format!("{text}host h\nstart {namespace}\npidns {namespace}\n")).unwrap();
}

/// The first process of each of two containers, which record into one directory, has a mutex at the same address: in one it is held all
/// the time, in the other its first thread waits for it.
#[test]
fn containers_of_one_directory_are_not_mixed_up() {
    let trace = tempfile::tempdir().unwrap();
    let holds: &[Line] = &[(10, 1, "02:02:0", "0x10"), (9_000, 1, "02:04:0", "0x10:0"), (9_100, 1, "11:04:0", "0")];
    let waits: &[Line] = &[
        (20, 2, "02:02:0", "0x10"),
        (1_000, 1, "02:02:1", "0x10"),
        (5_000, 2, "02:04:0", "0x10:0:1"),
        (5_010, 1, "02:02:2", "0:1"),
        (6_000, 1, "02:04:0", "0x10:0"),
        (7_000, 1, "11:04:0", "0"),
    ];
    for (name, namespace, lines) in [("", 7, holds), ("ns8", 8, waits)] {
        host(trace.path(), name, BOOTS[0], &[], &[(1, lines)]);
        contain(&trace.path().join(name), namespace);
    }
    let output = run(trace.path(), &["report", "-F", "json", "--at", "+3ms"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["deadlocks"], &report["misuse"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    let held: Vec<_> =
        report["objects"].as_array().unwrap().iter().map(|object| (&object["pid"], &object["waits"])).collect();
    assert_eq!(held.len(), 2, "{held:?}");
    assert_eq!(output.status.code(), Some(0));
}

/// Containers of a pod have one host name, and a directory each. In each one's first process, a thread waits for a mutex that another one
/// has: in the second one for that of the thread which waits in the first one.
#[test]
fn containers_of_one_host_name_are_not_mixed_up() {
    let trace = tempfile::tempdir().unwrap();
    let end: Line = (9_000, 1, "04:01:0", "0x90:1");
    let app: [Line; 3] = [(20, 3, "02:02:0", "0x20"), (1_000, 2, "02:02:1", "0x20"), end];
    let sidecar: [Line; 3] = [(10, 2, "02:02:0", "0x10"), (1_000, 3, "02:02:1", "0x10"), end];
    for (index, (name, lines)) in [("app", app), ("sidecar", sidecar)].into_iter().enumerate() {
        host(trace.path(), name, BOOTS[0], &["1000 synchronized 0 0"], &[(1, &lines)]);
        contain(&trace.path().join(name), 7 + index as u32);
    }
    let report = |options: &[&str], directories: &[&str]| -> (Value, Option<i32>) {
        let output = run(trace.path(), &[&["report", "-F", "json"], options, directories].concat());
        (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
    };
    let directories = [&["app"][..], &["sidecar"], &["app", "sidecar"]];
    for (moment, status) in directories.map(|directories| report(&["--at", "+3ms"], directories)) {
        assert_eq!((&moment["deadlocks"], status), (&Value::Array(vec![]), Some(0)));
    }
    let times = directories.map(|directories| report(&[], directories).0["thread_time"].as_u64().unwrap());
    assert_eq!(times[0] + times[1], times[2]);
    let table = "\
host  clock           at most wrong by  corrected by  processes  directory
h     synchronized            1.000 us             0          1  app
h#2   synchronized            1.000 us             0          1  sidecar
process 1 of h#2 is shown as 9999999
";
    assert_output(&run(trace.path(), &["--hosts", "app", "sidecar"]), 0, table, "");
}
