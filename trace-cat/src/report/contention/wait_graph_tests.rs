//! Deadlocks and stuck threads, at the end and at a moment.

use super::analysis_tests::{RecordLine, analysed, analysed_with, lock, record, undecided, wrong};
use super::chain_ends::ChainEnd;
use super::holds::Knowledge;
use super::moment::Moment;
use super::tables::OngoingCall;
use crate::report::misuse::MisuseKind;

fn lines(lines: &[&[RecordLine<'static>]]) -> Vec<RecordLine<'static>> {
    lines.concat()
}

/// A thread takes an rwlock for reading, as the first or the next of several readers.
fn read(time: u64, lwp: u32) -> [RecordLine<'static>; 2] {
    [(time, lwp, "5:2:1", &[48]), (time, lwp, "5:2:2", if lwp == 1 { &[0, 0, 1] } else { &[0, 0, 3] })]
}

#[test]
fn joins_can_be_in_a_deadlock() {
    let records = lines(&[
        &lock(10, 1, &[16]),
        &[(11, 2, "1:39:0", &[2, 0, 0, 0]), (12, 3, "1:39:0", &[3, 0, 0, 0])],
        &[(20, 1, "1:3:1", &[2]), (21, 2, "1:3:1", &[3]), (22, 3, "2:2:1", &[16])],
    ]);
    let (analysis, graph) = analysed(&records);
    assert_eq!(wrong(&analysis, &graph), (vec![vec![1, 2, 3]], vec![]));
}

#[test]
fn a_routine_that_calls_pthread_once_for_itself_waits_for_itself() {
    let first: &[RecordLine] = &[(10, 1, "1:38:1", &[16, 0])];
    let again: &[RecordLine] = &[(12, 1, "1:38:1", &[16, 0])];
    let other: &[RecordLine] = &[(11, 2, "1:38:1", &[16, 0])];
    assert_eq!(found_if_only_blocked(&[first, again]), (vec![vec![1]], vec![]));
    assert_eq!(found_if_only_blocked(&[first, other, again]), (vec![vec![1]], vec![(2, 1)]));
    // The second to enter runs the routine, as its next call shows.
    let second: &[RecordLine] = &[(12, 2, "1:38:1", &[16, 0])];
    assert_eq!(found_if_only_blocked(&[first, other, second]), (vec![vec![2]], vec![(1, 2)]));
}

#[test]
fn a_writer_is_stuck_if_all_readers_are() {
    let both = lines(&[
        &read(10, 1),
        &read(11, 2),
        &[(20, 3, "5:3:1", &[48]), (21, 4, "1:3:1", &[3])],
        &[(22, 1, "4:2:1", &[64, 0])],
    ]);
    let (analysis, graph) = analysed(&both);
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![]), "the other reader runs");
    let (analysis, graph) = analysed(&lines(&[&both, &[(23, 2, "7:2:1", &[80, 2])]]));
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![(3, 1), (4, 3)]));
    let waits_for_semaphore = |end| matches!(end, ChainEnd::Idle(_, OngoingCall { event: (4, 2), .. }));
    assert!(graph.stuck.iter().all(|stuck| waits_for_semaphore(stuck.end)), "{graph:?}");
}

/// Each reader is in a cycle with the writer; one of these is the deadlock.
#[test]
fn readers_that_are_in_a_deadlock_with_the_same_writer_are_all_reported() {
    let records = lines(&[
        &read(10, 1),
        &read(11, 2),
        &read(12, 3),
        &lock(15, 4, &[16]),
        &[(20, 4, "5:3:1", &[48]), (21, 1, "2:2:1", &[16]), (22, 2, "2:2:1", &[16]), (23, 3, "2:2:1", &[16])],
        &[(24, 5, "2:2:1", &[16])],
    ]);
    let (analysis, graph) = analysed(&records);
    assert_eq!(wrong(&analysis, &graph), (vec![vec![1, 4]], vec![(2, 4), (3, 4), (5, 4)]));
    let reported: Vec<u32> = graph.deadlocks[0].iter().map(|blocked| blocked.thread).collect();
    let leads_there = |end: ChainEnd| matches!(end, ChainEnd::Deadlock(thread) if reported.contains(&thread));
    assert!(graph.stuck.iter().all(|stuck| leads_there(stuck.end)), "{graph:?}");
}

