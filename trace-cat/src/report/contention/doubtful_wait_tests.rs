//! Waits of which the records do not show for certain whether they are for ever.

use super::Analysis;
use super::analysis_tests::{RecordLine, analysed, analysed_with, lock, record, undecided, wrong};
use super::chain_ends::ChainEnd;
use super::holds::Knowledge;
use super::owners_elsewhere_tests::ALL;
use super::wait_graph::WaitGraph;

const ONLY_BLOCKED: Knowledge = Knowledge { only_blocked: true, ..ALL };

fn unknown(graph: &WaitGraph) -> usize {
    graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum()
}

/// A deadlock of threads 1 and 2, the first of which makes more records.
fn circle_and(more: &[RecordLine<'static>]) -> Vec<RecordLine<'static>> {
    let waits: &[RecordLine] = &[(20, 1, "2:2:1", &[32]), (21, 2, "2:2:1", &[16]), (22, 3, "2:2:1", &[16])];
    [&lock(10, 1, &[16])[..], &lock(11, 2, &[32]), waits, more].concat()
}

/// What a handler calls that prints where a hanging program is, or forks another one, is no proof that it has jumped out of the wait.
#[test]
fn a_deadlock_is_in_doubt_where_handlers_make_records() {
    let found = |more: &[RecordLine<'static>]| {
        let (analysis, graph) = analysed(&circle_and(more));
        assert_eq!(wrong(&analysis, &graph), (vec![], vec![]));
        undecided(&analysis, &graph)
    };
    let fork: &[RecordLine] = &[(30, 1, "11:1:1", &[0]), (31, 1, "11:1:2", &[9, 0, 0])];
    let backtrace: &[RecordLine] = &[(30, 1, "1:38:1", &[96, 0]), (31, 1, "1:38:2", &[0, 0])];
    let tries: &[RecordLine] = &[(30, 1, "2:3:0", &[48, 0]), (31, 1, "2:4:0", &[48, 0, 0])];
    let other = lock(30, 1, &[64]);
    for more in [fork, backtrace, tries, &other, &[(30, 1, "1:16:0", &[])]] {
        assert_eq!(found(more), [[1, 2]], "{more:?}");
    }
    assert_eq!(found(&[(30, 1, "1:2:0", &[0])]), [[0; 0]; 0], "it ends");
    assert_eq!(found(&[(30, 1, "2:4:0", &[16, 0, 1])]), [[0; 0]; 0], "it has released what the other one waits for");
    // Who has the lock of its call is not in that.
    let jumped: &[RecordLine] = &[(10, 1, "2:2:1", &[16]), (20, 1, "2:2:1", &[16]), (21, 1, "2:2:2", &[0, 0])];
    assert_eq!(undecided(&analysed(jumped).0, &analysed(jumped).1), [[0; 0]; 0]);
}

#[test]
fn a_deadlock_of_a_running_process_is_in_doubt_where_a_handler_has_made_records_since() {
    let mut analysis = Analysis::new(Default::default(), Default::default());
    let mut moment = super::Moment::new(None, Some(25)).unwrap();
    for line in circle_and(&[(30, 1, "1:16:0", &[])]) {
        moment.pass(&mut analysis, &record(line));
        analysis.add(&record(line));
    }
    let last = analysis.finish(&[(1, 40)]);
    let graph = moment.graph(last, &analysis);
    assert_eq!((wrong(&analysis, &graph).0, undecided(&analysis, &graph)), (vec![], vec![vec![1, 2]]));
}

#[test]
fn who_waits_for_one_that_may_have_left_its_wait_may_be_stuck() {
    let joins: &[RecordLine] = &[(10, 2, "4:2:1", &[64, 0]), (11, 1, "1:3:1", &[2])];
    for event in ["4:4:0", "1:16:0"] {
        let (_, graph) = analysed(&[joins, &[(12, 2, event, &[96, 0, 0])]].concat());
        let ends: Vec<ChainEnd> = graph.perhaps_stuck.iter().map(|stuck| stuck.end).collect();
        assert!(matches!(ends[..], [ChainEnd::Left(_, call)] if call.event == (4, 2)), "{event}: {ends:?}");
    }
}

/// Thread 1 has an rwlock for reading, for which thread 2 waits to write. Another process's thread may read it, too.
#[test]
fn a_writer_may_wait_for_readers_beside_those_that_are_known() {
    let read: &[RecordLine] = &[(10, 1, "5:2:1", &[16]), (10, 1, "5:2:2", &[0, 0, 1])];
    let waits: &[RecordLine] = &[(20, 2, "5:3:1", &[16])];
    let fork: &[RecordLine] = &[(6, 1, "11:1:1", &[0]), (7, 21, "11:2:0", &[1]), (8, 1, "11:1:2", &[20, 0, 0])];
    let found = |attributes: &'static [u64], between: &[RecordLine<'static>], knowledge: Knowledge| {
        let lines = [&[(2, 1, "5:1:0", attributes)], between, read, waits].concat();
        let (analysis, graph) = analysed_with(&lines, knowledge);
        assert_eq!(wrong(&analysis, &graph), (vec![], vec![]));
        unknown(&graph)
    };
    assert_eq!(found(&[16, 99, 0, 0], fork, ALL), 1);
    assert_eq!(found(&[16, 0, 0, 0], fork, ALL), 0, "it is for one process");
    assert_eq!(found(&[16, 0, 0, 0], &[], ALL), 0);
    // A ring may have overwritten another reader's record.
    assert_eq!(found(&[16, 0, 0, 0], &[], Knowledge { complete_from: 5, ..ALL }), 1);
    let written: &[RecordLine] = &[(6, 1, "5:3:1", &[16]), (6, 1, "5:3:2", &[0, 0]), (7, 1, "5:4:0", &[16, 0, 0])];
    assert_eq!(found(&[16, 0, 0, 0], written, Knowledge { complete_from: 5, ..ALL }), 0, "a writer was alone");
}

/// Thread 2 joins one that waits for a condition. Whether it has the mutex of that has no record where it did not wait for it.
#[test]
fn who_waits_for_a_condition_may_need_the_mutex_of_one_that_waits_for_it() {
    let cancelled: &[RecordLine] = &[(10, 1, "3:4:1", &[64, 16]), (11, 2, "1:32:0", &[1, 0]), (12, 2, "1:3:1", &[1])];
    let takes = lock(9, 1, &[16]);
    assert_eq!(unknown(&analysed_with(cancelled, ONLY_BLOCKED).1), 1);
    assert_eq!(unknown(&analysed(&[&takes, cancelled].concat()).1), 0, "all that is held is recorded");
    // The limit is in a thousand seconds.
    let timed: &[RecordLine] = &[(10, 1, "3:5:1", &[64, 16, 1000, 0]), (12, 2, "1:3:1", &[1])];
    let running = |knowledge: Knowledge| {
        let mut analysis = Analysis::new([(1, knowledge)].into(), Default::default());
        takes.iter().chain(timed).for_each(|line| analysis.add(&record(*line)));
        unknown(&analysis.finish(&[(1, 50)]))
    };
    assert_eq!(running(ONLY_BLOCKED), 1);
    assert_eq!(running(ALL), 0);
}

/// Thread 2 waits for what thread 1 had that has ended, as thread 3 knows, who has joined it.
#[test]
fn the_end_of_an_owner_makes_others_stuck_unless_its_mutex_may_be_robust() {
    let found = |init: &[RecordLine<'static>], [call, returns]: [&'static str; 2], knowledge: Knowledge| {
        let ends: &[RecordLine] = &[
            (10, 1, call, &[16]),
            (10, 1, returns, &[0, 0]),
            (11, 1, "1:2:0", &[0]),
            (12, 3, "1:3:1", &[1]),
            (13, 3, "1:3:2", &[1, 0, 0]),
            (20, 2, call, &[16]),
        ];
        let (analysis, graph) = analysed_with(&[init, ends].concat(), knowledge);
        let perhaps: Vec<ChainEnd> = graph.perhaps_stuck.iter().map(|stuck| stuck.end).collect();
        (wrong(&analysis, &graph).1, perhaps)
    };
    let ring = Knowledge { complete_from: 5, ..ALL };
    let (mutex, rwlock) = (["2:2:1", "2:2:2"], ["5:3:1", "5:3:2"]);
    let stuck = (vec![(2, 1)], vec![]);
    let attributes: &[RecordLine] = &[(2, 1, "2:1:0", &[16, 99, 0, 0])];
    assert_eq!(found(&[], mutex, ALL), stuck);
    for (init, knowledge) in [(attributes, ALL), (&[], ring)] {
        let (certain, perhaps) = found(init, mutex, knowledge);
        assert!(certain.is_empty() && matches!(perhaps[..], [ChainEnd::Robust(_)]), "{perhaps:?}");
    }
    assert_eq!(found(&[], rwlock, ring), stuck, "no rwlock is robust");
}

/// Who takes a lock of a futex that is free makes no call: each of two threads may have what the other one waits for.
#[test]
fn who_has_a_lock_of_a_futex_is_not_known() {
    let waits: &[RecordLine] = &[(20, 1, "10:3:1", &[64, 0x86, 0, 0]), (21, 2, "10:3:1", &[128, 0x86, 0, 0])];
    let unlocks: &[RecordLine] = &[(10, 3, "10:3:1", &[64, 0x87, 0, 0]), (11, 3, "10:3:2", &[0, 0])];
    let other: &[RecordLine] = &[(20, 1, "10:1:1", &[64, 0, 0, 0])];
    assert_eq!(unknown(&analysed(waits).1), 2);
    assert_eq!(unknown(&analysed(&[unlocks, waits].concat()).1), 2, "one was free before");
    assert_eq!(unknown(&analysed(other).1), 0, "it waits for no lock");
    let ends: &[RecordLine] = &[(30, 1, "10:3:2", &[0, 0]), (31, 2, "10:3:2", &[0, 0])];
    assert_eq!(unknown(&analysed(&[waits, ends].concat()).1), 0);
}

/// Thread 2 waits for a futex in code that is known as none of a lock, and has the mutex that thread 1 wants.
#[test]
fn who_ends_the_wait_of_one_that_others_wait_for_is_not_known() {
    let has = lock(10, 2, &[16]);
    let wait: &[RecordLine] = &[(20, 2, "10:1:1", &[64, 0x80, 1, 0, 0])];
    let limited: &[RecordLine] = &[(20, 2, "10:1:1", &[64, 0x80, 1, 5, 0])];
    let wants: &[RecordLine] = &[(21, 1, "2:2:1", &[16])];
    let found = |records: &[&[RecordLine<'static>]]| unknown(&analysed(&records.concat()).1);
    assert_eq!(found(&[&has, wait, wants]), 1);
    assert_eq!(found(&[&has, limited, wants]), 0, "it goes on by itself");
    assert_eq!(found(&[&has, wait, &[(21, 3, "2:2:1", &[48])]]), 0, "nobody waits for it");
    // Threads without work are joined at the end.
    assert_eq!(found(&[&has, wait, &[(21, 1, "1:3:1", &[2])]]), 0);
    assert_eq!(found(&[&has, wait, wants, &[(30, 2, "10:1:2", &[0, 0])]]), 0);
}

/// The kernel has given thread 2 the LWP of one that has ended, and that may have left lock 16 locked.
#[test]
fn the_owner_of_a_lock_may_be_an_ended_thread_with_the_same_lwp() {
    let begin: &[RecordLine] = &[(3, 1, "1:39:0", &[1]), (10, 2, "1:30:0", &[0x1000])];
    let earlier: &[RecordLine] = &[(5, 2, "1:30:0", &[0x1000]), (6, 2, "1:2:0", &[0])];
    let itself: &[RecordLine] = &[(20, 2, "2:2:1", &[16, 0, 0, 2])];
    let has_got_it: &[RecordLine] =
        &[(11, 4, "2:2:1", &[16, 0, 0, 3]), (12, 2, "2:2:1", &[16, 0, 0, 3]), (13, 2, "2:2:2", &[0, 1])];
    // Threads 2 and 3 see each other's locks, and thread 4 sees that 3 has one in its wait.
    let circle: &[RecordLine] =
        &[(20, 2, "2:2:1", &[32, 0, 0, 3]), (21, 3, "2:2:1", &[16, 0, 0, 2]), (22, 4, "2:2:1", &[32, 0, 0, 3])];
    let others: &[RecordLine] = &[(4, 3, "1:39:0", &[3]), (4, 4, "1:39:0", &[4])];
    let found = |records: &[&[RecordLine<'static>]]| {
        let (analysis, graph) = analysed_with(&records.concat(), ONLY_BLOCKED);
        (wrong(&analysis, &graph).0, undecided(&analysis, &graph))
    };
    assert_eq!(found(&[others, begin, itself]), (vec![vec![2]], vec![]));
    assert_eq!(found(&[others, earlier, begin, itself]), (vec![], vec![vec![2]]));
    assert_eq!(found(&[others, earlier, begin, has_got_it, itself]), (vec![vec![2]], vec![]), "by its own record");
    assert_eq!(found(&[others, begin, circle]), (vec![vec![3, 2]], vec![]));
    assert_eq!(found(&[others, earlier, begin, circle]), (vec![], vec![vec![3, 2]]));
}

/// A child waits for a lock that none of its threads has. Its parent's ring may have overwritten that it is one for processes.
#[test]
fn a_lock_may_be_for_processes_if_its_initialisation_was_overwritten() {
    let fork: &[RecordLine] = &[(6, 1, "11:1:1", &[0]), (7, 21, "11:2:0", &[1]), (8, 1, "11:1:2", &[2, 0, 0])];
    let waits: &[RecordLine] = &[(20, 21, "2:2:1", &[56])];
    let used = [&lock(9, 21, &[56])[..], &[(10, 21, "2:4:0", &[56, 0, 0])]].concat();
    let plain: &[RecordLine] = &[(5, 1, "2:1:0", &[56, 0, 0, 0])];
    let made_anew: &[RecordLine] = &[(9, 21, "2:1:0", &[56, 0, 0, 0])];
    let found = |complete_from: u64, records: &[&[RecordLine<'static>]]| {
        let child = Knowledge { is_forked: true, ..ALL };
        let knowledge = [(1, Knowledge { complete_from, ..ALL }), (2, child)].into();
        let mut analysis = Analysis::new(knowledge, Default::default());
        records.concat().iter().for_each(|line| analysis.add(&record(*line)));
        let graph = analysis.finish(&[]);
        graph.unknown_holders.iter().for_each(|unknown| assert!(unknown.may_be_elsewhere));
        unknown(&graph)
    };
    assert_eq!(found(4, &[fork, waits]), 1);
    assert_eq!(found(4, &[fork, &used, waits]), 1);
    assert_eq!(found(9, &[&fork[1..2], &[(9, 1, "1:4:0", &[])], waits]), 1, "nothing before the fork is there");
    assert_eq!(found(0, &[fork, waits]), 0, "an initialisation would be recorded");
    assert_eq!(found(4, &[plain, fork, waits]), 0, "it is for one process");
    assert_eq!(found(4, &[fork, made_anew, waits]), 0, "it is for one process");
    assert_eq!(found(4, &[fork, &lock(9, 21, &[56]), &[(10, 21, "1:39:0", &[1])]]), 0, "nobody waits");
    assert_eq!(found(4, &[fork, waits, &[(21, 21, "2:2:2", &[0, 1])]]), 0, "it has got it");
}

/// Thread 1 has lock 16 when it forks, and its child locks that again.
#[test]
fn what_a_child_has_is_not_known_without_the_record_of_its_fork() {
    let takes = lock(4, 1, &[16]);
    let begin: &[RecordLine] = &[(7, 21, "11:2:0", &[1])];
    let runs: &[RecordLine] = &[(7, 21, "1:4:0", &[])];
    let waits: &[RecordLine] = &[(20, 21, "2:2:1", &[16])];
    let used = [&lock(9, 21, &[16])[..], &[(10, 21, "2:4:0", &[16, 0, 0])]].concat();
    let found = |misses_forks: bool, records: &[&[RecordLine<'static>]]| {
        let knowledge = [(1, ALL), (2, Knowledge { is_forked: misses_forks, misses_forks, ..ALL })].into();
        let mut analysis = Analysis::new(knowledge, Default::default());
        takes.iter().chain(&records.concat()).for_each(|line| analysis.add(&record(*line)));
        unknown(&analysis.finish(&[]))
    };
    for first in [begin, runs] {
        assert_eq!(found(true, &[first, waits]), 1);
        assert_eq!(found(true, &[first, waits, &[(21, 21, "2:2:2", &[0, 1])]]), 0, "it has got it");
        assert_eq!(found(true, &[first]), 0, "it waits for nothing");
        assert_eq!(found(true, &[first, &used]), 0, "it waits for nothing");
        assert_eq!(found(false, &[first, waits]), 0);
    }
    assert_eq!(found(true, &[begin, &used, waits]), 0, "its copy was free");
    assert_eq!(found(true, &[runs, &used, waits]), 1, "another process may have made it for both");
}
