//! Deadlocks that are none because others release a lock than the thread that has it.

use super::analysis::Analysis;
use super::analysis_tests::{RecordLine, analysed_with, lock, record, undecided, wrong};
use super::chain_ends::ChainEnd;
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;

/// Deadlocks, and circles in doubt.
type Circles = (Vec<Vec<u32>>, Vec<Vec<u32>>);

fn found(records: &[&[RecordLine<'static>]], knowledge: Knowledge) -> Circles {
    let (analysis, graph) = analysed_with(&records.concat(), knowledge);
    (wrong(&analysis, &graph).0, undecided(&analysis, &graph))
}

/// LWPs from 20 on are a child's. Mutexes 16 and 56 are older, and for processes.
const FORK: [RecordLine; 7] = [
    (2, 1, "2:1:0", &[16, 99, 0, 0]),
    (2, 1, "2:1:0", &[56, 99, 0, 0]),
    (3, 2, "1:39:0", &[2]),
    (6, 1, "11:1:1", &[0]),
    (7, 21, "11:2:0", &[1]),
    (8, 1, "11:1:2", &[2, 0, 0]),
    (9, 22, "1:39:0", &[2]),
];

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
        let complete = found(&[begin, takes, gets, waits], Knowledge::default());
        assert_eq!(complete, (vec![vec![1]], vec![]), "{entry} of another lock, at the address of one that was freed");
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

/// Threads of the parent use mutex 16 as a semaphore before those of the child do, or one of each does.
#[test]
fn what_one_process_has_shown_of_a_lock_holds_for_its_relatives() {
    let all = Knowledge::default();
    let unlock = |time: u64, lwp: u32| -> [RecordLine<'static>; 1] { [(time, lwp, "2:4:0", &[16, 0, 0])] };
    // One of the child's threads waits for the other one.
    let circle =
        [&lock(20, 22, &[16])[..], &lock(21, 21, &[48]), &[(22, 22, "2:2:1", &[48]), (23, 21, "2:2:1", &[16])]];
    let (deadlock, doubt): (Circles, Circles) = ((vec![vec![21, 22]], vec![]), (vec![], vec![vec![21, 22]]));
    for (unlocker, expected) in [(2, &deadlock), (1, &doubt)] {
        let before = [&lock(10, 2, &[16])[..], &unlock(11, unlocker)].concat();
        assert_eq!(found(&[&FORK, &before, &circle.concat()], all), *expected);
        // A mutex of another type may be for processes, too. The child has used it before.
        let adaptive: &[RecordLine] = &[(2, 1, "2:1:0", &[16, 99, 3, 0])];
        let used = [&lock(9, 22, &[16])[..], &unlock(9, 22)].concat();
        assert_eq!(found(&[adaptive, &FORK[1..], &used, &before, &circle.concat()], all), *expected);
    }
    // A thread of the child waits for itself.
    let twice = [&lock(20, 21, &[16])[..], &[(21, 21, "2:2:1", &[16, 0, 0, 21])]].concat();
    let waits: &[RecordLine] = &[(11, 2, "2:2:1", &[16, 0, 0, 2])];
    let gets: &[RecordLine] =
        &[(12, 1, "2:4:0", &[16, 0, 1]), (13, 2, "2:2:2", &[0, 1]), (14, 1, "2:4:0", &[16, 0, 0])];
    assert_eq!(found(&[&FORK, &twice], all), (vec![vec![21]], vec![]));
    assert_eq!(found(&[&FORK, &lock(10, 2, &[16]), waits, gets, &twice], all), (vec![], vec![vec![21]]));
    // A thread of the parent and one of the child wait for each other.
    let both: &[RecordLine] = &[(22, 2, "2:2:1", &[16, 0, 0, 21]), (23, 21, "2:2:1", &[56, 0, 0, 2])];
    let holds = [lock(20, 21, &[16]), lock(21, 2, &[56])].concat();
    for (unlocker, expected) in [(21, (vec![vec![2, 21]], vec![])), (1, (vec![], vec![vec![2, 21]]))] {
        let before = [&lock(10, 21, &[16])[..], &unlock(11, unlocker)].concat();
        assert_eq!(found(&[&FORK, &before, &holds, both], all), expected);
    }
}

/// Where only calls that blocked are recorded, a thread of the parent unlocks what one of the child has, as a waiter has seen.
#[test]
fn who_unlocks_what_another_process_has_may_do_so_again() {
    let only_blocked = Knowledge { only_blocked: true, ..Knowledge::default() };
    let circle: &[RecordLine] = &[(20, 21, "2:2:1", &[48, 0, 0, 22]), (21, 22, "2:2:1", &[16, 0, 0, 21])];
    let deadlock: Circles = (vec![vec![21, 22]], vec![]);
    assert_eq!(found(&[&FORK, circle], only_blocked), deadlock);
    let sees: &[RecordLine] = &[(10, 22, "2:2:1", &[16, 0, 0, 21])];
    let own: &[RecordLine] = &[(11, 21, "2:4:0", &[16, 0, 1])];
    let others: &[RecordLine] = &[(12, 1, "2:4:0", &[16, 0, 1]), (13, 22, "2:2:2", &[0, 1])];
    assert_eq!(found(&[&FORK, sees, others, circle], only_blocked), (vec![], vec![vec![22, 21]]));
    assert_eq!(found(&[&FORK, sees, own, others, circle], only_blocked), deadlock, "it has it from thread 21");
    // One of the parent saw that.
    let sees: &[RecordLine] = &[(10, 2, "2:2:1", &[16, 0, 0, 21])];
    let others: &[RecordLine] = &[(12, 1, "2:4:0", &[16, 0, 1]), (13, 2, "2:2:2", &[0, 1])];
    let (deadlocks, _) = found(&[&FORK, sees, others, circle], only_blocked);
    assert_eq!(deadlocks, [[0; 0]; 0]);
    // It is unlocked while they are in the circle.
    let unlocks: &[RecordLine] = &[(22, 1, "2:4:0", &[16, 0, 1])];
    assert_eq!(found(&[&FORK, circle, unlocks], only_blocked), (vec![], vec![vec![22, 21]]));
}

/// Thread 1 waits for a condition with mutex 16 while it has 32, and thread 2 has 16 and waits for thread 1.
#[test]
fn who_has_the_mutex_that_a_condition_needs_back_may_not_be_who_unlocks_it() {
    let all = Knowledge::default();
    let begin = [lock(10, 1, &[32]), lock(11, 1, &[16])].concat();
    let wait: &[RecordLine] = &[(20, 1, "3:4:1", &[64, 16])];
    let limited: &[RecordLine] = &[(20, 1, "3:5:1", &[64, 16, 0, 35])];
    let later: &[RecordLine] = &[(20, 1, "3:5:1", &[64, 16, 9, 9])];
    let cancelled: &[RecordLine] = &[wait[0], (25, 2, "1:32:0", &[1, 0])];
    let takes = lock(30, 2, &[16]);
    let signal: &[RecordLine] = &[(35, 2, "3:2:0", &[64, 0, 1])];
    let wants: &[RecordLine] = &[(40, 2, "2:2:1", &[32])];
    let joins: &[RecordLine] = &[(40, 2, "1:3:1", &[1])];
    // Thread 3 is between them.
    let farther: &[RecordLine] =
        &[(36, 3, "2:2:1", &[48]), (37, 3, "2:2:2", &[0, 0]), (40, 2, "2:2:1", &[48]), (41, 3, "1:3:1", &[1])];
    let unlocks = |lwp: u32| [&lock(5, 3, &[16])[..], &[(6, lwp, "2:4:0", &[16, 0, 0])]].concat();
    for (waits, signal, goal, circle) in [
        (wait, &[][..], wants, vec![1, 2]),
        (wait, signal, wants, vec![1, 2]),
        (wait, &[], joins, vec![1, 2]),
        (wait, signal, farther, vec![1, 2, 3]),
        (limited, &[], wants, vec![1, 2]),
        (later, &[], wants, vec![1, 2]),
        (cancelled, &[], joins, vec![1, 2]),
    ] {
        let of = |unlocks: &[RecordLine<'static>]| {
            let (mut deadlocks, mut doubts) = found(&[unlocks, &begin, waits, &takes, signal, goal], all);
            deadlocks.iter_mut().chain(&mut doubts).for_each(|threads| threads.sort_unstable());
            (deadlocks, doubts)
        };
        assert_eq!(of(&unlocks(3)), (vec![circle.clone()], vec![]), "{waits:?} {signal:?}");
        assert_eq!(of(&unlocks(4)), (vec![], vec![circle]), "{waits:?} {signal:?}");
    }
    // Whoever has the mutex since before is none that keeps it from returning; nor is thread 1 needed by one that runs.
    let before = [lock(10, 1, &[32]), lock(11, 2, &[16])].concat();
    assert_eq!(found(&[&unlocks(4), &before, wait, wants], all), (vec![], vec![]));
    assert_eq!(found(&[&unlocks(4), &begin, wait, &takes, signal], all), (vec![], vec![]));
}

/// The lock prefers writers: a reader waits for one that waits for readers, which others have unlocked before.
#[test]
fn a_reader_may_wait_for_a_writer_behind_readers_that_others_release() {
    let read: &[RecordLine] = &[(10, 1, "5:2:1", &[48]), (10, 1, "5:2:2", &[0, 0, 1])];
    let waits: &[RecordLine] = &[(20, 2, "5:3:1", &[48]), (30, 1, "5:2:1", &[48])];
    let before: &[RecordLine] = &[(2, 3, "5:2:1", &[48]), (2, 3, "5:2:2", &[0, 0, 1])];
    for (unlocker, expected) in [(3, (vec![vec![1, 2]], vec![])), (4, (vec![], vec![vec![1, 2]]))] {
        let unlocks: &[RecordLine] = &[(3, unlocker, "5:4:0", &[48, 0, 0])];
        assert_eq!(found(&[before, unlocks, read, waits], Knowledge::default()), expected);
    }
}

/// Thread 2 has taken mutex 16, which another thread may unlock, and waits for a semaphore; or has ended.
#[test]
fn who_waits_for_a_lock_that_others_unlock_may_be_stuck() {
    let waits: &[RecordLine] = &[(20, 1, "2:2:1", &[16]), (21, 3, "1:3:1", &[1])];
    let takes = lock(10, 2, &[16]);
    let idle: &[RecordLine] = &[(11, 2, "4:2:1", &[64, 0])];
    let ends: &[RecordLine] = &[(11, 2, "1:2:0", &[0]), (12, 3, "1:3:1", &[2]), (13, 3, "1:3:2", &[2, 0, 0])];
    for (end, of) in [(idle, 3), (ends, 3), (&[], 0)] {
        for unlocker in [3, 4] {
            let unlocks: &[RecordLine] = &[(6, unlocker, "2:4:0", &[16, 0, 0])];
            let records = [&lock(5, 3, &[16])[..], unlocks, &takes, end, waits].concat();
            let (analysis, graph) = analysed_with(&records, Knowledge::default());
            let perhaps: Vec<ChainEnd> = graph.perhaps_stuck.iter().map(|stuck| stuck.end).collect();
            let is_handed_on = |end: &ChainEnd| matches!(end, ChainEnd::HandedOn(_));
            assert!(perhaps.iter().all(is_handed_on), "{perhaps:?}");
            let stuck = wrong(&analysis, &graph).1.len();
            let expected = if of == 0 {
                (0, 0)
            } else if unlocker == 3 {
                (2, 0)
            } else {
                (0, 2)
            };
            assert_eq!((stuck, perhaps.len()), expected, "{end:?}");
        }
    }
}

/// Thread 1 unlocks what thread 2 of the parent has, mutex 16 or the read lock 48, before the fork. Then a thread of the child waits for itself.
#[test]
fn a_child_has_copies_of_the_locks_that_others_unlock() {
    let all = Knowledge::default();
    let read: &[RecordLine] = &[(1, 2, "5:2:1", &[48]), (1, 2, "5:2:2", &[0, 0, 1])];
    let reads: &[RecordLine] = &[(20, 22, "5:2:1", &[48]), (20, 22, "5:2:2", &[0, 0, 1]), (22, 22, "5:3:1", &[48])];
    let twice = [&lock(20, 22, &[16])[..], &[(22, 22, "2:2:1", &[16, 0, 0, 22])]].concat();
    let threads: &[RecordLine] = &[(0, 1, "1:39:0", &[1]), (0, 2, "1:39:0", &[2])];
    let (deadlock, doubt): (Circles, Circles) = ((vec![vec![22]], vec![]), (vec![], vec![vec![22]]));
    for (takes, unlock, init, waits) in
        [(&lock(1, 2, &[16])[..], "2:4:0", "2:1:0", &twice[..]), (read, "5:4:0", "5:1:0", reads)]
    {
        let address: &[u64] = if init == "2:1:0" { &[16, 0, 0, 0] } else { &[48, 0, 0, 0] };
        let unlocks = |lwp: u32, time: u64| -> [RecordLine<'static>; 1] { [(time, lwp, unlock, address)] };
        // It is known to be private, or not.
        for made in [&[][..], &[(0, 1, init, address)]] {
            let before = [threads, made, takes].concat();
            let of = |unlocker: u32, more: &[RecordLine<'static>]| {
                found(&[&before, &unlocks(unlocker, 2), &FORK[3..], more, waits], all)
            };
            assert_eq!(of(2, &[]), deadlock, "{unlock}: it was its own");
            assert_eq!(of(1, &[]), doubt, "{unlock}");
            assert_eq!(of(1, &[(15, 21, init, address)]), deadlock, "{unlock}: the child has made it anew");
            assert_eq!(of(1, &[(15, 1, init, address)]), doubt, "{unlock}: the parent has made its own anew");
            let destroy = if init == "2:1:0" { "2:5:0" } else { "5:7:0" };
            assert_eq!(of(1, &[(15, 21, destroy, address)]), deadlock, "{unlock}: the child has destroyed it");
            assert_eq!(of(1, &[(15, 1, destroy, address)]), doubt, "{unlock}: the parent has destroyed its own");
            let later = [&before[..], &unlocks(2, 2), &FORK[3..]].concat();
            let after = [takes, &unlocks(1, 15)].concat();
            let after: Vec<RecordLine> = after.into_iter().map(|line| (line.0 + 11, line.1, line.2, line.3)).collect();
            assert_eq!(found(&[&later, &after, waits], all), deadlock, "{unlock}: each has its own, after the fork");
        }
    }
    // The child of a child that has not used it.
    let grandchild: &[RecordLine] = &[(10, 21, "11:1:1", &[0])];
    let mut lines = [threads, &lock(1, 2, &[16]), &[(2, 1, "2:4:0", &[16, 0, 0])], &FORK[3..], grandchild].concat();
    lines.push((11, 41, "11:2:0", &[2]));
    let late: &[RecordLine] =
        &[(20, 42, "2:2:1", &[16]), (20, 42, "2:2:2", &[0, 0]), (22, 42, "2:2:1", &[16, 0, 0, 42])];
    lines.extend(late);
    let mut analysis = Analysis::new(Default::default(), Default::default());
    for line in &lines {
        let of = record(*line);
        analysis.add(&NumericRecord { pid: if line.1 > 40 { 3 } else { of.pid }, ..of });
    }
    let graph = analysis.finish(&[]);
    assert_eq!((wrong(&analysis, &graph).0, undecided(&analysis, &graph)), (vec![], vec![vec![42]]));
}

/// Thread 1 unlocks mutex 16 that thread 2 has. Then it is initialised, and thread 2 waits for itself.
#[test]
fn a_lock_that_is_initialised_anew_is_another_one() {
    let before = [&lock(1, 2, &[16])[..], &[(2, 1, "2:4:0", &[16, 0, 0])]].concat();
    let twice = [&lock(20, 2, &[16])[..], &[(22, 2, "2:2:1", &[16, 0, 0, 2])]].concat();
    assert_eq!(found(&[&before, &twice], Knowledge::default()), (vec![], vec![vec![2]]));
    let init: &[RecordLine] = &[(10, 1, "2:1:0", &[16, 0, 0, 0])];
    assert_eq!(found(&[&before, init, &twice], Knowledge::default()), (vec![vec![2]], vec![]));
}

/// Thread 1 unlocks mutex 16 that thread 2 has, or releases the read lock 48. Then thread 2 waits for itself.
#[test]
fn unlocks_by_others_show_whatever_else_is_left_out() {
    let selective = Knowledge { is_selective: true, misses_waits: true, misses_ends: true, ..Knowledge::default() };
    let no_conds = Knowledge { misses_conds: true, ..selective };
    let begin: &[RecordLine] = &[(1, 1, "1:39:0", &[1]), (2, 2, "1:39:0", &[2])];
    let read: &[RecordLine] = &[(10, 2, "5:2:1", &[48]), (10, 2, "5:2:2", &[0, 0, 1])];
    let reads: &[RecordLine] = &[(20, 2, "5:2:1", &[48]), (20, 2, "5:2:2", &[0, 0, 1]), (22, 2, "5:3:1", &[48])];
    let twice = [&lock(20, 2, &[16])[..], &[(22, 2, "2:2:1", &[16, 0, 0, 2])]].concat();
    let (deadlock, doubt): (Circles, Circles) = ((vec![vec![2]], vec![]), (vec![], vec![vec![2]]));
    for knowledge in [selective, no_conds] {
        for (takes, unlock, waits) in [(&lock(10, 2, &[16])[..], "2:4:0", &twice[..]), (read, "5:4:0", reads)] {
            let address: &[u64] = if unlock == "2:4:0" { &[16, 0, 0] } else { &[48, 0, 0] };
            let of = |unlocker| found(&[begin, takes, &[(11, unlocker, unlock, address)], waits], knowledge);
            assert_eq!((of(2), of(1)), (deadlock.clone(), doubt.clone()), "{unlock}");
        }
    }
    // Thread 1 has had the mutex before, and may have got it back in a wait for a condition, while thread 2 is in one.
    let before = lock(5, 1, &[16]);
    let unlock: &[RecordLine] = &[(11, 1, "2:4:0", &[16, 0, 0])];
    let takes = lock(10, 2, &[16]);
    let of = |knowledge| found(&[begin, &before, &takes, unlock, &twice], knowledge);
    assert_eq!((of(selective), of(no_conds)), (doubt.clone(), deadlock));
    // Not where thread 2 is in another call.
    let sleeps: &[RecordLine] = &[(10, 2, "4:2:1", &[64, 0])];
    let wakes: &[RecordLine] = &[(12, 2, "4:2:2", &[0])];
    assert_eq!(found(&[begin, &before, &takes, sleeps, unlock, wakes, &twice], no_conds), doubt);
}

/// What is recorded is changed, or records are lost, before thread 2 takes mutex 16 and thread 1 or 3 unlocks it, or after that.
#[test]
fn unlocks_by_others_show_after_changes_and_losses() {
    let begin: &[RecordLine] = &[(1, 1, "1:39:0", &[1]), (2, 2, "1:39:0", &[2])];
    let takes = lock(20, 2, &[16]);
    let twice = [&lock(40, 2, &[16])[..], &[(42, 2, "2:2:1", &[16, 0, 0, 2])]].concat();
    let (deadlock, doubt): (Circles, Circles) = ((vec![vec![2]], vec![]), (vec![], vec![vec![2]]));
    let follows = |time: u64, lwp: u32, generation: &'static [u64]| -> [RecordLine<'static>; 2] {
        [(time, lwp, "0:2:0", generation), (time, lwp, "1:39:0", &[9])]
    };
    let loses =
        |time: u64, lwp: u32| -> [RecordLine<'static>; 2] { [(time, lwp, "0:1:0", &[5]), (time, lwp, "1:39:0", &[9])] };
    let unlock = |lwp: u32| -> [RecordLine<'static>; 1] { [(30, lwp, "2:4:0", &[16, 0, 0])] };
    let of =
        |parts: &[&[RecordLine<'static>]]| found(&[&[begin][..], parts, &[&twice[..]]].concat(), Knowledge::default());
    let changed = follows(19, 2, &[1]);
    assert_eq!(of(&[&changed, &takes, &unlock(2)]), deadlock, "its own");
    assert_eq!(
        of(&[&changed, &takes, &follows(25, 1, &[1]), &unlock(1)]),
        doubt,
        "by one that follows the change later"
    );
    let begins: [RecordLine; 2] = [(25, 3, "0:2:0", &[1]), (25, 3, "1:30:0", &[0x900])];
    assert_eq!(of(&[&changed, &takes, &begins, &unlock(3)]), doubt, "by one that begins");
    // Thread 2 may have released it since, and thread 1 have got it.
    assert_eq!(of(&[&changed, &takes, &follows(25, 1, &[3]), &unlock(1)]), deadlock, "changed in between");
    assert_eq!(of(&[&loses(19, 2), &takes, &unlock(1)]), doubt, "lost before");
    assert_eq!(of(&[&loses(19, 1), &takes, &unlock(1)]), doubt, "lost before");
    assert_eq!(of(&[&takes, &loses(25, 1), &unlock(1)]), deadlock, "lost in between");
    // Thread 3 begins to follow the change as it begins: nothing is missing, and no thread has the read lock that it releases.
    let read: &[RecordLine] = &[(20, 2, "5:2:1", &[48]), (20, 2, "5:2:2", &[0, 0, 1])];
    let reads: &[RecordLine] = &[(40, 2, "5:2:1", &[48]), (40, 2, "5:2:2", &[0, 0, 1]), (42, 2, "5:3:1", &[48])];
    for (first, expected) in [("1:30:0", &doubt), ("1:39:0", &deadlock)] {
        let begins: [RecordLine; 2] = [(25, 3, "0:2:0", &[1]), (25, 3, first, &[0x900])];
        let releases: &[RecordLine] = &[(30, 3, "5:4:0", &[48, 0, 0])];
        let lines = [begin, &changed, read, &begins, releases, reads];
        assert_eq!(found(&lines, Knowledge::default()), *expected, "{first}");
    }
}
