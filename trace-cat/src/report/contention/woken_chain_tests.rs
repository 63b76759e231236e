//! Who waits behind one that a running thread may wake is not stuck for certain.

use super::analysis_tests::{RecordLine, analysed, analysed_with, wrong};
use super::chain_ends::ChainEnd;
use super::holds::Knowledge;
use super::owners_elsewhere_tests::ALL;

const JOINS: [RecordLine; 2] = [(20, 2, "4:2:1", &[64, 0]), (21, 1, "1:3:1", &[2])];
const RUNS: [RecordLine; 1] = [(10, 3, "4:4:0", &[80, 0])];

/// The threads that are stuck, perhaps, or unless the last one of the chain is woken.
fn found(records: &[&[RecordLine<'static>]]) -> [Vec<u32>; 3] {
    let (analysis, graph) = analysed(&records.concat());
    let ends = graph.perhaps_stuck.iter().chain(&graph.stuck_unless_woken).map(|stuck| stuck.end);
    assert!(ends.clone().all(|end| matches!(end, ChainEnd::MayBeWoken { .. })), "{graph:?}");
    wrong(&analysis, &graph);
    [&graph.stuck, &graph.perhaps_stuck, &graph.stuck_unless_woken]
        .map(|list| list.iter().map(|stuck| analysis.threads[stuck.thread as usize].lwp).collect())
}

#[test]
fn any_running_thread_may_wake_who_waits() {
    assert_eq!(found(&[&JOINS]), [vec![1], vec![], vec![]]);
    assert_eq!(found(&[&RUNS, &JOINS]), [vec![], vec![1], vec![]]);
    assert_eq!(found(&[&RUNS, &JOINS, &[(30, 3, "1:2:0", &[0])]]), [vec![1], vec![], vec![]], "it has ended");
    let waits: &[RecordLine] = &[(30, 3, "4:2:1", &[96, 0])];
    assert_eq!(found(&[&RUNS, &JOINS, waits]), [vec![1], vec![], vec![]]);
    let joins: &[RecordLine] = &[(30, 3, "1:3:1", &[1])];
    assert_eq!(found(&[&RUNS, &JOINS, joins]), [vec![3, 1], vec![], vec![]]);
    // At a barrier it waits for one that runs.
    let meets: &[RecordLine] = &[(30, 3, "7:2:1", &[96, 2]), (31, 4, "4:4:0", &[80, 0])];
    assert_eq!(found(&[&RUNS, &JOINS, meets]), [vec![], vec![1], vec![]]);
}

/// As where only mutexes and conditions are recorded: a thread that calls none of these has no record.
#[test]
fn a_thread_without_a_record_may_wake_who_waits() {
    for (misses_threads, certain, perhaps) in [(true, 0, 1), (false, 1, 0)] {
        let (_, graph) = analysed_with(&JOINS, Knowledge { misses_threads, ..ALL });
        assert_eq!((graph.stuck.len(), graph.perhaps_stuck.len()), (certain, perhaps));
    }
}

#[test]
fn a_lock_of_one_that_waits_is_worth_a_suspicion() {
    let lock: &[RecordLine] = &[(15, 2, "2:2:1", &[48]), (15, 2, "2:2:2", &[0, 0])];
    let behind: &[RecordLine] = &[(22, 4, "2:2:1", &[48]), (23, 5, "1:3:1", &[4])];
    assert_eq!(found(&[lock, &JOINS, behind]), [vec![1, 4, 5], vec![], vec![]]);
    assert_eq!(found(&[&RUNS, lock, &JOINS, behind]), [vec![], vec![1], vec![4, 5]]);
}