#[test]
fn a_reader_waits_for_a_writer_that_is_preferred() {
    // It would have got a lock of the default kind at once, because others hold that only for reading.
    let read: &[RecordLine] = &[(10, 1, "5:2:1", &[48]), (10, 1, "5:2:2", &[0, 0, 1])];
    let write: &[RecordLine] = &[(20, 2, "5:3:1", &[48])];
    let again: &[RecordLine] = &[(30, 1, "5:2:1", &[48])];
    let other: &[RecordLine] = &[(30, 3, "5:2:1", &[48])];
    let timed: &[RecordLine] = &[(20, 2, "5:31:1", &[48, 0, 99])];
    let late: &[RecordLine] = &[(40, 2, "5:3:1", &[48])];
    let found = |records: &[&[RecordLine<'static>]]| {
        let (analysis, graph) = analysed(&lines(records));
        wrong(&analysis, &graph)
    };
    assert_eq!(found(&[read, write, again]), (vec![vec![1, 2]], vec![]));
    let waits: &[RecordLine] = &[(31, 1, "4:2:1", &[64, 0])];
    assert_eq!(found(&[read, write, other, waits]), (vec![], vec![(2, 1), (3, 2)]));
    assert_eq!(found(&[read, timed, again]), (vec![], vec![]));
    assert_eq!(found(&[read, again, late]), (vec![], vec![]));
}

#[test]
fn a_robust_mutex_is_not_lost_with_its_owner() {
    let ended = |attributes: &'static [u64]| {
        let records = lines(&[
            &[(5, 1, "2:1:0", attributes)],
            &lock(10, 1, &[16]),
            &[(13, 1, "1:2:0", &[0]), (13, 4, "1:3:1", &[1]), (14, 4, "1:3:2", &[1, 0, 0])],
            &[(14, 2, "2:2:1", &[16]), (15, 3, "1:3:1", &[2])],
        ]);
        let (analysis, graph) = analysed(&records);
        wrong(&analysis, &graph)
    };
    assert_eq!(ended(&[16, 0, 0, 0]), (vec![], vec![(2, 1), (3, 2)]));
    assert_eq!(ended(&[16, 0x7000, 0, 0]), (vec![], vec![]));
}

#[test]
fn a_time_limit_ends_a_deadlock() {
    let records = lines(&[
        &lock(10, 1, &[16]),
        &lock(11, 2, &[32]),
        &[(20, 1, "2:2:1", &[32]), (21, 2, "2:30:1", &[16, 0, 99]), (22, 3, "2:2:1", &[16])],
    ]);
    let (analysis, graph) = analysed(&records);
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![]));
}

#[test]
fn a_moment_has_a_graph_of_its_own() {
    let records = lines(&[
        &lock(10, 1, &[16]),
        &lock(11, 2, &[32]),
        &[(20, 1, "2:2:1", &[32]), (21, 2, "2:30:1", &[16, 0, 99])],
        &[(22, 3, "2:2:1", &[16])],
        &[(30, 2, "2:30:2", &[libc::ETIMEDOUT as u64, 1]), (31, 2, "2:2:1", &[16])],
        &[(40, 2, "2:2:2", &[0, 1])],
    ]);
    let at = |time: u64, count: usize| at_moment(&records[..count], Some(time), None);
    let (all, without_return) = (records.len(), records.len() - 1);
    assert_eq!(at(5, without_return), (vec![], vec![]));
    assert_eq!(at(30, without_return), (vec![], vec![]));
    assert_eq!(at(31, without_return), (vec![vec![1, 2]], vec![(3, 1)]));
    assert_eq!(at(39, without_return), (vec![vec![1, 2]], vec![(3, 1)]));
    // What ends is no deadlock, whatever the records showed before.
    assert_eq!(at(39, all), (vec![], vec![]));
    assert_eq!(at(40, all), (vec![], vec![]));
}

