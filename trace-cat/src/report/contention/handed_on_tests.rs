//! Deadlocks that are none because others release a lock than the thread that has it.

use super::analysis_tests::{RecordLine, analysed_with, lock, undecided, wrong};
use super::holds::Knowledge;

/// Deadlocks, and circles in doubt.
type Found = (Vec<Vec<u32>>, Vec<Vec<u32>>);

fn found(records: &[&[RecordLine<'static>]], knowledge: Knowledge) -> Found {
    let (analysis, graph) = analysed_with(&records.concat(), knowledge);
    (wrong(&analysis, &graph).0, undecided(&analysis, &graph))
}

/// The ring of the thread that unlocks it has overwritten the records of that.
#[test]
fn who_gets_a_lock_again_that_it_has_may_get_it_once_more() {
    let ring = Knowledge { complete_from: 5, ..Knowledge::default() };
    let begin: &[RecordLine] = &[(6, 1, "1:39:0", &[1]), (7, 2, "1:39:0", &[2])];
    for (kind, number) in [(2, 2), (5, 3), (9, 2)] {
        let [entry, back] = [1, 2].map(|which| -> &'static str { format!("{kind}:{number}:{which}").leak() });
        let takes: &[RecordLine] = &[(10, 1, entry, &[16]), (10, 1, back, &[0, 0])];
        let gets: &[RecordLine] = &[(12, 1, entry, &[16, 0, 0, 1]), (20, 1, back, &[0, 1])];
        let waits: &[RecordLine] = &[(30, 1, entry, &[16, 0, 0, 1])];
        assert_eq!(found(&[begin, takes, waits], ring), (vec![vec![1]], vec![]), "nobody has unlocked it before");
        assert_eq!(found(&[begin, takes, gets, waits], ring), (vec![], vec![vec![1]]), "{entry}");
        let unlocks: &[RecordLine] = &[(11, 1, if kind == 2 { "2:4:0" } else { "5:4:0" }, &[16, 0, 0])];
        if kind != 9 {
            assert_eq!(found(&[begin, takes, unlocks, gets, waits], ring), (vec![vec![1]], vec![]), "it has itself");
        }
    }
    // Where an unlock for which nobody waits makes no record, it may have been the thread's own.
    let only_blocked = Knowledge { only_blocked: true, ..Knowledge::default() };
    let waits: &[RecordLine] = &[(5, 2, "2:2:1", &[16, 0, 0, 9]), (10, 2, "2:2:2", &[0, 1])];
    let again: &[RecordLine] =
        &[(20, 2, "2:2:1", &[16, 0, 0, 9]), (21, 2, "2:2:2", &[0, 1]), (30, 2, "2:2:1", &[16, 0, 0, 2])];
    assert_eq!(found(&[waits, again], only_blocked), (vec![vec![2]], vec![]));
    // A child may have made its lock anew by an assignment.
    let fork: &[RecordLine] = &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[2, 0, 0])];
    let takes = [lock(30, 21, &[16]), lock(40, 22, &[56])].concat();
    let waits: &[RecordLine] = &[(50, 21, "2:2:1", &[56]), (51, 22, "2:2:1", &[16])];
    let threads: &[RecordLine] = &[(25, 22, "1:39:0", &[2])];
    let circle = (vec![vec![21, 22]], vec![]);
    assert_eq!(found(&[&lock(10, 1, &[16]), fork, threads, &takes, waits], Knowledge::default()), circle);
}
