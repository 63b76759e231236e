//! Waits at barriers, and who ends them.

use super::analysis_tests::{RecordLine, analysed, figures, wakers};
use super::barrier_waits::LAST;

#[test]
fn the_last_to_arrive_is_that_of_the_waits_own_round() {
    let lines = [
        (10, 1, "7:2:1", &[16, 2][..]),
        (11, 2, "7:2:1", &[16, 1]),
        (13, 3, "7:2:1", &[16, 2]),
        (14, 4, "7:2:1", &[16, 1]),
        (14, 2, "7:2:2", &[LAST]),
        (15, 1, "7:2:2", &[0]),
        (16, 3, "7:2:2", &[0]),
        (17, 4, "7:2:2", &[LAST]),
    ];
    assert_eq!(wakers(&analysed(&lines).0, 16), [(2, 1), (4, 1)]);
    // Those that arrive at the same time do not count each other, nor do threads of the next round.
    let lines = [
        (1, 1, "7:1:0", &[16, 0, 2, 0, 0][..]),
        (10, 1, "7:2:1", &[16, 2]),
        (11, 2, "7:2:1", &[16, 2]),
        (12, 3, "7:2:1", &[16, 1]),
        (13, 1, "7:2:2", &[0]),
        (14, 2, "7:2:2", &[LAST]),
        (20, 4, "7:2:1", &[16, 1]),
        (21, 4, "7:2:2", &[LAST]),
        (22, 3, "7:2:2", &[0]),
    ];
    let (analysis, _) = analysed(&lines);
    assert_eq!((figures(&analysis, 16), wakers(&analysis, 16)), ((2, 0, 3 + 10, 0, 0), vec![(2, 1), (4, 1)]));
}

/// Only those of one process are at the barrier that this has at an address.
#[test]
fn the_last_to_arrive_may_be_of_another_process() {
    let found = |waits: &[RecordLine<'static>]| {
        // A count of 3, for which the attributes may say that it is for processes.
        let init: &[RecordLine] = &[(1, 1, "7:1:0", &[16, 0x99, 3, 0, 0])];
        let (analysis, _) = analysed(&[init, waits].concat());
        (figures(&analysis, 16), wakers(&analysis, 16))
    };
    let arrivals: &[RecordLine] = &[(10, 1, "7:2:1", &[16, 3]), (20, 2, "7:2:1", &[16, 2])];
    let returns: &[RecordLine] = &[(50, 1, "7:2:2", &[0]), (51, 2, "7:2:2", &[0])];
    assert_eq!(found(&[arrivals, returns].concat()), ((2, 0, 40 + 31, 0, 0), vec![]));
    assert_eq!(found(&[(10, 1, "7:2:1", &[16, 2]), (50, 1, "7:2:2", &[0])]), ((1, 0, 40, 0, 0), vec![]));
    // Both looked before either had arrived.
    assert_eq!(found(&[(10, 1, "7:2:1", &[16, 2]), (11, 1, "7:2:2", &[LAST])]), ((0, 0, 0, 0, 0), vec![]));
    let together: &[RecordLine] = &[(10, 1, "7:2:1", &[16, 2]), (11, 2, "7:2:1", &[16, 2]), (12, 1, "7:2:2", &[0])];
    assert_eq!(found(&[together, &[(13, 2, "7:2:2", &[LAST])]].concat()), ((1, 0, 2, 0, 0), vec![(2, 1)]));
}

