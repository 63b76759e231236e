//! `THR_TRACE_BUF`: when records reach their files.

use super::super::harness::{TestDirectory, Trace, assert_same_lines};
use super::{modest, unchanged};

/// The records that are in the files while the program pauses, and after it was killed.
fn paused(unbuffered: Option<&str>) -> (Trace, Trace) {
    let test = TestDirectory::new("paused");
    let run = test.traced(modest()).arg("pause");
    let run = match unbuffered {
        Some(value) => run.env("THR_TRACE_BUF", value),
        None => run,
    };
    let mut running = run.spawn();
    running.wait_for("paused\n");
    let meanwhile = test.trace();
    running.signal(libc::SIGKILL);
    running.wait().killed(libc::SIGKILL);
    (meanwhile, test.merged())
}

#[test]
fn with_any_value_each_record_is_in_its_file_at_once() {
    for value in ["1", "0", ""] {
        let (meanwhile, afterwards) = paused(Some(value));
        let names: Vec<String> = meanwhile.records.iter().map(|record| record.name()).collect();
        let pair = ["mutex_lock", "mutex_lock", "mutex_unlock"];
        assert_eq!(names, [pair, pair].concat(), "THR_TRACE_BUF={value:?}");
        assert_same_lines(&meanwhile.text(), &afterwards.text(), "while it ran and afterwards");
    }
}

#[test]
fn unset_records_wait_in_the_buffer_and_are_not_lost_there() {
    let (meanwhile, afterwards) = paused(None);
    assert_eq!(meanwhile.records.len(), 0);
    assert_eq!(afterwards.records.len(), 6);
}

#[test]
fn unbuffered_or_not_the_records_are_the_same() {
    let mut counts = Vec::new();
    for unbuffered in [false, true] {
        let test = TestDirectory::new("both");
        let run = test.traced(modest());
        assert_eq!(unchanged(run.unbuffered_if(unbuffered)), [""; 0]);
        let mut names: Vec<String> = test.merged().records.iter().map(|record| record.name()).collect();
        names.sort();
        // A wait may wake spuriously and be made again.
        names.retain(|name| name != "cond_wait");
        counts.push(names);
    }
    assert_eq!(counts[0], counts[1]);
}
