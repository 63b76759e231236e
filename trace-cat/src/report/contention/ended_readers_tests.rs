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

/// A ring has overwritten what thread 2 did before. When thread 1 counts itself as the only reader, thread 2 is none.
#[test]
fn a_release_whose_acquisition_may_be_missing_ends_no_other_hold() {
    let found = |complete_from: u64, lines: &[&[RecordLine<'static>]]| -> Found {
        let ring = Knowledge { complete_from, ..Knowledge::default() };
        let lines = [&NAMES[..], &lines.concat(), &WAITS].concat();
        let (analysis, graph) = super::analysis_tests::analysed_with(&lines, ring);
        let (deadlocks, stuck) = wrong(&analysis, &graph);
        (deadlocks, undecided(&analysis, &graph), stuck)
    };
    let (deadlock, late): (Found, Found) = ((vec![vec![1, 3]], vec![], vec![]), (vec![], vec![vec![3, 1]], vec![]));
    let released: &[RecordLine] = &[(20, 2, "5:4:0", &[48, 0, 0])];
    let again: &[RecordLine] = &[(21, 2, "5:4:0", &[48, 0, 0])];
    let next: &[RecordLine] = &[(12, 1, "2:3:0", &[64, 0, 0])];
    assert_eq!(found(15, &[&read(10, 1, ONE), next, released]), deadlock, "it may have become a reader since");
    assert_eq!(found(5, &[&read(10, 1, TWO), next, released]), deadlock, "it is the other reader");
    assert_eq!(found(5, &[&read(10, 1, TWO), next, released, again]), NOTHING, "the second lock is thread 1's");
    assert_eq!(found(5, &[&read(10, 1, &[0, 0, 0]), next, released]), deadlock, "nothing is known");
    // But if it had none, it has released that of another one.
    assert_eq!(found(5, &[&read(10, 1, ONE), next, released]), NOTHING);
    assert_eq!(found(5, &[&read(10, 4, ONE), &read(11, 1, TWO), next, released]), late, "of thread 1 or 4");
    assert_eq!(found(11, &[&read(10, 4, ONE), &read(11, 1, TWO), next, released]), late, "the count has thread 4");
    let writes: &[RecordLine] = &[(8, 4, "5:3:1", &[48]), (8, 4, "5:3:2", &[0, 0]), (9, 4, "5:4:0", &[48, 0, 1])];
    assert_eq!(found(5, &[writes, &read(10, 1, &[0, 0, 0]), released]), NOTHING, "no reader was there with the writer");
    // The release may be in the count, until the thread that counts makes another record.
    assert_eq!(found(5, &[&read(10, 1, ONE), released]), late);
    assert_eq!(found(5, &[&read(10, 1, ONE), released, &read(25, 4, TWO)]), deadlock, "thread 1 is counted again");
    let own: &[RecordLine] = &[(26, 4, "5:4:0", &[48, 0, 0])];
    assert_eq!(found(5, &[&read(10, 1, ONE), &read(11, 4, TWO), released, own]), late, "thread 4 releases its own");
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
    let late: Found = (vec![], vec![vec![3, 1]], vec![]);
    let released: &[RecordLine] = &[(31, 2, "5:4:0", &[48, 0, 0])];
    let counts = || -> Vec<RecordLine<'static>> { [read(10, 1, ONE), read(11, 2, TWO), read(30, 4, TWO)].concat() };
    assert_eq!(found(&[&counts(), released, &WAITS]), late, "thread 1 has the lock if the release is in the count");
    let next: &[RecordLine] = &[(30, 4, "4:4:0", &[64, 0, 0]), (31, 4, "2:3:0", &[64, 0, 0])];
    // Then it was no reader's, so that it is thread 1 that has none.
    assert_eq!(found(&[&counts(), next, released, &WAITS]), NOTHING);
    // A signal handler may make a record before the thread counts.
    let handler: &[RecordLine] = &[(30, 4, "4:4:0", &[64, 0, 0]), (31, 4, "4:4:0", &[64, 0, 0])];
    assert_eq!(found(&[&counts(), handler, released, &WAITS]), late);
    // Two of three have ended, and one of these releases may be in the count.
    let three: &[u64] = &[0, 0, 3];
    let counts = || -> Vec<RecordLine<'static>> {
        [read(10, 1, ONE), read(11, 2, TWO), read(12, 5, three), read(30, 4, TWO)].concat()
    };
    assert_eq!(found(&[&counts(), released, &WAITS]), late);
    let other: &[RecordLine] = &[(32, 5, "5:4:0", &[48, 0, 0])];
    assert_eq!(found(&[&counts(), released, other, &WAITS]), late);
    let next: &[RecordLine] = &[(31, 4, "2:3:0", &[64, 0, 0])];
    assert_eq!(found(&[&counts(), released, next, other, &WAITS]), NOTHING);
}

