//! Locks that a forked child finds locked. LWPs from 20 on are the child's.

use super::Analysis;
use super::analysis_tests::{RecordLine, analysed, analysed_with, lock, record, undecided, wrong};
use super::chain_ends::ChainEnd;
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;

fn lines(lines: &[&[RecordLine<'static>]]) -> Vec<RecordLine<'static>> {
    lines.concat()
}

#[test]
fn a_child_waits_for_a_thread_that_its_parent_did_not_fork() {
    let found = |attributes: &'static [u64], owner: &'static [u64]| {
        let records = lines(&[
            &[(5, 1, "2:1:0", attributes)],
            &lock(10, 2, &[16]),
            &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[20, 0, 0])],
            &[(30, 21, "2:2:1", owner), (40, 2, "2:4:0", &[16, 0, 0])],
        ]);
        let (analysis, graph) = analysed(&records);
        let ends: Vec<ChainEnd> = graph.stuck.iter().map(|stuck| stuck.end).collect();
        (wrong(&analysis, &graph), ends)
    };
    let owner = &[16, 0, 0, 2];
    assert_eq!(found(&[16, 0, 0, 0], owner), ((vec![], vec![(21, 2)]), vec![ChainEnd::LeftBehind(1)]));
    // Processes may share a mutex with attributes, and then the parent releases it.
    assert_eq!(found(&[16, 99, 0, 0], owner), ((vec![], vec![]), vec![]));
    // Without THR_TRACE_DETAIL nobody knows, nor if the LWP is of no process that is recorded.
    assert_eq!(found(&[16, 0, 0, 0], &[16]), ((vec![], vec![]), vec![]));
    assert_eq!(found(&[16, 0, 0, 0], &[16, 0, 0, 9]), ((vec![], vec![]), vec![]));
}

/// Thread 2 has the lock when its process forks a child, one of whose threads is given the same LWP, and forks.
#[test]
fn who_has_a_lock_by_an_lwp_that_two_ancestors_have_used_is_not_known() {
    let knowledge = Knowledge { only_blocked: true, ..Knowledge::default() };
    let mut analysis = Analysis::new([1, 2, 3].map(|pid| (pid, knowledge)).into(), Default::default());
    let first: &[RecordLine] = &[(5, 1, "2:1:0", &[16, 0, 0, 0]), (6, 2, "2:2:1", &[16]), (7, 2, "2:2:2", &[0, 1])];
    let fork: &[RecordLine] = &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[2, 0, 0])];
    lines(&[first, fork]).iter().for_each(|line| analysis.add(&record(*line)));
    let forks: [RecordLine; 3] = [(30, 2, "1:39:0", &[2]), (31, 2, "11:1:1", &[0]), (33, 2, "11:1:2", &[3, 0, 0])];
    forks.iter().for_each(|line| analysis.add(&NumericRecord { pid: 2, ..record(*line) }));
    let waits: [RecordLine; 2] = [(34, 41, "11:2:0", &[2]), (40, 41, "2:2:1", &[16, 0, 0, 2])];
    waits.iter().for_each(|line| analysis.add(&NumericRecord { pid: 3, tid: 2, ..record(*line) }));
    let graph = analysis.finish(&[]);
    let unknown: usize = graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum();
    assert_eq!((wrong(&analysis, &graph), unknown), ((vec![], vec![]), 1));
}

/// Without THR_TRACE_DETAIL records do not have who had a lock when a wait began.
#[test]
fn whom_a_child_waits_for_is_not_known_where_it_has_never_had_the_lock() {
    let fork: &[RecordLine] = &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[20, 0, 0])];
    let waits: &[RecordLine] = &[(30, 21, "2:2:1", &[16])];
    let found = |before: &[RecordLine<'static>]| {
        let (_, graph) = analysed(&lines(&[&lock(10, 2, &[16]), fork, before, waits]));
        graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum::<usize>()
    };
    assert_eq!(found(&[]), 1);
    let released: &[RecordLine] = &[(25, 2, "2:4:0", &[16, 0, 0])];
    assert_eq!(found(released), 1, "the child's copy stays locked");
    let (_, graph) = analysed(&lines(&[fork, &lock(25, 2, &[16]), waits]));
    assert_eq!(graph.unknown_holders.len(), 0, "nobody had it at the fork");
    let made: &[RecordLine] = &[(25, 21, "2:1:0", &[16, 0, 0, 0])];
    assert_eq!(found(made), 0, "it has made it anew");
    let unlocked: &[RecordLine] = &[(27, 21, "2:4:0", &[16, 0, 0])];
    assert_eq!(found(&lines(&[&lock(26, 21, &[16]), unlocked])), 0, "it has had it");
}