/// What is found at a moment, if one is asked for, of records that are complete until a time, if it is not the end.
fn at_moment(
    records: &[RecordLine<'static>],
    asked: Option<u64>,
    complete_until: Option<u64>,
) -> (Vec<Vec<u32>>, Vec<(u32, u32)>) {
    let mut moment = Moment::new(asked, complete_until).unwrap();
    let mut analysis = super::Analysis::new(Default::default(), super::WaitSelection::default());
    for line in records {
        let record = record(*line);
        moment.pass(&mut analysis, &record);
        analysis.add(&record);
    }
    let last = analysis.finish(&[]);
    let graph = moment.graph(last, &analysis);
    assert_eq!(graph.moment, asked);
    wrong(&analysis, &graph)
}

/// The buffer of thread 1 was read before it had the second mutex and gave both back, those of the others later.
#[test]
fn what_was_read_too_late_is_not_set_against_what_was_read_early() {
    let records = lines(&[
        &lock(10, 1, &[16]),
        &lock(11, 2, &[32]),
        &[(20, 1, "2:2:1", &[32]), (26, 2, "2:4:0", &[32, 0, 1])],
        &lock(29, 3, &[32]),
        &[(30, 3, "2:2:1", &[16])],
    ]);
    assert_eq!(at_moment(&records, None, Some(u64::MAX)), (vec![vec![1, 3]], vec![]), "it would be a deadlock");
    assert_eq!(at_moment(&records, None, Some(25)), (vec![], vec![]));
    assert_eq!(at_moment(&records, Some(40), Some(25)), (vec![], vec![]));
    // A thread that is stuck at that time and goes on while the others are read.
    let stuck = lines(&[
        &[(10, 1, "4:2:1", &[64, 0]), (20, 2, "1:3:1", &[1])],
        &[(30, 3, "4:4:0", &[64, 0, 0]), (31, 1, "4:2:2", &[0])],
    ]);
    assert_eq!(at_moment(&stuck, None, Some(25)), (vec![], vec![]));
    assert_eq!(at_moment(&stuck, Some(25), None), (vec![], vec![(2, 1)]));
}

fn found_if_only_blocked(records: &[&[RecordLine<'static>]]) -> (Vec<Vec<u32>>, Vec<(u32, u32)>) {
    let (analysis, graph) = analysed_with(&lines(records), Knowledge { only_blocked: true, ..Knowledge::default() });
    wrong(&analysis, &graph)
}

/// Thread 1 waits while it has a mutex, thread 2 has had what that waits for, gives it back without a record, and wants the mutex.
#[test]
fn a_hold_whose_release_makes_no_record_is_none() {
    let mutex: &[RecordLine] = &[(20, 2, "2:2:1", &[16, 0, 0, 1])];
    let spin: &[RecordLine] = &[(10, 1, "9:2:1", &[48]), (12, 2, "9:2:1", &[48]), (15, 2, "9:2:2", &[1])];
    let read: &[RecordLine] = &[(10, 1, "5:3:1", &[48]), (12, 2, "5:2:1", &[48]), (15, 2, "5:2:2", &[0, 1, 1])];
    for lock in [spin, read] {
        assert_eq!(found_if_only_blocked(&[lock, mutex]), (vec![], vec![]), "{lock:?}");
    }
}

/// A thread saw that another one, the last record of which is that it began to wait for a mutex, has the mutex.
#[test]
fn a_thread_that_has_the_lock_does_not_wait_for_itself() {
    let only_blocked = Knowledge { only_blocked: true, ..Knowledge::default() };
    let ring = Knowledge { complete_from: 100, ..Knowledge::default() };
    for knowledge in [only_blocked, ring] {
        let found = |owner: &'static [u64]| {
            let begin: &[RecordLine] = &[(5, 2, "1:39:0", &[2])];
            let waits: &[RecordLine] = &[(10, 3, "2:2:1", owner), (20, 1, "2:2:1", &[16, 0, 0, 3])];
            let (analysis, graph) = analysed_with(&lines(&[begin, waits]), knowledge);
            wrong(&analysis, &graph)
        };
        assert_eq!(found(&[16, 0, 0, 2]), (vec![], vec![]), "{knowledge:?}");
        assert_eq!(found(&[16, 0, 0, 3]), (vec![vec![3]], vec![(1, 3)]), "it had it when it began to wait");
    }
}

/// The first to wait in a circle saw the owner of a mutex, which may have given it to somebody else since.
#[test]
fn the_owner_that_a_thread_saw_counts_if_nobody_else_may_have_the_lock() {
    let circle: &[RecordLine] = &[(20, 1, "2:2:1", &[16, 0, 0, 2]), (30, 2, "2:2:1", &[32, 0, 0, 1])];
    let begin: &[RecordLine] = &[(5, 2, "1:39:0", &[2])];
    // It may take the mutex without a record: nobody needs to have seen it with that before.
    let other: &[RecordLine] = &[(6, 3, "1:39:0", &[3])];
    let found = |records: &[&[RecordLine<'static>]]| {
        let knowledge = Knowledge { only_blocked: true, ..Knowledge::default() };
        let (analysis, graph) = analysed_with(&lines(records), knowledge);
        let undecided = undecided(&analysis, &graph);
        let old = graph.undecided.iter().flatten().filter(|blocked| blocked.doubtful_owner.is_some()).count();
        (wrong(&analysis, &graph), undecided, old)
    };
    // The first in the order in which they appear.
    let deadlock = (vec![vec![2, 1]], vec![]);
    let certain = (deadlock.clone(), vec![], 0);
    let undecided = ((vec![], vec![]), vec![vec![1, 2]], 1);
    assert_eq!(found(&[begin, circle]), certain);
    assert_eq!(found(&[begin, other, circle]), undecided);
    let waits: &[RecordLine] = &[(7, 3, "4:2:1", &[64, 0])];
    assert_eq!(found(&[begin, other, waits, circle]), certain);
    // Destructors of a thread's own run after the record of its end.
    let ends: &[RecordLine] = &[(7, 3, "1:2:0", &[0])];
    assert_eq!(found(&[begin, other, ends, circle]), undecided);
    let joined: &[RecordLine] = &[(8, 1, "1:3:1", &[3]), (9, 1, "1:3:2", &[3, 0, 0])];
    assert_eq!(found(&[begin, other, ends, joined, circle]), certain);
    // Whoever has the mutex may keep it for long.
    let late: &[RecordLine] = &[(5_000_000_000, 3, "4:4:0", &[64, 0, 1])];
    assert_eq!(found(&[begin, other, circle, late]), undecided);
    // Another thread saw the owner when that waited, and who waits does not release.
    let observer: &[RecordLine] = &[(40, 4, "2:2:1", &[16, 0, 0, 2])];
    assert_eq!(found(&[begin, other, circle, observer]), ((deadlock.0, vec![(4, 2)]), vec![], 0));
    let before: &[RecordLine] = &[(25, 4, "2:2:1", &[16, 0, 0, 2])];
    let (first, second) = circle.split_at(1);
    assert_eq!(found(&[begin, other, first, before, second]).0, (vec![], vec![]));
}

/// A thread gives a mutex back in a wait for a condition after the record of that, and is seen with it in between.
#[test]
fn who_waits_for_a_condition_does_not_keep_its_mutex() {
    let waits: &[RecordLine] = &[(5, 2, "1:39:0", &[2]), (10, 2, "3:4:1", &[64, 16])];
    let sees: &[RecordLine] = &[(11, 1, "2:2:1", &[16, 0, 0, 2])];
    let other: &[RecordLine] = &[(6, 3, "1:39:0", &[3])];
    assert_eq!(found_if_only_blocked(&[waits, other, sees]), (vec![], vec![]));
}

/// A mutex of which one thread takes what another one gives is no lock of an owner.
#[test]
fn who_locks_a_mutex_twice_that_others_unlock_may_go_on() {
    let twice = |time: u64| -> Vec<RecordLine<'static>> {
        let waits: &[RecordLine] = &[(time + 1, 1, "2:2:1", &[16, 0, 0, 1])];
        lines(&[&lock(time, 1, &[16]), waits])
    };
    let handed: &[RecordLine] =
        &[(15, 2, "2:4:0", &[16, 0, 1]), (16, 1, "2:2:2", &[0, 1]), (17, 1, "2:4:0", &[16, 0, 0])];
    // At the other level, of what makes no wait there is no record.
    for (knowledge, from) in [(Knowledge::default(), 0), (Knowledge { only_blocked: true, ..Knowledge::default() }, 2)]
    {
        let (first, second) = (&twice(10)[from..], &twice(20)[from..]);
        let found = |records: &[&[RecordLine<'static>]]| {
            let begin: &[RecordLine] = &[(5, 1, "1:39:0", &[1]), (6, 2, "1:39:0", &[2])];
            let (mut analysis, graph) = analysed_with(&lines(&[&[begin], records].concat()), knowledge);
            let count = std::mem::take(&mut analysis.misuse.rows)
                .iter()
                .filter(|row| row.kind == MisuseKind::RelockSelf)
                .count();
            let undecided = undecided(&analysis, &graph);
            (wrong(&analysis, &graph).0, undecided, count)
        };
        let is_misuse = usize::from(from == 0);
        assert_eq!(found(&[first]), (vec![vec![1]], vec![], is_misuse), "nobody has unlocked it before");
        assert_eq!(found(&[first, handed, second]), (vec![], vec![vec![1]], 0), "{knowledge:?}");
    }
}

/// A deadlock of threads 1 and 2, the first of which makes one record more.
fn circle_and(event: &'static str, arguments: &'static [u64]) -> Vec<RecordLine<'static>> {
    let waits: &[RecordLine] = &[(20, 1, "2:2:1", &[32]), (21, 2, "2:2:1", &[16]), (22, 3, "2:2:1", &[16])];
    lines(&[&lock(10, 1, &[16]), &lock(11, 2, &[32]), waits, &[(30, 1, event, arguments)]])
}

/// A handler that interrupts a wait may post a semaphore; so may a thread that has left the wait by a jump.
#[test]
fn who_may_have_left_its_wait_is_in_no_certain_deadlock() {
    for (event, arguments) in [("4:4:0", &[64, 0, 0][..]), ("1:10:0", &[2, 10, 0]), ("1:11:0", &[1, 0, 0, 0])] {
        let (analysis, graph) = analysed(&circle_and(event, arguments));
        assert_eq!(wrong(&analysis, &graph), (vec![], vec![]), "{event}");
        let undecided = undecided(&analysis, &graph);
        assert_eq!(undecided, [[1, 2]], "{event}");
    }
    // Who waits for a semaphore and posts another one may have left, too.
    let joins: &[RecordLine] = &[(10, 2, "4:2:1", &[64, 0]), (11, 1, "1:3:1", &[2])];
    let (analysis, graph) = analysed(&lines(&[joins]));
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![(1, 2)]));
    let (analysis, graph) = analysed(&lines(&[joins, &[(12, 2, "4:4:0", &[96, 0, 0])]]));
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![]));
}

