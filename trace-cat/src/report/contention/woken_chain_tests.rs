//! Who waits behind one that a running thread may wake is not stuck for certain.

use super::analysis_tests::{RecordLine, analysed, analysed_with, lock, record, wrong};
use super::chain_ends::ChainEnd;
use super::holds::Knowledge;
use super::owners_elsewhere_tests::ALL;
use super::{Analysis, Moment};

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

#[test]
fn another_process_may_wake_who_waits() {
    let initialised = |is_shared: &'static [u64]| (9, 2, "4:1:0", is_shared);
    for (arguments, lists) in [(&[64, 0][..], [vec![1], vec![], vec![]]), (&[64, 1], [vec![], vec![1], vec![]])] {
        assert_eq!(found(&[&[initialised(arguments)], &JOINS]), lists);
    }
    // Whoever posts waits for what another process posts.
    let waits: &[RecordLine] = &[(9, 3, "4:1:0", &[96, 1]), (30, 3, "4:2:1", &[96, 0])];
    assert_eq!(found(&[&RUNS, waits, &JOINS]), [vec![], vec![1], vec![]]);
}

#[test]
fn who_runs_may_come_to_a_barrier() {
    let waits: &[RecordLine] = &[(20, 2, "7:2:1", &[64, 2]), (21, 1, "1:3:1", &[2])];
    assert_eq!(found(&[waits]), [vec![1], vec![], vec![]]);
    assert_eq!(found(&[&RUNS, waits]), [vec![], vec![1], vec![]]);
}

/// What was so at an earlier moment ended later.
#[test]
fn who_went_on_was_not_stuck() {
    let goes_on: &[RecordLine] = &[(30, 2, "4:2:2", &[0, 0]), (50, 2, "1:2:0", &[0]), (51, 1, "1:3:2", &[2, 0, 0])];
    for (later, certain, perhaps) in [(&[][..], 1, 0), (goes_on, 0, 1)] {
        let mut analysis = Analysis::new(Default::default(), Default::default());
        let mut moment = Moment::new(Some(25), None).unwrap();
        for line in [&JOINS, later].concat() {
            moment.pass(&mut analysis, &record(line));
            analysis.add(&record(line));
        }
        let last = analysis.finish(&[]);
        let graph = moment.graph(last, &analysis);
        assert_eq!((graph.stuck.len(), graph.perhaps_stuck.len()), (certain, perhaps));
    }
}

/// No record shows that a process was killed.
#[test]
fn who_waits_for_another_process_may_wait_for_one_that_was_killed() {
    let fork: &[RecordLine] = &[(6, 1, "11:1:1", &[0]), (7, 21, "11:2:0", &[1]), (8, 1, "11:1:2", &[20, 0, 0])];
    let initialised: &[RecordLine] = &[(5, 1, "2:1:0", &[16, 99, 0, 0])];
    let takes: &[RecordLine] = &[(10, 21, "2:2:1", &[16]), (10, 21, "2:2:2", &[0, 0])];
    let waits: &[RecordLine] = &[(20, 1, "2:2:1", &[16, 0, 0, 21])];
    let exits: &[RecordLine] = &[(30, 21, "11:4:0", &[0])];
    for (end, expected) in [(&[][..], 1), (exits, 0)] {
        let (_, graph) = analysed(&[initialised, fork, takes, waits, end].concat());
        let ends: Vec<ChainEnd> = graph.perhaps_stuck.iter().map(|stuck| stuck.end).collect();
        assert_eq!((graph.stuck.len(), ends.len()), (0, expected), "{ends:?}");
        assert!(ends.iter().all(|end| matches!(end, ChainEnd::Killed(_))), "{ends:?}");
    }
}

/// Its mutex has attributes, as those of a JVM.
#[test]
fn who_waits_for_a_condition_needs_no_mutex_of_another_process() {
    let waits: &[RecordLine] = &[(5, 2, "2:1:0", &[48, 99, 0, 0]), (20, 2, "3:4:1", &[64, 48]), (21, 1, "1:3:1", &[2])];
    let (_, graph) = analysed(&[&lock(10, 2, &[48]), waits].concat());
    assert!(graph.unknown_holders.is_empty(), "{graph:?}");
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
