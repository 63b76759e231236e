//! The merged timeline is a possible one.

pub mod checker;
mod cut_off;
mod impossible_timelines;
mod object_states;
mod outcome;
mod record_fields;
mod stop_time;

use super::harness::{Program, TestDirectory};

/// Eight threads pass locks of every kind to each other, more than 100,000 times.
#[test]
fn eight_threads_pass_locks_around() {
    for seed in [1, 20_261_121] {
        println!("seed {seed}");
        let test = TestDirectory::new("order");
        let seed = seed.to_string();
        test.traced(Program::c("order/handing.c")).args([seed.as_str(), "125", "100"]).run().success();
        let merged = test.merged();
        assert_eq!(merged.records.len(), test.trace().records.len(), "each record once");
        let census = checker::check(merged.records.iter().map(|record| &record.fields))
            .unwrap_or_else(|impossible| panic!("{impossible}: {}", merged.records[impossible.at].line));
        println!("{census:?}");
        // The program's 100,000 turns, less failed tries; and that they were about something.
        assert!(census.locks > 50_000 && census.rwlocks > 14_000 && census.tokens > 14_000, "{census:?}");
        assert!(census.handed_on > 100, "{census:?}");
        assert!(census.wakes > 0);
        assert_eq!(census.barriers, 8 * 125);
        assert_eq!(census.joins, 8);
    }
}