#[test]
fn who_has_left_its_wait_by_a_jump_is_in_no_deadlock() {
    for (event, arguments) in [("2:3:0", &[48, 0][..]), ("1:16:0", &[]), ("1:2:0", &[0])] {
        let (analysis, graph) = analysed(&circle_and(event, arguments));
        assert_eq!(wrong(&analysis, &graph), (vec![], vec![]), "{event}");
    }
}

#[test]
fn a_thread_is_stuck_behind_one_that_ended_or_waits_for_a_condition() {
    let mut lines = [lock(10, 1, &[16]), lock(11, 2, &[32]), lock(12, 2, &[48])].concat();
    lines.extend([
        (13, 1, "1:2:0", &[0][..]),
        (14, 3, "2:2:1", &[16]),
        (15, 2, "3:4:1", &[80, 48]),
        (16, 4, "2:2:1", &[32]),
        (17, 5, "2:2:1", &[96]),
    ]);
    let perhaps = |graph: &super::WaitGraph| graph.perhaps_stuck.iter().map(|stuck| stuck.end).collect::<Vec<_>>();
    // After the record of its end a thread may release what it has in a destructor.
    let (analysis, graph) = analysed(&lines);
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![(4, 2)]));
    assert!(matches!(perhaps(&graph)[..], [ChainEnd::Ending(_)]), "{graph:?}");
    let late = (9_000_000_000, 6, "4:4:0", &[112, 0, 0][..]);
    assert_eq!(analysed(&[&lines[..], &[late]].concat()).1.perhaps_stuck.len(), 1, "destructors may last");
    lines.extend([(18, 6, "1:3:1", &[1][..]), (19, 6, "1:3:2", &[1, 0, 0]), (20, 6, "4:2:1", &[112, 0])]);
    let (analysis, graph) = analysed(&lines);
    assert_eq!(perhaps(&graph), []);
    // Nobody is known to have 96.
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![(3, 1), (4, 2)]));
    let ends: Vec<ChainEnd> = graph.stuck.iter().map(|stuck| stuck.end).collect();
    assert!(matches!(ends[..], [ChainEnd::Ended(_), ChainEnd::Idle(_, OngoingCall { event: (3, 4), .. })]), "{ends:?}");
}

