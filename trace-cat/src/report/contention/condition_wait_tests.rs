//! Waits for conditions in the graph: each ends only with its mutex.

use super::analysis_tests::{RecordLine, analysed, analysed_with, figures, lock, undecided, wrong};
use super::holds::Knowledge;

fn lines(lines: &[&[RecordLine<'static>]]) -> Vec<RecordLine<'static>> {
    lines.concat()
}

/// Thread 1 waits for a condition with mutex 16 while it holds mutex 32, and thread 2 holds 16 and wants 32.
#[test]
fn who_was_woken_waits_for_its_mutex() {
    let waits: &[RecordLine] = &[(20, 1, "3:4:1", &[64, 16])];
    let wants: &[RecordLine] = &[(40, 2, "2:2:1", &[32])];
    let signal: &[RecordLine] = &[(35, 2, "3:2:0", &[64, 0, 0])];
    let before: &[RecordLine] = &[(25, 2, "3:2:0", &[64, 0, 0])];
    let shown: &[RecordLine] = &[(25, 2, "3:2:0", &[64, 0, 1])];
    let broadcast: &[RecordLine] = &[(35, 2, "3:3:0", &[64, 0, 1])];
    let other: &[RecordLine] = &[(22, 3, "3:4:1", &[64, 16])];
    let limited: &[RecordLine] = &[(20, 1, "3:5:1", &[64, 16, 9, 9])];
    let locks = [lock(10, 1, &[32]), lock(11, 1, &[16])].concat();
    let found = |records: &[&[RecordLine<'static>]]| {
        let (analysis, graph) = analysed(&lines(&[&[&locks[..]], records].concat()));
        wrong(&analysis, &graph)
    };
    let deadlock = (vec![vec![1, 2]], vec![]);
    let taken = lock(30, 2, &[16]);
    assert_eq!(found(&[waits, &taken, signal, wants]), deadlock);
    assert_eq!(found(&[limited, &taken, signal, wants]), deadlock, "its limit does not end the wait for the mutex");
    assert_eq!(found(&[waits, shown, &taken, wants]), deadlock);
    assert_eq!(found(&[waits, other, &taken, broadcast, wants]), (vec![vec![1, 2]], vec![(3, 2)]));
    // One of two was woken, nobody was in the queue yet, nobody was woken: nothing lets thread 1 return.
    assert_eq!(found(&[waits, other, &taken, signal, wants]), deadlock);
    assert_eq!(found(&[waits, before, &taken, wants]), deadlock);
    assert_eq!(found(&[waits, &taken, wants]), deadlock);
    assert_eq!(found(&[limited, &taken, wants]), deadlock, "whether its limit is over or not");
    // Thread 2 has had the mutex before, so that the call fails at once.
    let errorcheck = [lock(10, 1, &[32]), lock(11, 2, &[16])].concat();
    let (analysis, graph) = analysed(&lines(&[&errorcheck, waits, wants]));
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![(2, 1)]));
    // A signal may wake it, and thread 2 waits for another one.
    let elsewhere: &[RecordLine] = &[(40, 2, "4:2:1", &[80, 0])];
    let behind: &[RecordLine] = &[(41, 3, "2:2:1", &[32])];
    assert_eq!(found(&[waits, &taken, elsewhere, behind]), (vec![], vec![(3, 1)]));
    // Its limit lets it wait for the mutex, for ever.
    assert_eq!(found(&[limited, &taken, elsewhere, behind]), (vec![], vec![(1, 2), (3, 1)]));
}

/// Where a release may have no record, who acquired the mutex last may have it still.
#[test]
fn who_took_a_mutex_that_a_wait_needs_may_have_given_it_back() {
    let waits: &[RecordLine] = &[(5, 2, "1:39:0", &[2]), (6, 3, "1:39:0", &[3]), (10, 1, "3:4:1", &[64, 16])];
    let limited: &[RecordLine] = &[waits[0], waits[1], (10, 1, "3:5:1", &[64, 16, 9, 9])];
    let takes: &[RecordLine] = &[(12, 2, "2:2:1", &[16]), (15, 2, "2:2:2", &[0, 1])];
    let joins: &[RecordLine] = &[(20, 2, "1:3:1", &[1])];
    let releases: &[RecordLine] = &[(17, 2, "2:4:0", &[16, 0, 1])];
    let found = |records: &[&[RecordLine<'static>]]| {
        let knowledge = Knowledge { only_blocked: true, ..Knowledge::default() };
        // Nobody runs who could wake the first one.
        let other: &[RecordLine] = &[(30, 3, "4:2:1", &[96, 0])];
        let (analysis, graph) = analysed_with(&lines(&[records, &[other]].concat()), knowledge);
        let unknown = graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum::<usize>();
        (wrong(&analysis, &graph), undecided(&analysis, &graph), unknown)
    };
    // A signal may end the wait if the mutex is free.
    let stuck = (vec![], vec![(2, 1)]);
    assert_eq!(found(&[waits, takes, joins]), (stuck.clone(), vec![vec![1, 2]], 0));
    assert_eq!(found(&[limited, takes, joins]), ((vec![], vec![]), vec![vec![1, 2]], 0));
    // Who joins may have taken it without a record, and then no signal helps.
    assert_eq!(found(&[waits, takes, releases, joins]), (stuck.clone(), vec![], 1));
    assert_eq!(found(&[waits, joins]), (stuck, vec![], 1));
}

/// Who waits until a limit that is over wants its mutex, which somebody may have where acquisitions are not recorded.
#[test]
fn a_limit_that_is_over_makes_a_wait_one_for_the_mutex() {
    let found = |ahead: (i64, Option<i64>), wait: RecordLine<'static>, clock: u64, last: u64| {
        let (realtime_ahead, monotonic_ahead) = ahead;
        let knowledge = Knowledge { only_blocked: true, realtime_ahead, monotonic_ahead, ..Knowledge::default() };
        let init = [64, 0, clock, 0];
        let lines = [(5, 1, "3:1:0", &init[..]), wait, (last, 2, "1:39:0", &[2, 0, 0, 0])];
        let (_, graph) = analysed_with(&lines, knowledge);
        graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum::<usize>()
    };
    let timed = (20, 1, "3:5:1", &[64, 16, 0, 50][..]);
    assert_eq!(found((0, None), timed, 0, 51), 1);
    assert_eq!(found((0, None), timed, 0, 50), 0, "it is not over");
    assert_eq!(found((7, None), timed, 0, 51), 0, "times of another host");
    assert_eq!(found((0, None), timed, 1, 51), 0, "the clock is not known");
    assert_eq!(found((0, Some(-10)), timed, 1, 41), 1);
    assert_eq!(found((0, Some(-10)), timed, 1, 40), 0);
    assert_eq!(found((0, Some(-31)), timed, 1, 41), 0, "it was over before the call");
    let [realtime, monotonic] =
        [0, 1].map(|clock| (20, 1, "3:30:1", if clock == 0 { &[64, 16, 0, 50][..] } else { &[64, 16, 1, 50] }));
    assert_eq!(found((0, Some(1000)), realtime, 1, 51), 1, "the call names the clock");
    assert_eq!(found((0, Some(1000)), monotonic, 0, 1051), 1);
    assert_eq!(found((0, Some(1000)), monotonic, 0, 1049), 0);
    assert_eq!(found((0, Some(0)), (20, 1, "3:4:1", &[64, 16]), 0, 51), 0, "no limit");
}

/// Whoever waits for a thread may have the mutex that it needs back, before its time limit as well as after it.
#[test]
fn who_waits_for_a_wait_with_a_time_limit_may_have_its_mutex() {
    let found = |records: &[&[RecordLine<'static>]]| {
        let knowledge = Knowledge { only_blocked: true, ..Knowledge::default() };
        let timed: &[RecordLine] = &[(10, 1, "3:5:1", &[64, 16, 0, 50])];
        let (analysis, graph) = analysed_with(&lines(&[timed, &lines(records)]), knowledge);
        assert_eq!(wrong(&analysis, &graph), (vec![], vec![]));
        graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum::<usize>()
    };
    let joins: &[RecordLine] = &[(20, 2, "1:3:1", &[1])];
    let exits: &[RecordLine] = &[(21, 3, "11:4:0", &[0])];
    assert_eq!(found(&[joins]), 1);
    assert_eq!(found(&[joins, exits]), 1, "it ended before");
    assert_eq!(found(&[]), 0, "nobody waits for it");
}

/// Where only calls that blocked are recorded, there may be none on the mutex but waits for conditions, which return with it.
#[test]
fn who_has_a_mutex_back_from_a_condition_may_have_it_still() {
    let names: &[RecordLine] = &[(5, 1, "1:39:0", &[1]), (6, 2, "1:39:0", &[2]), (7, 3, "1:39:0", &[3])];
    let waits: &[RecordLine] = &[(10, 2, "3:4:1", &[64, 16]), (20, 1, "3:5:1", &[64, 16, 9, 9])];
    let returns: &[RecordLine] = &[(30, 3, "3:2:0", &[64, 0, 1]), (31, 2, "3:4:2", &[0])];
    let wants: &[RecordLine] = &[(40, 2, "2:2:1", &[32, 0, 0, 1])];
    let found = |knowledge| {
        let (analysis, graph) = analysed_with(&lines(&[names, waits, returns, wants]), knowledge);
        (wrong(&analysis, &graph), undecided(&analysis, &graph))
    };
    let only_blocked = Knowledge { only_blocked: true, ..Knowledge::default() };
    assert_eq!(found(only_blocked), ((vec![], vec![]), vec![vec![1, 2]]));
    // Then calls on the mutex may not be recorded at all.
    let selective = Knowledge { is_selective: true, ..only_blocked };
    assert_eq!(found(selective), ((vec![], vec![]), vec![]));
}

/// Thread 1 was woken while thread 2 had the mutex, and waits for it as 3 and 4 do, which came later.
#[test]
fn who_was_woken_is_one_of_those_that_wait_for_the_mutex() {
    let begin =
        [lock(5, 1, &[16]).to_vec(), vec![(10, 1, "3:4:1", &[64, 16][..])], lock(11, 2, &[16]).to_vec()].concat();
    let signal: &[RecordLine] = &[(20, 2, "3:2:0", &[64, 0, 1])];
    let waits: &[RecordLine] = &[(21, 3, "2:2:1", &[16]), (22, 4, "2:2:1", &[16]), (30, 2, "2:4:0", &[16, 0, 1])];
    let back: &[RecordLine] = &[(40, 1, "3:4:2", &[0]), (41, 1, "2:4:0", &[16, 0, 1])];
    let third: &[RecordLine] = &[(31, 3, "2:2:2", &[0, 1]), (35, 3, "2:4:0", &[16, 0, 1])];
    let fourth: &[RecordLine] = &[(51, 4, "2:2:2", &[0, 1]), (55, 4, "2:4:0", &[16, 0, 0])];
    let most = |records: &[&[RecordLine<'static>]]| {
        let (analysis, _) = analysed(&lines(&[&[&begin[..]], records].concat()));
        let mutex = analysis.objects.iter().find(|object| object.address == 16).unwrap();
        (mutex.figures.wait.count(), mutex.figures.max_waiters)
    };
    assert_eq!(most(&[signal, waits, third, back, fourth]), (3, 3));
    // Without a signal nobody was woken, and who has the mutex again waits no more.
    assert_eq!(most(&[waits, third, fourth]), (2, 2));
    let again: &[RecordLine] = &[(60, 2, "2:2:1", &[16]), (61, 2, "2:2:2", &[0, 0]), (62, 3, "2:2:1", &[16])];
    let end: &[RecordLine] = &[(63, 2, "2:4:0", &[16, 0, 1]), (64, 3, "2:2:2", &[0, 1]), (65, 3, "2:4:0", &[16, 0, 0])];
    let alone: &[RecordLine] = &[(30, 2, "2:4:0", &[16, 0, 1])];
    assert_eq!(most(&[signal, alone, back, again, end]), (2, 1));
}

/// Its time for the condition and its time for the mutex are of one call.
#[test]
fn a_wait_for_a_condition_is_one_wait_of_its_site() {
    let waits: &[RecordLine] = &[(5, 1, "2:2:1", &[16]), (6, 1, "2:2:2", &[0]), (10, 1, "3:4:1", &[64, 16])];
    let wakes: &[RecordLine] = &[(25, 2, "3:2:0", &[64, 0, 1]), (60, 2, "2:4:0", &[16, 0, 1])];
    let (analysis, _) = analysed(&lines(&[waits, &lock(20, 2, &[16]), wakes, &[(62, 1, "3:4:2", &[0, 25])]]));
    let [waiting, taking] = [64, 16].map(|address| figures(&analysis, address));
    assert_eq!((waiting.0, taking.0), (1, 1));
    let site = &analysis.sites.sites[0];
    let total = site.wait_blocks.total();
    assert_eq!((total.waits, total.waited), (1, waiting.2 + taking.1));
    assert_eq!((site.waits, site.contention + site.idleness), (total.waits, total.waited));
}
