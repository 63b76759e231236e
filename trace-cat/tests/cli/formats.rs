//! The output formats.

use std::fs;
use std::process::{Command, Stdio};

use super::{assert_output, command, run, trace};

#[test]
fn colours_are_for_terminals() {
    let trace = trace();
    let is_coloured = |arguments: &[&str], environment: &[(&str, &str)]| {
        let output = command(trace.path()).args(["-F", "text"]).args(arguments).envs(environment.to_vec()).output();
        output.unwrap().stdout.contains(&0x1b)
    };
    assert!(!is_coloured(&[], &[]) && !is_coloured(&["--color", "never"], &[]));
    assert!(is_coloured(&["--color", "always"], &[("NO_COLOR", "1")]));
    // script(1) runs the command on a terminal.
    let on_terminal = |environment: &[(&str, &str)], arguments: &str| {
        let line = format!("{} -F text --no-pager {arguments} .", env!("CARGO_BIN_EXE_trace-cat"));
        let mut script = Command::new("script");
        script.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(trace.path()).stdin(Stdio::null());
        script.env("TERM", "xterm").env_remove("NO_COLOR").envs(environment.to_vec()).env_remove("THR_TRACE_DIR");
        match script.output() {
            Ok(output) if output.status.success() => Some(output.stdout.contains(&0x1b)),
            other => {
                println!("script(1) provides no terminal here: {other:?}");
                None
            }
        }
    };
    assert!(on_terminal(&[], "").is_none_or(|coloured| coloured));
    for (environment, arguments) in
        [(&[("NO_COLOR", "1")][..], ""), (&[("TERM", "dumb")], ""), (&[], "--color never"), (&[], "-o out")]
    {
        assert!(on_terminal(environment, arguments).is_none_or(|coloured| !coloured), "{environment:?} {arguments}");
    }
}

#[test]
fn csv_and_json_name_the_columns() {
    let trace = trace();
    let output = run(trace.path(), &["-F", "csv", "-e", "mutex_lock"]);
    let expected = "time,lwpid,pid,tid,category,event,which,a1,a2,a3,a4,a5,columns,name\n\
                    1795174740.000000001,2,1,0x7fc5de3f86c0,mutex,mutex_lock,1,0x559469ed90a0,0,0,0,0,mutex,\n";
    assert_output(&output, 0, expected, "");
    let output = run(trace.path(), &["-F", "json", "-e", "mutex_unlock"]);
    let expected = "{\"time\":\"1795174740.000000002\",\"lwpid\":3,\"pid\":1,\"tid\":\"0x7fc5de3f86c0\",\
                    \"category\":\"mutex\",\"event\":\"mutex_unlock\",\"which\":0,\
                    \"arguments\":{\"mutex\":\"0x559469ed90a0\",\"rval\":0,\"waiters?\":0}}\n";
    assert_output(&output, 0, expected, "");
}