#[test]
fn a_barrier_that_a_running_thread_may_come_to_makes_nobody_stuck() {
    let found = |others: &[RecordLine<'static>]| {
        let waits: &[RecordLine] = &[(20, 2, "7:2:1", &[80, 2]), (21, 1, "1:3:1", &[2])];
        let (analysis, graph) = analysed(&lines(&[&[(10, 3, "1:39:0", &[3])], waits, others]));
        wrong(&analysis, &graph)
    };
    assert_eq!(found(&[]), (vec![], vec![]));
    assert_eq!(found(&[(30, 3, "1:2:0", &[0])]), (vec![], vec![]), "it is ending");
    let joined: &[RecordLine] = &[(30, 3, "1:2:0", &[0]), (31, 4, "1:3:1", &[3]), (32, 4, "1:3:2", &[3, 0, 0])];
    let idle: &[RecordLine] = &[(33, 4, "4:2:1", &[64, 0])];
    assert_eq!(found(&[joined, idle].concat()), (vec![], vec![(1, 2)]), "it has ended");
    assert_eq!(found(&[(30, 3, "4:2:1", &[64, 0])]), (vec![], vec![(1, 2)]), "it waits, too");
    assert_eq!(found(&[(30, 3, "4:30:1", &[64, 0, 0, 99])]), (vec![], vec![]), "its wait has a time limit");
    assert_eq!(found(&[(30, 3, "0:1:0", &[1, 0])]), (vec![], vec![]), "nobody knows what it does");
}

