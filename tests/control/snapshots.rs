//! `--snapshot`: what is recorded so far, copied while the program goes on.

use std::fs;
use std::time::Duration;

use super::{numbered, stop};
use crate::harness::{TestDirectory, Trace, trace_cat};

/// The trace in a snapshot of the program.
fn snapshot(test: &TestDirectory, pid: u32, name: &str) -> Trace {
    let directory = test.directory().join(name);
    let run = test.native(trace_cat()).args(["set", "--snapshot"]).arg(&directory).arg(pid.to_string());
    run.run().success();
    Trace::read(&directory)
}

/// Fails unless each thread's numbers in `trace` follow each other, from 1 on if `is_complete`.
#[track_caller]
fn assert_gapless(trace: &Trace, is_complete: bool) -> usize {
    let mut last = std::collections::HashMap::new();
    for record in trace.of("thr_setspecific") {
        let number = record.get("value");
        let before = last.insert(record.fields.lwpid, number);
        match before {
            Some(before) => assert_eq!(number, before + 1, "{}", record.line),
            None => assert!(!is_complete || number == 1, "{}", record.line),
        }
    }
    trace.of("thr_setspecific").len()
}

#[test]
fn buffers_and_rings_are_copied_at_full_speed() {
    for ring in [None, Some("64K")] {
        let test = TestDirectory::new("control-snapshot");
        let run = numbered(&test, "4 0").env("THR_TRACE_EVENTS", "thr_setspecific");
        let mut program = match ring {
            Some(size) => run.env("THR_TRACE_RING", size).spawn(),
            None => run.spawn(),
        };
        program.wait_for("ready");
        let mut records = 0;
        for count in 0..10 {
            std::thread::sleep(Duration::from_millis(30));
            let trace = snapshot(&test, program.pid(), &format!("snapshot-{count}"));
            records += assert_gapless(&trace, ring.is_none());
        }
        println!("{records} records");
        assert!(records > 100);
        // As readers of any trace see it.
        let last = test.directory().join("snapshot-9");
        let output = test.native(trace_cat()).arg("--stat").arg(&last).run();
        assert!(output.success().stdout_text().contains("numbered"), "{}", output.stdout_text());
        let names: Vec<_> = fs::read_dir(&last).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| !name.to_str().unwrap().starts_with("trbuf")), "{names:?}");
        stop(&test, program);
    }
}

#[test]
fn a_directory_that_is_not_empty_is_refused() {
    let test = TestDirectory::new("control-snapshot-full");
    let mut program = numbered(&test, "1 100000").spawn();
    program.wait_for("ready");
    let output = test.native(trace_cat()).args(["set", "--snapshot", ".", &program.pid().to_string()]).run();
    output.exited(1);
    assert!(output.stderr_text().contains("not empty"), "{}", output.stderr_text());
    stop(&test, program);
}