/// A thread may lose its processor between its record and its arrival.
#[test]
fn the_last_to_make_a_record_waits_for_the_last_to_arrive() {
    let begin: &[RecordLine] = &[
        (1, 1, "7:1:0", &[16, 0, 3, 0, 0]),
        (10, 1, "7:2:1", &[16, 3]),
        (20, 2, "7:2:1", &[16, 2]),
        (30, 3, "7:2:1", &[16, 1]),
    ];
    let found = |returns: &[(u32, u64)]| {
        let returns = (50..).zip(returns).map(|(time, (lwp, rval))| (time, *lwp, "7:2:2", vec![*rval]));
        let returns: Vec<(u64, u32, &str, Vec<u64>)> = returns.collect();
        let returns: Vec<RecordLine> =
            returns.iter().map(|(time, lwp, event, arguments)| (*time, *lwp, *event, &arguments[..])).collect();
        let (analysis, _) = analysed(&[begin, &returns].concat());
        (figures(&analysis, 16), wakers(&analysis, 16))
    };
    // Whoever returns first.
    assert_eq!(found(&[(2, LAST), (1, 0), (3, 0)]), ((2, 0, 41 + 22, 0, 0), vec![(2, 2)]));
    assert_eq!(found(&[(1, 0), (3, 0), (2, LAST)]), ((2, 0, 40 + 21, 0, 0), vec![(2, 2)]));
    assert_eq!(found(&[(3, 0), (2, LAST), (1, 0)]), ((2, 0, 20 + 42, 0, 0), vec![(2, 2)]));
    assert_eq!(found(&[(1, 0), (2, 0), (3, LAST)]), ((2, 0, 40 + 31, 0, 0), vec![(3, 2)]));
    // Where the last to arrive has not returned, it is the last that made a record, unless that has returned as another one.
    assert_eq!(found(&[(1, 0), (2, 0)]), ((2, 0, 40 + 31, 0, 0), vec![(3, 2)]));
    assert_eq!(found(&[(1, 0), (3, 0)]), ((3, 0, 40 + 21 + 31, 0, 0), vec![]));
}

/// Two rounds of two of four threads: the second thread made its record, and lost its processor until the second round.
#[test]
fn who_ends_waits_of_more_threads_than_a_round_has_is_not_guessed() {
    let lines: &[RecordLine] = &[
        (1, 1, "7:1:0", &[16, 0, 2, 0, 0]),
        (10, 1, "7:2:1", &[16, 2]),
        (20, 2, "7:2:1", &[16, 1]),
        (30, 3, "7:2:1", &[16, 1]),
        (31, 1, "7:2:2", &[0]),
        (32, 3, "7:2:2", &[LAST]),
        (33, 4, "7:2:1", &[16, 2]),
        (40, 2, "7:2:2", &[LAST]),
        (41, 4, "7:2:2", &[0]),
    ];
    let (analysis, _) = analysed(lines);
    assert_eq!((figures(&analysis, 16), wakers(&analysis, 16)), ((2, 0, 21 + 8, 0, 0), vec![]));
}

/// The second thread has not returned from a round that has ended: it runs, and nobody is stuck.
#[test]
fn who_has_not_returned_from_an_ended_round_runs() {
    let lines: &[RecordLine] = &[
        (2, 1, "1:3:1", &[2]),
        (10, 2, "7:2:1", &[16, 2]),
        (20, 3, "7:2:1", &[16, 1]),
        (21, 3, "7:2:2", &[LAST]),
        (30, 3, "7:2:1", &[16, 2]),
    ];
    let begin: &[RecordLine] = &[(1, 1, "7:1:0", &[16, 0, 2, 0, 0])];
    for lines in [&[begin, lines].concat()[..], lines] {
        assert!(analysed(lines).1.stuck.is_empty(), "{:?}", analysed(lines).1);
    }
    // Nobody comes to the round of both.
    let alone: &[RecordLine] = &[(2, 1, "1:3:1", &[2]), (10, 2, "7:2:1", &[16, 3]), (20, 3, "7:2:1", &[16, 2])];
    assert!(!analysed(alone).1.stuck.is_empty());
}

/// As nobody is who waits for a semaphore that has been posted.
#[test]
fn who_waits_for_a_semaphore_that_is_posted_runs() {
    let waits: &[RecordLine] = &[(1, 3, "4:2:1", &[32, 0]), (2, 1, "1:3:1", &[2]), (10, 2, "4:2:1", &[16, 0])];
    let post: &[RecordLine] = &[(20, 4, "4:4:0", &[16, 0, 0])];
    assert!(!analysed(waits).1.stuck.is_empty());
    assert!(analysed(&[waits, post].concat()).1.stuck.is_empty());
}
