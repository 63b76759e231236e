//! Threads that wait in destructors, after the record of their end.

use super::analysis_tests::{RecordLine, analysed, lock, wrong};

fn lines(lines: &[&[RecordLine<'static>]]) -> Vec<RecordLine<'static>> {
    lines.concat()
}

/// The record of a thread's end is made before its destructors run.
#[test]
fn a_thread_whose_destructor_waits_has_not_ended() {
    let found = |records: &[&[RecordLine<'static>]]| {
        let names: &[RecordLine] = &[(1, 1, "1:39:0", &[1]), (2, 2, "1:39:0", &[2]), (3, 3, "1:39:0", &[3])];
        let (analysis, graph) = analysed(&lines(&[&[names], records].concat()));
        let perhaps = graph.perhaps_stuck.len();
        (wrong(&analysis, &graph), perhaps, analysis.threads[0].waits, analysis.threads[0].idleness)
    };
    let (has, joins): (&[RecordLine], &[RecordLine]) = (&lock(10, 1, &[16]), &[(20, 1, "1:3:1", &[2])]);
    let ends = |event: &'static str, call: &'static [u64]| -> Vec<RecordLine<'static>> {
        vec![(15, 2, "1:2:0", &[0]), (18, 2, event, call)]
    };
    let late: &[RecordLine] = &[(30, 3, "4:4:0", &[112, 0, 0])];
    assert_eq!(found(&[has, &ends("2:2:1", &[16]), joins, late]), ((vec![vec![1, 2]], vec![]), 0, 1, 10));
    assert_eq!(found(&[has, joins, &[(21, 2, "1:2:0", &[0]), (22, 2, "2:2:1", &[16])]]).0, (vec![vec![1, 2]], vec![]));
    let waits: &[RecordLine] = &[(30, 3, "4:2:1", &[112, 0])];
    assert_eq!(found(&[has, &ends("4:2:1", &[64, 0]), joins, waits]), ((vec![], vec![(1, 2)]), 0, 1, 10), "idle");
    assert_eq!(found(&[has, &ends("4:2:1", &[64, 0]), joins, late]), ((vec![], vec![]), 1, 1, 10), "it may be woken");
    assert_eq!(found(&[has, &ends("2:30:1", &[16, 0, 99]), joins, late]), ((vec![], vec![]), 0, 1, 10), "a time limit");
    assert_eq!(found(&[has, &ends("2:3:0", &[32, 0]), joins, late]), ((vec![], vec![]), 0, 0, 0), "it may have ended");
    // A call that it left by a jump is none of a destructor.
    let left: &[RecordLine] = &[(14, 2, "2:2:1", &[16]), (15, 2, "1:2:0", &[0])];
    assert_eq!(found(&[has, left, joins, late]), ((vec![], vec![]), 0, 0, 0));
}

/// Nobody runs who could come to the barrier: the thread that has recorded its end waits for ever, too.
#[test]
fn who_is_in_a_destructor_for_ever_does_not_come_to_a_barrier() {
    let waits: &[RecordLine] = &[(20, 2, "7:2:1", &[80, 2]), (21, 1, "1:3:1", &[2])];
    let ends: &[RecordLine] = &[(10, 3, "1:39:0", &[3]), (11, 3, "1:2:0", &[0])];
    let found = |call: &'static [RecordLine<'static>]| {
        let (analysis, graph) = analysed(&lines(&[ends, waits, call]));
        (wrong(&analysis, &graph).1, graph.perhaps_stuck.len())
    };
    assert_eq!(found(&[(30, 3, "4:2:1", &[64, 0])]), (vec![(1, 2)], 0));
    assert_eq!(found(&[(30, 3, "4:30:1", &[64, 0, 0, 99])]), (vec![], 1));
}