/// Readers that a child does not have keep its writers waiting, also when others of its own have read meanwhile.
#[test]
fn a_child_that_has_read_may_wait_for_readers_that_its_parent_did_not_fork() {
    const READS: [RecordLine; 2] = [(10, 2, "5:2:1", &[16]), (10, 2, "5:2:2", &[0, 0, 1])];
    let by = |thread: u32, time: u64| READS.map(|(_, _, event, arguments)| (time, thread, event, arguments));
    let unlocks = |thread: u32, time: u64| -> [RecordLine<'static>; 1] { [(time, thread, "5:4:0", &[16, 0, 0])] };
    let fork: &[RecordLine] = &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[20, 0, 0])];
    let found = |before: &[&[RecordLine<'static>]], between: &[&[RecordLine<'static>]], waits: &'static str| {
        let (_, graph) = analysed(&lines(&[&lines(before), fork, &lines(between), &[(40, 21, waits, &[16])]]));
        graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum::<usize>()
    };
    let (other, own, own_read) = (by(2, 10), by(1, 11), by(21, 30));
    let (child_unlocks, written) = (unlocks(21, 31), [(30, 21, "5:3:1", &[16][..]), (30, 21, "5:3:2", &[0, 0])]);
    assert_eq!(found(&[&other], &[&own_read, &child_unlocks], "5:3:1"), 1);
    assert_eq!(found(&[&other, &own], &[&child_unlocks], "5:3:1"), 1, "it gives back what it has of its parent's");
    assert_eq!(found(&[&own], &[&child_unlocks], "5:3:1"), 0, "the thread that forked was the only reader");
    assert_eq!(found(&[&other], &[&written, &child_unlocks], "5:3:1"), 0, "who has written was alone");
    assert_eq!(found(&[&other], &[&own_read, &child_unlocks], "5:2:1"), 0, "readers do not wait for readers");
    let parent_unlocks = unlocks(2, 25);
    assert_eq!(found(&[&other], &[&parent_unlocks, &own_read, &child_unlocks], "5:3:1"), 1);
    let before_the_fork = unlocks(2, 15);
    assert_eq!(found(&[&other, &before_the_fork], &[&own_read, &child_unlocks], "5:3:1"), 0);
}

/// What is found of records where the locks that a child found locked are static variables, or where nobody knows their memory.
fn found_of_memory(
    records: &[RecordLine<'static>],
    knowledge: Knowledge,
    are_static: bool,
) -> (Vec<Vec<u32>>, Vec<(u32, u32)>) {
    let mut analysis = Analysis::new([(1, knowledge), (2, knowledge)].into(), super::WaitSelection::default());
    for line in records {
        analysis.add(&record(*line));
        let locks = std::mem::take(&mut analysis.locks_by_fork);
        locks.into_iter().filter(|_| are_static).for_each(|lock| analysis.settle_lock_by_fork(lock));
    }
    let graph = analysis.finish(&[]);
    wrong(&analysis, &graph)
}

/// The lock's word in the child has the thread that forked: that is the child's own, unless processes share the memory.
#[test]
fn a_child_that_locks_what_its_parent_had_waits_for_itself() {
    let only_blocked = Knowledge { only_blocked: true, ..Knowledge::default() };
    let fork: &[RecordLine] = &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[20, 0, 0])];
    let other: &[RecordLine] = &[(4, 2, "1:39:0", &[2])];
    let (deadlock, none) = ((vec![vec![21]], vec![]), (vec![], vec![]));
    let found = |before: &[RecordLine<'static>], owner: &'static [u64], are_static: bool| {
        let records = lines(&[before, fork, &[(30, 21, "2:2:1", owner)]]);
        found_of_memory(&records, only_blocked, are_static)
    };
    assert_eq!(found(other, &[16, 0, 0, 1], true), deadlock);
    // Another program may have initialised a mutex for several processes.
    assert_eq!(found(other, &[16, 0, 0, 1], false), none);
    // Another thread of the parent had it, of which nobody knows that it is a lock of the program's own.
    assert_eq!(found(other, &[16, 0, 0, 2], true), none);
    // Processes may share a mutex with attributes.
    assert_eq!(found(&[(5, 1, "2:1:0", &[16, 99, 0, 0])], &[16, 0, 0, 1], false), none);
    assert_eq!(found(&[(5, 1, "2:1:0", &[16, 0, 0, 0])], &[16, 0, 0, 1], false), deadlock);
    // Where all calls are recorded, the parent's acquisition is, too.
    let taken = |attributes: &[RecordLine<'static>], are_static: bool| {
        let records = lines(&[attributes, &lock(10, 1, &[16]), fork, &[(30, 21, "2:2:1", &[16, 0, 0, 1])]]);
        found_of_memory(&records, Knowledge::default(), are_static)
    };
    assert_eq!(taken(&[], true), deadlock);
    assert_eq!(taken(&[], false), none);
    assert_eq!(taken(&[(5, 1, "2:1:0", &[16, 99, 0, 0])], false), none);
    assert_eq!(taken(&[(5, 1, "2:1:0", &[16, 0, 0, 0])], false), deadlock);
}