/// Each of three threads joins the next one, until one is cancelled.
#[test]
fn a_circle_that_a_cancellation_ended_was_a_deadlock_before() {
    let names: &[RecordLine] = &[(1, 1, "1:39:0", &[1]), (2, 2, "1:39:0", &[2]), (3, 3, "1:39:0", &[3])];
    let joins: &[RecordLine] = &[(10, 1, "1:3:1", &[2]), (11, 2, "1:3:1", &[3]), (12, 3, "1:3:1", &[1])];
    let ended = |rval: &'static [u64]| {
        let ends: &[RecordLine] = &[(30, 2, "1:3:2", rval), (31, 2, "1:2:0", &[0]), (32, 1, "1:3:2", &[2, 0, 0])];
        lines(&[names, joins, ends])
    };
    let canceled: &[u64] = &[3, 0, libc::ECANCELED as u64];
    assert_eq!(at_moment(&ended(canceled), Some(20), None), (vec![vec![1, 2, 3]], vec![]));
    assert_eq!(at_moment(&ended(canceled), Some(31), None), (vec![], vec![]));
    // A running process shows what is, not what was.
    assert_eq!(at_moment(&ended(canceled), None, Some(20)), (vec![], vec![]));
    // Who has what it waited for was in no deadlock.
    assert_eq!(at_moment(&ended(&[3, 0, 0]), Some(20), None), (vec![], vec![]));
}
