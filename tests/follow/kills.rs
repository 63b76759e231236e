//! kill -9 while it is followed: what the program had finished is printed, once.

use super::{assert_all, follow_all};
use crate::harness::{Program, SeededRandom, TestDirectory};
use crate::kill::{expected_records, kill};

#[test]
fn kills_lose_nothing_and_double_nothing() {
    let mut random = SeededRandom::seeded();
    for (mode, variables, within) in [
        ("steady", &[][..], 8_000),
        ("steady", &[], 100_000),
        ("steady", &[("THR_TRACE_BUF", "1")], 10_000),
        ("churn", &[], 30_000),
        ("churn", &[("THR_TRACE_BUF", "1")], 10_000),
    ] {
        for _ in 0..6 {
            let kill_after = 1 + random.below(within);
            println!("{mode} {variables:?}, killed after {kill_after} calls");
            let test = TestDirectory::new("follow-kill");
            let follower = follow_all(&test);
            let counts = test.directory().join("counts");
            let run = test.traced(Program::c("kill/counting.c")).arg(&counts).arg(mode);
            let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
            let (finished, semaphores) = kill(run.spawn(), &counts, mode, kill_after).expect("it has begun");
            let followed = follower.wait();
            expected_records::check(&followed.stdout, semaphores, &finished).unwrap_or_else(|why| panic!("{why}"));
            assert_all(&test, &followed);
        }
    }
}