#[test]
fn a_lock_of_an_ancestors_thread_may_be_one_for_several_processes() {
    let records = lines(&[
        &lock(10, 2, &[16]),
        &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[20, 0, 0])],
        &[(30, 21, "2:2:1", &[16, 0, 0, 2])],
    ]);
    assert_eq!(found_of_memory(&records, Knowledge::default(), true), (vec![], vec![(21, 2)]));
    assert_eq!(found_of_memory(&records, Knowledge::default(), false), (vec![], vec![]));
}

/// The parent had forked with lock 16, of which the child has a copy unless processes share the memory.
#[test]
fn what_another_process_may_hold_makes_no_order_of_locks() {
    let cycles = |attributes: &'static [u64]| {
        let fork: &[RecordLine] = &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[2, 0, 0])];
        let other: &[RecordLine] =
            &[(31, 22, "2:4:0", &[16, 0, 0]), (31, 22, "2:4:0", &[48, 0, 0]), (32, 21, "2:2:1", &[48])];
        let both = [lock(30, 22, &[48]), lock(30, 22, &[16])].concat();
        let first: &[RecordLine] = &[(5, 1, "2:1:0", attributes)];
        let inner = [&lock(25, 21, &[48])[..], &[(26, 21, "2:4:0", &[48, 0, 0])]].concat();
        let begin: &[RecordLine] = &[(23, 22, "1:39:0", &[2])];
        let (analysis, _) = analysed(&lines(&[first, &lock(10, 1, &[16]), fork, begin, &inner, &both, other]));
        analysis.cycles.len()
    };
    assert_eq!(cycles(&[16, 0, 0, 0]), 1, "private memory");
    assert_eq!(cycles(&[16, 99, 0, 0]), 0, "perhaps for processes");
}

/// Where only calls that blocked are recorded, another process may have unlocked a mutex for processes before, without a record.
#[test]
fn who_locks_twice_what_another_process_may_unlock_may_go_on() {
    let only_blocked = Knowledge { only_blocked: true, ..Knowledge::default() };
    let fork: &[RecordLine] = &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[2, 0, 0])];
    let found = |attributes: &'static [u64], between: &[RecordLine<'static>]| {
        let begin: &[RecordLine] = &[(5, 1, "2:1:0", attributes)];
        let (analysis, graph) =
            analysed_with(&lines(&[begin, between, &[(30, 1, "2:2:1", &[16, 0, 0, 1])]]), only_blocked);
        (wrong(&analysis, &graph).0, undecided(&analysis, &graph))
    };
    let deadlock = (vec![vec![1]], vec![]);
    assert_eq!(found(&[16, 99, 0, 0], fork), (vec![], vec![vec![1]]));
    assert_eq!(found(&[16, 99, 0, 0], &[]), deadlock, "there is no other process");
    assert_eq!(found(&[16, 0, 0, 0], fork), deadlock, "it is for one process");
}