/// A later reader counts all that are left: the release was in the first count.
#[test]
fn who_is_counted_again_has_its_lock() {
    let (deadlock, late): (Found, Found) = ((vec![vec![1, 3]], vec![], vec![]), (vec![], vec![vec![3, 1]], vec![]));
    let released: &[RecordLine] = &[(31, 2, "5:4:0", &[48, 0, 0])];
    let counts = || -> Vec<RecordLine<'static>> { [read(10, 1, ONE), read(11, 2, TWO), read(30, 4, TWO)].concat() };
    assert_eq!(found(&[&counts(), released, &read(32, 5, &[0, 0, 3]), &WAITS]), deadlock);
    assert_eq!(found(&[&counts(), released, &read(32, 5, TWO), &WAITS]), late, "one of two has ended");
    // There are readers whose records are not there yet, or missing: any of them may be counted instead.
    assert_eq!(found(&[&counts(), released, &read(32, 5, &[0, 0, 4]), &WAITS]), late);
    let same_time: &[RecordLine] = &[(32, 6, "5:2:1", &[48]), (32, 6, "5:2:2", &[0, 0, 0])];
    assert_eq!(found(&[&counts(), released, same_time, &read(32, 5, &[0, 0, 3]), &WAITS]), late);
    // One of two has ended for certain.
    let others: &[RecordLine] = &[(20, 6, "5:4:0", &[48, 0, 0])];
    let begin: &[RecordLine] = &[(6, 6, "1:39:0", &[6])];
    assert_eq!(found(&[begin, &read(10, 1, ONE), &read(11, 2, TWO), others, &read(32, 5, &[0, 0, 3]), &WAITS]), late);
}

/// A lock of a thread that has none of its own, which may be the one that is missing in the count.
#[test]
fn a_release_of_another_threads_lock_may_be_in_the_count_too() {
    let late: Found = (vec![], vec![vec![3, 1]], vec![]);
    let released: &[RecordLine] = &[(31, 6, "5:4:0", &[48, 0, 0])];
    let begin: &[RecordLine] = &[(6, 6, "1:39:0", &[6])];
    let counts = || -> Vec<RecordLine<'static>> { [read(10, 1, ONE), read(11, 2, TWO), read(30, 4, TWO)].concat() };
    let before: &[RecordLine] = &[(30, 4, "4:4:0", &[64, 0, 0]), (31, 4, "5:4:0", &[48, 0, 0])];
    let after: &[RecordLine] = &[(32, 4, "5:4:0", &[48, 0, 0])];
    assert_eq!(found(&[begin, &counts(), released, after, &WAITS]), late);
    assert_eq!(found(&[begin, &counts(), before, released, &WAITS]), NOTHING, "both have ended");
}

/// A thread that loses records may be the one whose lock had ended.
#[test]
fn who_loses_records_may_have_been_the_reader_that_was_none() {
    let lost: &[RecordLine] = &[(32, 2, "0:1:0", &[1]), (33, 2, "2:3:0", &[64, 0, 0])];
    let released: &[RecordLine] = &[(20, 6, "5:4:0", &[48, 0, 0])];
    let begin: &[RecordLine] = &[(6, 6, "1:39:0", &[6])];
    let late: Found = (vec![], vec![vec![3, 1]], vec![]);
    assert_eq!(found(&[begin, &read(10, 1, ONE), &read(11, 2, TWO), released, lost, &WAITS]), late);
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

/// A reader that has ended had its lock until the last count that has it.
#[test]
fn who_is_counted_is_to_blame_until_then() {
    let waits: &[RecordLine] = &[(12, 6, "5:3:1", &[48])];
    let ends: &[RecordLine] = &[(60, 4, "5:4:0", &[48, 0, 1]), (61, 6, "5:3:2", &[0, 1])];
    let counts = [read(22, 5, &[0, 0, 3]), read(30, 4, TWO)].concat();
    let (analysis, _) = analysed(&[&NAMES[..], &read(10, 1, ONE), &read(11, 2, TWO), waits, &counts, ends].concat());
    assert_eq!(blamed(&analysis, 48), [(1, 0, 5), (2, 0, 5)]);
    let (_, contention, _, handoff, unknown) = figures(&analysis, 48);
    assert_eq!((contention, handoff, unknown), (49, 0, 39));
}