#[test]
fn json_has_an_object_for_each_call() {
    let trace = trace();
    let output = run(trace.path(), &["-F", "json", "--calls"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let [unlock, lock] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    let open = "{\"time\":\"1795174740.000000001\",\"duration\":1,\"open\":true,\"waited\":true,\"lwpid\":2,";
    assert!(unlock.contains("mutex_unlock") && lock.starts_with(open), "{text}");
}

#[test]
fn spans_that_cross_are_paired_by_their_names() {
    let trace = tempfile::tempdir().unwrap();
    let line = |time: u32, which: u32, name: u32| {
        format!("1795174740:{time:09}:0000002:0000001:0x7fc5de3f86c0:12:90:{which}:{name:#x}:0:0:0:0\n")
    };
    let records = [line(1, 1, 10), line(3, 1, 11), line(6, 2, 10), line(10, 2, 11), line(11, 1, 10), line(12, 2, 11)];
    fs::write(trace.path().join("tr.0000001.002"), records.concat()).unwrap();
    for options in [&["-F", "json", "--calls"][..], &["-F", "json", "--calls", "--longer", "1ns"]] {
        let text = String::from_utf8(run(trace.path(), options).stdout).unwrap();
        let calls = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let spans: Vec<_> = calls.map(|call| (call["duration"].as_u64(), call["open"].as_bool().unwrap())).collect();
        assert_eq!(spans[..2], [(Some(5), false), (Some(7), false)], "{text}");
    }
    let text = String::from_utf8(run(trace.path(), &["-F", "json", "--calls"]).stdout).unwrap();
    let last: Vec<&str> = text.lines().skip(2).collect();
    assert!(last[0].contains("\"duration\":null") && last[1].contains("\"open\":true"), "{text}");
}

/// A thread of which the second one has its name is labelled with it, whatever keeps the record of that from being printed.
#[test]
fn names_of_threads_are_learned_from_records_that_are_not_printed() {
    let trace = tempfile::tempdir().unwrap();
    let line = |time: u32, lwp: u32, rest: &str| format!("1795174740:{time:09}:{lwp:07}:0000001:{rest}:0:0:0\n");
    let set_name = |time, name| line(time, 3, &format!("0x7fc5de3f86c1:01:39:0:0x7fc5de3f86c0:{name}000000000000"));
    let unlock = |time| line(time, 2, "0x7fc5de3f86c0:02:04:0:0x10:0");
    let records = [unlock(1), set_name(2, "0x6161"), unlock(3), set_name(4, "0x6262"), unlock(5), unlock(6)];
    fs::write(trace.path().join("tr.0000001.002"), records.concat()).unwrap();
    let labels = |arguments: &[&str]| -> Vec<String> {
        let output = command(trace.path()).args(["-F", "text"]).args(arguments).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let lines = String::from_utf8(output.stdout).unwrap();
        let label = |line: &str| line.split_whitespace().nth(1).unwrap().to_owned();
        lines.lines().filter(|line| !line.starts_with("times since")).map(label).collect()
    };
    for follow in [&[][..], &["--follow", "--until-exit"]] {
        for (arguments, expected) in [
            (&["-e", "mutex"][..], &["1/2", "aa/2", "bb/2", "bb/2"][..]),
            (&["-l", "2", "--head", "2"], &["1/2", "aa/2"]),
            (&["--object", "0x10", "--head", "2"], &["1/2", "aa/2"]),
            (&["--since", "+2ns"], &["aa/2", "1/3", "bb/2", "bb/2"]),
            (&["--since", "+4ns"], &["bb/2", "bb/2"]),
            (&["-e", "mutex", "--tail", "2"], &["bb/2", "bb/2"]),
        ] {
            assert_eq!(labels(&[follow, arguments].concat()), expected, "{follow:?} {arguments:?}");
        }
    }
}

#[test]
fn timelines_are_written_for_viewers() {
    let trace = trace();
    let output = run(trace.path(), &["-F", "chrome"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let wait = events.iter().find(|event| event["cat"] == "wait").unwrap();
    assert_eq!((&wait["name"], &wait["tid"]), (&"wait mutex 0x559469ed90a0".into(), &2.into()), "{wait}");
    let list = String::from_utf8(run(trace.path(), &["-F", "help"]).stdout).unwrap();
    assert!(list.contains("  perfetto  A timeline") && list.contains("  pprof     "), "{list}");
    let output = command(trace.path()).args(["open", "-o", "x.pftrace"]).output().unwrap();
    let file = fs::read(trace.path().join("x.pftrace")).unwrap();
    assert!(file.windows(9).any(|bytes| bytes == b"wait mute"), "{file:?}");
    let hint = String::from_utf8(output.stdout).unwrap();
    assert!(hint.starts_with("x.pftrace: open it at https://ui.perfetto.dev") && hint.lines().count() == 1, "{hint}");
    assert_eq!(run(trace.path(), &["-F", "perfetto"]).stdout, file, "the same to a pipe");
}