/// A thread has a lock for processes when it forks, and waits for it again: the child is to unlock it.
#[test]
fn what_a_child_may_unlock_its_parent_may_get_again() {
    let fork: &[RecordLine] = &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[20, 0, 0])];
    let again: &[RecordLine] = &[(30, 1, "2:2:1", &[16, 0, 0, 1])];
    let unlocks: &[RecordLine] = &[(40, 21, "2:4:0", &[16, 0, 1])];
    let returns: &[RecordLine] = &[(41, 1, "2:2:2", &[0, 1])];
    let third: &[RecordLine] = &[(50, 1, "2:2:1", &[16, 0, 0, 1])];
    let found = |records: &[&[RecordLine<'static>]], are_static: bool| {
        let records = lines(&[&lock(10, 1, &[16]), &lines(records)]);
        found_of_memory(&records, Knowledge::default(), are_static).0
    };
    let made: &[RecordLine] = &[(5, 1, "2:1:0", &[16, 99, 0, 0])];
    let with_attributes = |records: &[&[RecordLine<'static>]], are_static: bool| {
        let records = lines(&[made, &lock(10, 1, &[16]), &lines(records)]);
        let (analysis, graph) = analysed(&records);
        let unknown = graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum::<usize>();
        let undecided = undecided(&analysis, &graph).len();
        (found_of_memory(&records, Knowledge::default(), are_static).0, unknown, undecided)
    };
    assert_eq!(with_attributes(&[fork, again], false), (vec![], 1, 0));
    assert_eq!(with_attributes(&[fork, again], true).0, [[1]], "each process has one of its own");
    assert_eq!(with_attributes(&[again], false), (vec![vec![1]], 0, 0), "there is no child");
    // The child did unlock it.
    assert_eq!(with_attributes(&[fork, again, unlocks, returns, third], false), (vec![], 0, 1));
    // Of a mutex whose initialisation is not recorded that is known only then.
    assert_eq!(found(&[fork, again], false), [[1]]);
    assert_eq!(found(&[fork, again, unlocks], false), [[0; 0]; 0]);
    assert_eq!(found(&[fork, again, unlocks], true), [[1]]);
    // What the parent has taken after the fork the child does not have.
    let anew: &[RecordLine] = &[(23, 1, "2:4:0", &[16, 0, 0]), (24, 1, "2:2:1", &[16]), (24, 1, "2:2:2", &[0, 0])];
    assert_eq!(with_attributes(&[fork, anew, again, unlocks], false), (vec![vec![1]], 0, 0));
}

/// A child unlocks what its parent had at the fork, as one process does for another in memory that they share. Then threads of the parent or of
/// the child wait for each other.
#[test]
fn what_a_child_has_unlocked_it_may_unlock_again() {
    let fork: &[RecordLine] = &[(20, 1, "11:1:1", &[0]), (21, 21, "11:2:0", &[1]), (22, 1, "11:1:2", &[20, 0, 0])];
    let threads: &[RecordLine] = &[(23, 2, "1:39:0", &[2]), (24, 22, "1:39:0", &[2])];
    let unlocks = |time: u64, thread: u32| -> [RecordLine<'static>; 1] { [(time, thread, "2:4:0", &[16, 0, 0])] };
    let circle = |first: u32, second: u32| -> Vec<RecordLine<'static>> {
        let waits: &[RecordLine] = &[(52, first, "2:2:1", &[16]), (53, second, "2:2:1", &[48])];
        [&lock(50, second, &[16])[..], &lock(51, first, &[48]), waits].concat()
    };
    let found = |begin: &[RecordLine<'static>], between: &[&[RecordLine<'static>]], circle: &[RecordLine<'static>]| {
        let records = lines(&[begin, &lock(10, 1, &[16]), fork, threads, &lines(between), circle]);
        let (analysis, graph) = analysed(&records);
        (wrong(&analysis, &graph).0, undecided(&analysis, &graph))
    };
    let in_doubt = |circle: &[u32]| (vec![], vec![circle.to_vec()]);
    let certain = |circle: &[u32]| (vec![circle.to_vec()], vec![]);
    let made: &[RecordLine] = &[(5, 1, "2:1:0", &[16, 99, 0, 0])];
    let made_by_another: &[RecordLine] = &[];
    for begin in [made, made_by_another] {
        for (first, second) in [(1, 2), (21, 22)] {
            let (wait, pair) = (circle(first, second), [first, second]);
            assert_eq!(found(begin, &[&unlocks(30, 21)], &wait), in_doubt(&pair), "{begin:?} {pair:?}");
            // Each has unlocked its own, as handlers of pthread_atfork do.
            assert_eq!(found(begin, &[&unlocks(30, 21), &unlocks(31, 1)], &wait), certain(&pair), "{begin:?} {pair:?}");
            assert_eq!(found(begin, &[&unlocks(30, 1), &unlocks(31, 21)], &wait), certain(&pair), "{begin:?} {pair:?}");
            // The thread of the parent may have unlocked it for the one of the child that had got it.
            let gets = lock(31, 22, &[16]);
            let both = lines(&[&unlocks(30, 21), &gets, &unlocks(32, 1), &unlocks(33, 22)]);
            assert_eq!(found(begin, &[&both], &wait), in_doubt(&pair), "{begin:?} {pair:?}");
        }
    }
    let private: &[RecordLine] = &[(5, 1, "2:1:0", &[16, 0, 0, 0])];
    assert_eq!(found(private, &[&unlocks(30, 21)], &circle(21, 22)), certain(&[21, 22]), "the child's own copy");
}
