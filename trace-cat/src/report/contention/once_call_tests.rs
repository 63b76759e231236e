//! Calls of pthread_once of which not all are recorded.

use super::analysis_tests::{RecordLine, analysed_with, lock, wrong};
use super::holds::Knowledge;

fn lines(lines: &[&[RecordLine<'static>]]) -> Vec<RecordLine<'static>> {
    lines.concat()
}

/// The one that enters second overtakes the first one between its record and its call.
#[test]
fn who_entered_first_waits_for_one_that_made_calls_since() {
    let both: &[RecordLine] = &[(10, 1, "1:38:1", &[16, 0]), (11, 2, "1:38:1", &[16, 0])];
    let inside: &[RecordLine] = &[(12, 2, "2:2:1", &[32])];
    let (analysis, graph) = analysed_with(&lines(&[&lock(8, 1, &[32]), both, inside]), Knowledge::default());
    assert_eq!(wrong(&analysis, &graph), (vec![vec![1, 2]], vec![]));
    let held = graph.deadlocks[0].iter().map(|blocked| {
        blocked.holds.iter().map(|object| analysis.objects[*object as usize].address).collect::<Vec<u64>>()
    });
    assert_eq!(held.collect::<Vec<_>>(), [vec![32], vec![]]);
}

/// Where the call of the thread that runs it is overwritten.
#[test]
fn whether_a_thread_runs_a_routine_or_waits_for_it_may_be_unknown() {
    let ring = Knowledge { complete_from: 5, ..Knowledge::default() };
    let found = |records: &[RecordLine<'static>]| {
        let (analysis, graph) = analysed_with(records, ring);
        let unknown = graph.unknown_routines.iter().map(|(thread, _)| analysis.threads[*thread as usize].lwp);
        let waited: u64 = analysis.objects.iter().map(|object| object.figures.wait.count()).sum();
        (wrong(&analysis, &graph), unknown.collect::<Vec<u32>>(), waited)
    };
    let first: &[RecordLine] = &[(10, 1, "1:38:1", &[16, 0])];
    let other: &[RecordLine] = &[(11, 2, "1:38:1", &[16, 0])];
    assert_eq!(found(first), ((vec![], vec![]), vec![1], 0));
    assert_eq!(found(&lines(&[first, other])), ((vec![], vec![]), vec![1, 2], 0));
    // Its next call shows that it runs the routine, so that the other one waits.
    let inside: &[RecordLine] = &[(12, 1, "2:2:1", &[32])];
    assert_eq!(found(&lines(&[first, other, inside])).1, [0; 0]);
    let crossed = lines(&[&lock(8, 2, &[32]), first, other, inside]);
    assert_eq!(found(&crossed).0, (vec![vec![2, 1]], vec![]));
    assert_eq!(found(&lines(&[first, &[(12, 1, "1:38:1", &[16, 0])]])).0, (vec![vec![1]], vec![]), "for itself");
    // One that has a stack has found the routine being run.
    let stack: &[RecordLine] = &[(10, 1, "0:3:1", &[0x500])];
    assert_eq!(found(&lines(&[stack, first])), ((vec![], vec![]), vec![], 1));
    // Nobody knows whether it has waited.
    let returns: &[RecordLine] = &[(20, 1, "1:38:2", &[0]), (21, 2, "1:38:2", &[0])];
    assert_eq!(found(&lines(&[first, other, returns])), ((vec![], vec![]), vec![], 0));
}
