//! The end of the process cuts threads off, perhaps between a release and its record: what was in flight is recorded.

use super::super::harness::{Program, TestDirectory};
use super::checker;

#[test]
fn threads_that_are_cut_off_have_their_releases() {
    let mut in_flight = 0;
    for ending in ["exit", "_exit", "quick_exit", "exec"] {
        for run in 0..10 {
            let test = TestDirectory::new("cut-off");
            test.traced(Program::c("order/cut_off.c")).arg(ending).run().success();
            let merged = test.merged();
            in_flight += merged.of("trace_inflight").len();
            if let Err(impossible) = checker::check(merged.records.iter().map(|record| &record.fields)) {
                panic!("{ending}, run {run}: {impossible}: {}", merged.records[impossible.at].line);
            }
        }
    }
    println!("{in_flight} releases in flight");
}
