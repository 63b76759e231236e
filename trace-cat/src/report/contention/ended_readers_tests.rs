//! Read locks that have ended without a release by the thread that took them.

use super::analysis_tests::{RecordLine, analysed, blamed, figures, undecided, wrong};
use super::holds::Knowledge;

/// A thread takes the rwlock for reading, and counts so many readers.
fn read(time: u64, lwp: u32, readers: &'static [u64]) -> [RecordLine<'static>; 2] {
    [(time, lwp, "5:2:1", &[48]), (time, lwp, "5:2:2", readers)]
}

const ONE: &[u64] = &[0, 0, 1];
const TWO: &[u64] = &[0, 0, 2];

/// All threads that there are.
const NAMES: [RecordLine<'static>; 4] =
    [(1, 1, "1:39:0", &[1]), (2, 2, "1:39:0", &[2]), (3, 3, "1:39:0", &[3]), (4, 4, "1:39:0", &[4])];

/// Thread 3 has a mutex, and waits to write; thread 1 waits for the mutex.
const WAITS: [RecordLine<'static>; 4] =
    [(40, 3, "2:2:1", &[16]), (40, 3, "2:2:2", &[0, 0]), (41, 3, "5:3:1", &[48]), (50, 1, "2:2:1", &[16])];

/// Deadlocks, circles in doubt, stuck threads.
type Found = (Vec<Vec<u32>>, Vec<Vec<u32>>, Vec<(u32, u32)>);

fn found(lines: &[&[RecordLine<'static>]]) -> Found {
    let (analysis, graph) = analysed(&[&NAMES[..], &lines.concat()].concat());
    let (deadlocks, stuck) = wrong(&analysis, &graph);
    (deadlocks, undecided(&analysis, &graph), stuck)
}

const NOTHING: Found = (Vec::new(), Vec::new(), Vec::new());

#[test]
fn a_reader_whose_lock_another_thread_has_released_is_none() {
    let released: &[RecordLine] = &[(20, 2, "5:4:0", &[48, 0, 0])];
    let deadlock = (vec![vec![1, 3]], vec![], vec![]);
    assert_eq!(found(&[&read(10, 1, ONE), &WAITS]), deadlock);
    assert_eq!(found(&[&read(10, 1, ONE), released, &read(30, 4, ONE), &WAITS]), NOTHING);
    // Any thread may release the lock of the one that reads now.
    assert_eq!(found(&[&read(10, 4, ONE), released, &read(30, 1, ONE), &WAITS]), (vec![], vec![vec![3, 1]], vec![]));
    // One of two readers is left.
    assert_eq!(
        found(&[&read(10, 1, ONE), &read(11, 4, TWO), released, &WAITS]),
        (vec![], vec![vec![3, 1]], vec![]),
        "which one is not known"
    );
    let releases_its_own: &[RecordLine] = &[(25, 4, "5:4:0", &[48, 0, 0])];
    assert_eq!(found(&[&read(10, 1, ONE), &read(11, 4, TWO), released, releases_its_own, &WAITS]), NOTHING);
}

#[test]
fn a_release_whose_acquisition_may_be_missing_ends_no_other_hold() {
    let released: &[RecordLine] = &[(20, 2, "5:4:0", &[48, 0, 0])];
    let lines = [&NAMES[..], &read(10, 1, ONE), released, &WAITS].concat();
    let ring = Knowledge { complete_from: 5, ..Knowledge::default() };
    let (analysis, graph) = super::analysis_tests::analysed_with(&lines, ring);
    assert_eq!(wrong(&analysis, &graph).0, [[1, 3]]);
}

/// The last reader counts fewer readers than have taken the lock and not released it.
#[test]
fn who_is_not_counted_among_the_readers_is_none() {
    let deadlock = (vec![vec![1, 3]], vec![], vec![]);
    let late: Found = (vec![], vec![vec![3, 1]], vec![]);
    assert_eq!(found(&[&read(10, 1, ONE), &read(30, 4, TWO), &WAITS]), deadlock);
    assert_eq!(found(&[&read(10, 1, ONE), &read(30, 4, ONE), &WAITS]), NOTHING);
    assert_eq!(found(&[&read(10, 1, ONE), &read(11, 2, TWO), &read(30, 4, TWO), &WAITS]), late, "thread 1 or 2");
    // Nothing is known.
    assert_eq!(found(&[&read(10, 1, ONE), &read(30, 4, &[0, 0, 0]), &WAITS]), deadlock);
    // Who acquires the lock at the same time may do so later.
    assert_eq!(found(&[&read(30, 1, ONE), &read(30, 4, ONE), &WAITS]), deadlock);
    // A thread that reads several times counts as several.
    assert_eq!(found(&[&read(10, 1, ONE), &read(11, 1, TWO), &read(30, 4, TWO), &WAITS]), late);
    assert_eq!(found(&[&read(10, 4, ONE), &read(11, 1, TWO), &read(30, 4, TWO), &WAITS]), late, "or its own first");
}

/// A thread counts the readers after the time of its record, and before that of its next one.
#[test]
fn a_release_may_be_in_the_count_before_it_is_in_the_records() {
    let released: &[RecordLine] = &[(31, 2, "5:4:0", &[48, 0, 0])];
    let counts = || -> Vec<RecordLine<'static>> { [read(10, 1, ONE), read(11, 2, TWO), read(30, 4, TWO)].concat() };
    assert_eq!(found(&[&counts(), released, &WAITS]), (vec![vec![1, 3]], vec![], vec![]));
    let next: &[RecordLine] = &[(30, 4, "4:4:0", &[64, 0, 0]), (31, 4, "4:4:0", &[64, 0, 0])];
    // Then it was no reader's, so that it is thread 1 that has none.
    assert_eq!(found(&[&counts(), next, released, &WAITS]), NOTHING);
}

#[test]
fn who_has_ended_to_read_is_not_to_blame() {
    let blame = |lines: &[&[RecordLine<'static>]]| {
        let wait: &[RecordLine] = &[(41, 3, "5:3:1", &[48])];
        let ends: &[RecordLine] = &[(60, 4, "5:4:0", &[48, 0, 1]), (61, 3, "5:3:2", &[0, 1])];
        let (analysis, _) = analysed(&[&NAMES[..], &lines.concat(), wait, ends].concat());
        let times: Vec<(u32, u64)> = blamed(&analysis, 48).iter().map(|(lwp, _, time)| (*lwp, *time)).collect();
        let (_, contention, _, handoff, unknown) = figures(&analysis, 48);
        assert_eq!(contention, 20);
        (times, handoff, unknown, analysis.missing.acquisitions, analysis.missing.releases)
    };
    let released: &[RecordLine] = &[(20, 2, "5:4:0", &[48, 0, 0])];
    assert_eq!(blame(&[&read(10, 1, ONE), released, &read(30, 4, ONE)]), (vec![(4, 19)], 1, 0, 0, 0));
    assert_eq!(blame(&[&read(10, 1, ONE), &read(30, 4, ONE)]), (vec![(4, 19)], 1, 0, 0, 1));
    assert_eq!(blame(&[&read(10, 1, ONE), &read(11, 2, TWO), &read(30, 4, TWO)]), (vec![], 0, 20, 0, 2));
}
