//! Recording stops at one time for all threads, so that what is there is the beginning of a possible timeline.

use super::super::harness::{Program, TestDirectory, Trace, library, trace_cat};
use super::checker;

/// Fails unless every record of a call comes before every trace_lost, and the calls are in a possible order.
#[track_caller]
fn assert_stops_at_one_time(trace: &Trace) {
    let first = trace.records.iter().position(|record| record.is("trace_lost")).expect("something is lost");
    let late = trace.records[first..].iter().find(|record| !record.is("trace_lost"));
    if let Some(late) = late {
        panic!("the first loss is\n{}\nand kept is\n{}", trace.records[first].line, late.line);
    }
    let census = checker::check(trace.records[..first].iter().map(|record| &record.fields))
        .unwrap_or_else(|impossible| panic!("{impossible}: {}", trace.records[impossible.at].line));
    println!("{census:?}");
    assert!(census.locks > 100 && census.handed_on > 0, "{census:?}");
}

#[test]
fn a_trace_of_a_given_size_ends_at_one_time() {
    for (seed, max) in [("1", "300K"), ("2", "1M"), ("3", "1500K"), ("4", "2M"), ("5", "2500K")] {
        println!("seed {seed}, THR_TRACE_MAX={max}");
        let test = TestDirectory::new("stop-time");
        let run = test.traced(Program::c("order/handing.c")).args([seed, "125", "100"]);
        run.env("THR_TRACE_MAX", max).noise_expected().run().success();
        assert_stops_at_one_time(&test.merged());
    }
}

/// The records that the full disk has no room for are in the buffers.
#[test]
fn a_trace_on_a_full_disk_ends_at_one_time() {
    for size in ["4m", "6m"] {
        let test = TestDirectory::new("full-disk-order");
        let script = format!(
            "mount -t tmpfs -o size={size} none trace; LD_PRELOAD='{}' THR_TRACE_DIR=trace \"$0\" 7 125 100; '{}' trace > merged",
            library().display(),
            trace_cat().display(),
        );
        let unshare =
            |script: &str| test.native("unshare").args(["--mount", "--propagation", "private", "sh", "-ec", script]);
        if !unshare("mount -t tmpfs none trace").run().status.success() {
            println!("skipped: no private mounts here");
            return;
        }
        unshare(&script).arg(Program::c("order/handing.c")).noise_expected().run().success();
        let merged = std::fs::read(test.directory().join("merged")).unwrap();
        assert_stops_at_one_time(&Trace::parse("merged", &merged));
    }
}
