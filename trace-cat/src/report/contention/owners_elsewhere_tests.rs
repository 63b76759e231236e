//! Deadlocks of threads of several processes.

use super::Analysis;
use super::analysis_tests::{RecordLine, analysed_with, lock, record, undecided, wrong};
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::wait_graph::WaitGraph;

/// LWPs from 20 on are the child's. The mutexes are older, and have attributes.
const FORK: [RecordLine; 5] = [
    (2, 1, "2:1:0", &[16, 99, 0, 0]),
    (2, 1, "2:1:0", &[56, 99, 0, 0]),
    (6, 1, "11:1:1", &[0]),
    (7, 21, "11:2:0", &[1]),
    (8, 1, "11:1:2", &[2, 0, 0]),
];

/// The deadlocks, and how many wait for unknown holders, of which processes.
fn found(records: &[&[RecordLine<'static>]], knowledge: Knowledge) -> (Vec<Vec<u32>>, Vec<(u32, usize)>) {
    let (analysis, graph) = analysed_with(&records.concat(), knowledge);
    result(&analysis, &graph)
}

fn result(analysis: &Analysis, graph: &WaitGraph) -> (Vec<Vec<u32>>, Vec<(u32, usize)>) {
    let unknown = graph.unknown_holders.iter();
    let unknown = unknown.map(|unknown| (analysis.processes[unknown.process as usize].pid, unknown.waits.len()));
    let (deadlocks, stuck) = wrong(analysis, graph);
    assert_eq!(stuck, []);
    (deadlocks, unknown.collect())
}

pub(super) const ALL: Knowledge = Knowledge {
    complete_from: 0,
    only_blocked: false,
    is_handed_over: false,
    is_partial: false,
    is_selective: false,
    misses_mutexes: false,
    misses_rmutexes: false,
    misses_conds: false,
    misses_waits: false,
    is_forked: false,
    is_spawned: false,
    misses_forks: false,
    misses_ends: false,
    misses_threads: false,
    misses_cancels: false,
    lacks_settings: false,
    system: 0,
    realtime_ahead: 0,
    monotonic_ahead: None,
    own_pid: None,
};

/// A file has the mutexes, which a third process may have made: without the callers' sites there is no owner either.
#[test]
fn a_lock_that_nobody_of_its_process_has_taken_may_be_another_processes() {
    let fork = &FORK[2..];
    let holds = [lock(9, 1, &[16]), lock(10, 21, &[56])].concat();
    let waits: &[RecordLine] = &[(20, 1, "2:2:1", &[56]), (21, 21, "2:2:1", &[16])];
    assert_eq!(found(&[fork, &holds, waits], ALL), (vec![], vec![(1, 1), (2, 1)]));
    let for_one: &[RecordLine] = &[(1, 1, "2:1:0", &[16, 0, 0, 0]), (1, 1, "2:1:0", &[56, 0, 0, 0])];
    assert_eq!(found(&[for_one, fork, &holds, waits], ALL), (vec![], vec![]));
    let with_sites: &[RecordLine] = &[(20, 1, "2:2:1", &[56, 0, 0, 0, 7]), (21, 21, "2:2:1", &[16, 0, 0, 0, 7])];
    assert_eq!(found(&[fork, &holds, with_sites], ALL), (vec![], vec![]), "they were free then");
    // Another thread of the process has had it meanwhile.
    let others: &[RecordLine] = &[(22, 2, "2:2:1", &[56]), (23, 2, "2:2:2", &[0, 0, 1]), (24, 2, "2:4:0", &[56])];
    assert_eq!(found(&[fork, &holds, waits, others], ALL), (vec![], vec![]));
}

#[test]
fn two_processes_that_wait_for_each_other_are_in_a_deadlock() {
    let [mine, its] = [lock(9, 1, &[16]), lock(10, 21, &[56])];
    let waits: &[RecordLine] = &[(20, 1, "2:2:1", &[56, 0, 0, 21]), (21, 21, "2:2:1", &[16, 0, 0, 1])];
    let deadlock = (vec![vec![1, 21]], vec![]);
    assert_eq!(found(&[&FORK, &mine, &its, waits], ALL), deadlock);
    // Where the owner is not recorded, nobody knows.
    let waits_for_any: &[RecordLine] = &[(20, 1, "2:2:1", &[56]), (21, 21, "2:2:1", &[16])];
    assert_eq!(found(&[&FORK, &mine, &its, waits_for_any], ALL), (vec![], vec![(1, 1), (2, 1)]));
    // A mutex of another type has attributes for that, and perhaps for the other, too.
    let types: &[RecordLine] = &[(2, 1, "2:1:0", &[16, 99, 2, 0]), (2, 1, "2:1:0", &[56, 99, 2, 0])];
    let typed: &[&[RecordLine<'static>]] = &[types, &FORK[2..], &mine, &its, waits_for_any];
    assert_eq!(found(typed, ALL), (vec![], vec![(1, 1), (2, 1)]));
    assert_eq!(found(&[types, &FORK[2..], &mine, &its, waits], ALL), deadlock);
    let plain: &[RecordLine] = &[(2, 1, "2:1:0", &[16, 0, 0, 0]), (2, 1, "2:1:0", &[56, 0, 0, 0])];
    assert_eq!(found(&[plain, &FORK[2..], &mine, &its, waits_for_any], ALL), (vec![], vec![]));
    assert_eq!(found(&[types, &mine, &waits_for_any[..1]], ALL), (vec![], vec![]), "there is no other process");
    // What is not older than the child may be something else in each of the processes.
    assert_eq!(found(&[&FORK[2..], &mine, &its, waits], ALL).0, Vec::<Vec<u32>>::new());
    let another: &[RecordLine] = &[(8, 21, "2:1:0", &[16, 99, 0, 0, 7])];
    assert_eq!(found(&[&FORK, another, &mine, &its, waits], ALL).0, Vec::<Vec<u32>>::new());
    // Another thread of the child may have the lock by now.
    let passed: &[RecordLine] = &[(20, 1, "2:2:1", &[56, 0, 0, 21]), (21, 21, "2:4:0", &[56, 0, 1])];
    assert_eq!(found(&[&FORK, &mine, &its, passed, &waits[1..]], ALL), (vec![], vec![(1, 1)]));
    // The child may have a copy of what its parent had locked.
    let before = lock(4, 1, &[16]);
    assert_eq!(found(&[&before, &FORK, &its, waits], ALL).0, Vec::<Vec<u32>>::new());
    // When it locked the mutex, the child had been forked.
    let returned: &[RecordLine] = &[(7, 1, "11:1:2", &[2, 0, 0]), (30, 21, "11:2:0", &[1])];
    let later = lock(31, 21, &[56]);
    let both: &[RecordLine] = &[(40, 1, "2:2:1", &[56, 0, 0, 21]), (41, 21, "2:2:1", &[16, 0, 0, 1])];
    let early = lock(8, 1, &[16]);
    assert_eq!(found(&[&FORK[..3], &returned[..1], &early, &returned[1..], &later, both], ALL), deadlock);
    // Not all that a thread releases is recorded, and the child may have a copy.
    let only_blocked = Knowledge { only_blocked: true, ..ALL };
    assert_eq!(found(&[&FORK, waits], only_blocked), (vec![], vec![(1, 1), (2, 1)]));
}

/// Two programs have shared memory at different addresses, and the owners may be of a namespace that no record is from.
#[test]
fn two_programs_that_wait_for_each_other_may_be_in_a_deadlock() {
    let found = |records: &[&[RecordLine<'static>]]| -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let (analysis, graph) = analysed_with(&records.concat(), ALL);
        (result(&analysis, &graph).0, undecided(&analysis, &graph))
    };
    let begin: &[RecordLine] = &[(1, 1, "1:39:0", &[1]), (2, 21, "1:39:0", &[1])];
    let waits: &[RecordLine] = &[(20, 1, "2:2:1", &[56, 0, 0, 21]), (21, 21, "2:2:1", &[1016, 0, 0, 1])];
    let [mine, its] = [lock(9, 1, &[16]), lock(10, 21, &[1056])];
    let perhaps = (vec![], vec![vec![1, 21]]);
    assert_eq!(found(&[begin, &mine, &its, waits]), perhaps);
    // It has released something at that moment, which may be what was waited for.
    let other: &[RecordLine] = &[(7, 21, "2:2:1", &[2000]), (7, 21, "2:2:2", &[0, 0])];
    let released = |time: u64| -> Vec<RecordLine<'static>> { vec![(time, 21, "2:4:0", &[2000, 0, 0])] };
    assert_eq!(found(&[begin, other, &released(8), &mine, &its, waits]), perhaps);
    for time in [19, 20] {
        let (waits, last) = waits.split_at(1);
        let released = released(time);
        let before = if time < 20 { [&released[..], waits] } else { [waits, &released[..]] }.concat();
        assert_eq!(found(&[begin, other, &mine, &its, &before, last]), (vec![], vec![]), "{time}");
    }
    // Of another namespace, or of two, the LWP may be another thread's.
    let mut analysis = Analysis::new([(1, ALL), (2, Knowledge { system: 5, ..ALL })].into(), Default::default());
    [begin, &mine, &its, waits].concat().iter().for_each(|line| analysis.add(&record(*line)));
    let graph = analysis.finish(&[]);
    assert_eq!(result(&analysis, &graph), (vec![], vec![(1, 1), (2, 1)]));
}

/// Thread 2 waits for a lock that thread 1 of its process has, and that a thread of the child takes next.
#[test]
fn who_holds_a_lock_of_two_processes_may_have_taken_it_later() {
    let begin: &[RecordLine] = &[(9, 2, "1:39:0", &[2])];
    let first = lock(10, 1, &[16]);
    let sees: &[RecordLine] = &[(11, 21, "2:2:1", &[16, 0, 0, 1])];
    let waits: &[RecordLine] = &[(12, 2, "2:2:1", &[16, 0, 0, 1])];
    let passes: &[RecordLine] = &[(13, 1, "2:4:0", &[16, 0, 1]), (14, 21, "2:2:2", &[0, 1])];
    let other = lock(8, 2, &[56]);
    let wants: &[RecordLine] = &[(20, 21, "2:2:1", &[56, 0, 0, 2])];
    let all: &[&[RecordLine<'static>]] = &[&FORK, &other, begin, &first, sees, waits, passes, wants];
    assert_eq!(found(all, ALL), (vec![vec![21, 2]], vec![]));
    // Another process has begun since the owner's last record.
    let third: RecordLine = (10, 21, "1:39:0", &[21, 0, 0, 0]);
    let (mut analysis, lines) = (Analysis::new(Default::default(), Default::default()), all.concat());
    for line in lines {
        if line.0 == 11 {
            analysis.add(&NumericRecord { pid: 3, lwp: 41, ..record(third) });
        }
        analysis.add(&record(line));
    }
    let graph = analysis.finish(&[]);
    assert_eq!(result(&analysis, &graph).0, [[21, 2]]);
    // Nothing shows that it is one lock.
    let takes = lock(14, 21, &[16]);
    let unseen: &[&[RecordLine<'static>]] = &[&FORK, &other, begin, &first, waits, &passes[..1], &takes, wants];
    assert_eq!(found(unseen, ALL), (vec![], vec![(1, 1)]));
}

/// The child waits for a condition while it has mutex 56, for which the parent waits with the mutex of the condition.
#[test]
fn who_has_the_mutex_of_a_condition_may_be_of_another_process() {
    for attributes in [&[16, 99, 0, 0][..], &[16, 99, 2, 0]] {
        let init: &[RecordLine] = &[(2, 1, "2:1:0", attributes), (2, 1, "2:1:0", &[56, 99, 2, 0])];
        let held = [lock(9, 21, &[56]), lock(9, 21, &[16])].concat();
        let waits: &[RecordLine] = &[(12, 21, "3:4:1", &[64, 16])];
        let takes = lock(13, 1, &[16]);
        let wants: &[RecordLine] = &[(20, 1, "2:2:1", &[56, 0, 0, 21])];
        let lines = [init, &FORK[2..], &held, waits, &takes, wants].concat();
        let (analysis, graph) = analysed_with(&lines, ALL);
        assert_eq!(wrong(&analysis, &graph), (vec![], vec![(1, 21)]));
        let unknown: Vec<usize> = graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).collect();
        assert_eq!(unknown, [1], "{attributes:?}");
    }
}

/// Thread 2 has lock 16 while thread 1 forks, and later again. The child's copy has its LWP, unless processes share the memory.
#[test]
fn who_had_a_lock_at_the_fork_does_not_keep_the_childs_copy() {
    let begin: &[RecordLine] = &[(1, 2, "1:39:0", &[2])];
    let unlock = |time: u64| -> [RecordLine<'static>; 1] { [(time, 2, "2:4:0", &[16, 0, 0])] };
    let later = [lock(10, 2, &[16]), lock(11, 21, &[56])].concat();
    let waits: &[RecordLine] = &[(20, 2, "2:2:1", &[56, 0, 0, 21]), (21, 21, "2:2:1", &[16, 0, 0, 2])];
    let takes = lock(3, 2, &[16]);
    let found_after = |fork: &[&[RecordLine<'static>]]| {
        let records: Vec<RecordLine> = [&[begin, &FORK[1..2], &takes], fork, &[&later, waits]].concat().concat();
        let mut analysis = Analysis::new([(1, ALL), (2, ALL)].into(), Default::default());
        for line in &records {
            analysis.add(&record(*line));
            // The mutex is a static variable.
            let locks = std::mem::take(&mut analysis.locks_by_fork);
            locks.into_iter().for_each(|lock| analysis.settle_lock_by_fork(lock));
        }
        let graph = analysis.finish(&[]);
        (found(&[&records], ALL), wrong(&analysis, &graph))
    };
    let deadlock = (vec![vec![2, 21]], vec![]);
    assert_eq!(found_after(&[&unlock(4), &FORK[2..]]).0, deadlock, "it has released it before");
    let copy = ((vec![], vec![(2, 1)]), (vec![], vec![(2, 21), (21, 2)]));
    assert_eq!(found_after(&[&FORK[2..], &unlock(9)]), copy);
    assert_eq!(found_after(&[&FORK[2..3], &unlock(6), &FORK[3..]]), copy, "until the child is there");
    let meanwhile = [lock(5, 2, &[16]).as_slice(), &unlock(6)].concat();
    assert_eq!(found_after(&[&unlock(4), &FORK[2..3], &meanwhile, &FORK[3..]]), copy, "only meanwhile");
}
