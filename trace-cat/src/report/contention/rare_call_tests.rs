//! The analysis of calls that fail, of names that are used again, and of many waits.

use super::analysis_tests::{
    RecordLine, TIMED_OUT, analysed, analysed_with, blamed, figures, lock, selected, wakers, wrong,
};
use super::holds::Knowledge;
use super::tables::ImageEnd;
use super::wait_selection::WaitSelection;

const EPERM: u64 = libc::EPERM as u64;
const CANCELED: u64 = libc::ECANCELED as u64;

/// glibc gives the stack of a thread that was joined, and with it the pthread_t, to the next one.
#[test]
fn a_pthread_t_may_be_another_threads_after_a_join() {
    // The second thread has its first record after it is waited for.
    let lines = [
        (10, 1, "1:1:1", &[0][..]),
        (11, 1, "1:1:2", &[0, 3]),
        (12, 3, "1:30:0", &[0]),
        (13, 1, "1:3:1", &[3]),
        (20, 3, "1:2:0", &[0]),
        (21, 1, "1:3:2", &[3, 0, 0]),
        (30, 1, "1:1:1", &[0]),
        (31, 1, "1:1:2", &[0, 3]),
        (32, 1, "1:39:0", &[3, 0x6162 << 48, 0, 0]),
        (33, 1, "1:3:1", &[3]),
        (34, 3, "1:30:0", &[0]),
        (80, 3, "1:2:0", &[0]),
        (83, 1, "1:3:2", &[3, 0, 0]),
    ];
    let (analysis, _) = analysed(&lines);
    assert_eq!((analysis.threads[0].waits, analysis.threads[0].idleness), (2, 8 + 50));
    let names: Vec<_> = analysis.threads.iter().map(|thread| thread.name.map(|name| name[1])).collect();
    assert_eq!(names, [None, None, Some(b'b')]);

    // A detached thread ends by itself; the next one waits for what its joiner holds.
    let mut lines = lock(5, 1, &[16]).to_vec();
    lines.extend([
        (10, 1, "1:1:1", &[0][..]),
        (11, 1, "1:1:2", &[0, 3]),
        (12, 3, "1:30:0", &[0]),
        (20, 3, "1:2:0", &[0]),
        (30, 1, "1:1:1", &[0]),
        (31, 1, "1:1:2", &[0, 3]),
        (33, 1, "1:3:1", &[3]),
        (34, 3, "1:30:0", &[0]),
        (35, 3, "2:2:1", &[16]),
    ]);
    let (analysis, graph) = analysed(&lines);
    assert_eq!(wrong(&analysis, &graph).0, [[1, 3]]);
}

/// A signal may arrive in a new thread before its first record.
#[test]
fn a_handler_that_runs_before_its_thread_begins_runs_in_that_thread() {
    let lines = [
        (10, 1, "1:1:1", &[0][..]),
        (11, 1, "1:1:2", &[0, 3]),
        (12, 3, "4:3:0", &[16, 1, 0]),
        (13, 3, "1:30:0", &[7]),
        (20, 3, "1:2:0", &[0]),
        (30, 3, "1:30:0", &[8]),
    ];
    let (analysis, _) = analysed(&lines);
    let starts: Vec<_> = analysis.threads.iter().map(|thread| (thread.lwp, thread.start)).collect();
    assert_eq!(starts, [(1, None), (3, Some(7)), (3, Some(8))]);
}

#[test]
fn signals_beyond_the_waits_wake_nobody_and_are_not_kept() {
    let mut lines = lock(1, 1, &[16]).to_vec();
    lines.push((2, 1, "3:4:1", &[32, 16]));
    lines.extend(lock(3, 2, &[16]));
    lines.extend((10..1010).map(|time| (time, 2, "3:2:0", &[32, 0, 1][..])));
    lines.extend([(2000, 2, "2:4:0", &[16, 0, 1][..]), (2001, 1, "3:4:2", &[0])]);
    let (analysis, _) = analysed(&lines);
    assert_eq!(analysis.watches, 1);
    assert_eq!((figures(&analysis, 32), wakers(&analysis, 32)), ((1, 0, 9, 0, 0), vec![(2, 1)]));
    assert_eq!((figures(&analysis, 16).1, blamed(&analysis, 16)), (1990, vec![(2, 0, 1990)]));
    let cond = &analysis.objects.iter().find(|object| object.address == 32).unwrap().figures;
    assert_eq!(cond.wasted_signals, 999);
}

/// A wait that began later cannot take a wake-up from before, even if nobody else will.
#[test]
fn a_wake_up_is_kept_if_some_wait_has_no_earlier_one() {
    let lines = [
        (1, 1, "4:2:1", &[16, 0][..]),
        (2, 2, "4:30:1", &[16, 0]),
        (10, 3, "4:4:0", &[16, 0, 0]),
        (11, 4, "4:4:0", &[16, 0, 0]),
        (12, 2, "4:30:2", &[TIMED_OUT]),
        (13, 5, "4:2:1", &[16, 0]),
        (14, 6, "4:4:0", &[16, 0, 0]),
        (15, 5, "4:2:2", &[0]),
        (16, 1, "4:2:2", &[0]),
    ];
    assert_eq!(wakers(&analysed(&lines).0, 16), [(3, 1), (6, 1)]);
    // A broadcast ends what signals have not ended, and a signal after it those that began since.
    let lines = [
        (1, 1, "10:1:1", &[16, 0, 1, 0][..]),
        (2, 2, "10:1:1", &[16, 0, 1, 0]),
        (10, 3, "10:2:0", &[16, 1, 1, 1]),
        (11, 4, "10:2:0", &[16, 1, 99, 99]),
        (12, 5, "10:1:1", &[16, 0, 1, 0]),
        (13, 6, "10:2:0", &[16, 1, 1, 1]),
        (14, 5, "10:1:2", &[0]),
        (15, 2, "10:1:2", &[0]),
        (16, 1, "10:1:2", &[0]),
    ];
    assert_eq!(wakers(&analysed(&lines).0, 16), [(3, 1), (4, 1), (6, 1)]);
}

/// A semaphore as a lock: the thread that posts it takes it again before those that wait are there.
#[test]
fn who_gets_a_semaphore_without_waiting_takes_a_post_from_those_that_wait() {
    let lines = [
        (1, 1, "4:2:1", &[16, 0][..]),
        (10, 2, "4:4:0", &[16, 0, 0]),
        (11, 2, "4:2:1", &[16, 1]),
        (11, 2, "4:2:2", &[0]),
        (20, 3, "4:4:0", &[16, 0, 0]),
        (21, 4, "4:3:0", &[16, 0]),
        (30, 5, "4:4:0", &[16, 0, 0]),
        // Posts for which there is an earlier one are taken first.
        (31, 6, "4:4:0", &[16, 0, 1]),
        (32, 6, "4:3:0", &[16, 0]),
        (33, 6, "4:3:0", &[16, libc::EAGAIN as u64]),
        (34, 1, "4:2:2", &[0]),
    ];
    assert_eq!(wakers(&analysed(&lines).0, 16), [(5, 1)]);
}

/// A thread may poll a lock for days that another holds.
#[test]
fn waits_that_time_out_are_accounted_before_the_lock_changes() {
    let mut lines = lock(1, 1, &[16]).to_vec();
    for time in 0..70_000 {
        lines.push((10 + 2 * time, 2, "2:30:1", &[16, 0, 99]));
        lines.push((11 + 2 * time, 2, "2:30:2", &[TIMED_OUT, 1]));
    }
    lines.push((200_000, 1, "2:4:0", &[16, 0, 0]));
    let (analysis, _) = analysed(&lines);
    assert_eq!(figures(&analysis, 16), (70_000, 70_000, 0, 0, 0));
    assert_eq!(blamed(&analysis, 16), [(1, 0, 70_000)]);
    assert_eq!(analysis.objects[0].figures.max_waiters, 1);
}

#[test]
fn a_wait_for_a_condition_without_the_mutex_ends_nobodys_hold() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.extend([
        (20, 3, "2:2:1", &[16][..]),
        (30, 2, "3:4:1", &[32, 16]),
        (31, 2, "3:4:2", &[EPERM]),
        (90, 1, "2:4:0", &[16, 0, 1]),
        (91, 3, "2:2:2", &[0, 1]),
        (95, 3, "2:4:0", &[16, 0, 0]),
    ]);
    let (analysis, _) = analysed(&lines);
    assert_eq!((figures(&analysis, 16), blamed(&analysis, 16)), ((1, 71, 0, 1, 0), vec![(1, 0, 70)]));
    assert_eq!((figures(&analysis, 32).0, analysis.threads[2].waits + analysis.threads[1].waits), (0, 1));
    let mutex = &analysis.objects[0].figures;
    assert_eq!((mutex.hold.count(), mutex.hold.sum(), analysis.missing.acquisitions), (2, 80 + 4, 0));
}

#[test]
fn after_a_cancelled_routine_nobody_knows_who_runs_it() {
    let lines = [
        (10, 1, "1:38:1", &[16, 0][..]),
        (20, 2, "1:38:1", &[16, 0]),
        (50, 1, "1:38:2", &[CANCELED]),
        (60, 3, "1:38:1", &[16, 0]),
        (90, 2, "1:38:2", &[0]),
        (91, 3, "1:38:2", &[0]),
    ];
    let (analysis, _) = analysed(&lines);
    assert_eq!(figures(&analysis, 16), (2, 70 + 31, 0, 0, 40 + 31));
    assert_eq!((blamed(&analysis, 16), wakers(&analysis, 16)), (vec![(1, 0, 30)], vec![]));
    assert_eq!(analysis.objects[0].figures.hold.sum(), 40);
}

#[test]
fn who_unlocks_for_another_has_not_been_the_owner() {
    let mut lines = Vec::new();
    for time in [10, 20, 30] {
        lines.extend(lock(time, 1, &[16]));
        lines.push((time + 5, 2, "2:4:0", &[16, 0, 0]));
    }
    let (analysis, _) = analysed(&lines);
    let mutex = &analysis.objects[0].figures;
    assert_eq!((mutex.owner_changes, mutex.hold.sum()), (0, 15));
}

#[test]
fn a_program_may_be_followed_by_one_that_is_not_recorded() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.extend([(20, 2, "2:2:1", &[16][..]), (30, 1, "11:3:1", &[])]);
    let (analysis, graph) = analysed(&lines);
    assert_eq!((analysis.processes[0].end, wrong(&analysis, &graph)), (ImageEnd::Exec, (vec![], vec![])));
    assert_eq!(figures(&analysis, 16), (1, 10, 0, 0, 0));
}

/// Without waits for conditions nobody knows when a mutex was free, and where only they are recorded, who held it.
#[test]
fn events_that_are_left_out_are_not_guessed() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    // Thread 1 waits for a condition here, and has the mutex again from 40 on.
    lines.extend(lock(20, 2, &[16]));
    lines.extend([
        (30, 2, "2:4:0", &[16, 0, 0][..]),
        (50, 2, "2:2:1", &[16]),
        (80, 1, "2:4:0", &[16, 0, 1]),
        (82, 2, "2:2:2", &[0, 1]),
        (90, 2, "2:4:0", &[16, 0, 0]),
    ]);
    let (analysis, _) = analysed_with(&lines, Knowledge { misses_conds: true, ..Knowledge::default() });
    let (waits, contention, _, handoff, unknown) = figures(&analysis, 16);
    assert_eq!((waits, contention, handoff), (1, 32, 0));
    assert!(blamed(&analysis, 16).iter().all(|(lwp, ..)| *lwp == 1), "{:?}, {unknown}", blamed(&analysis, 16));
    assert_eq!((analysis.missing.releases, analysis.missing.acquisitions), (0, 0));

    let lines = [
        (10, 1, "3:4:1", &[32, 16][..]),
        (20, 2, "3:4:1", &[32, 16]),
        (30, 3, "3:3:0", &[32, 0, 2]),
        (35, 1, "3:4:2", &[0]),
        (70, 2, "3:4:2", &[0]),
    ];
    let (analysis, _) = analysed(&lines);
    assert_eq!((figures(&analysis, 16), figures(&analysis, 32)), ((0, 0, 0, 0, 0), (2, 0, 25 + 50, 0, 0)));
    assert_eq!((analysis.objects[1].figures.hold.count(), analysis.missing.acquisitions), (0, 0));
}

#[test]
fn a_release_from_before_records_are_complete_is_nobodys_waker() {
    let mut lines: Vec<RecordLine> = lock(10, 1, &[16]).to_vec();
    lines.extend([(20, 1, "2:4:0", &[16, 0, 1][..]), (15, 2, "2:2:1", &[16]), (60, 2, "2:2:2", &[0, 1])]);
    lines.sort_by_key(|line| line.0);
    let at = |complete_from| wakers(&analysed_with(&lines, Knowledge { complete_from, ..Knowledge::default() }).0, 16);
    assert_eq!((at(15), at(30)), (vec![(1, 1)], vec![]));
}

/// glibc takes one level off a recursive mutex that a wait for a condition gives back.
#[test]
fn a_recursive_mutex_stays_locked_in_a_wait_if_it_was_locked_twice() {
    let mut lines = vec![
        (1, 1, "6:2:1", &[16][..]),
        (1, 1, "6:2:2", &[0, 0, 1]),
        (2, 1, "6:2:1", &[16]),
        (2, 1, "6:2:2", &[0, 0, 2]),
        (10, 1, "3:4:1", &[32, 16]),
        (20, 2, "6:2:1", &[16]),
        (30, 3, "3:2:0", &[32, 0, 1]),
    ];
    let (analysis, graph) = analysed(&lines[..6]);
    assert_eq!(wrong(&analysis, &graph).1, [(2, 1)]);
    lines.extend([
        (40, 1, "3:4:2", &[0][..]),
        (50, 1, "6:4:0", &[16, 0, 1]),
        (60, 1, "6:4:0", &[16, 0, 1]),
        (62, 2, "6:2:2", &[0, 1, 1]),
        (70, 2, "6:4:0", &[16, 0, 0]),
    ]);
    let (analysis, _) = analysed(&lines);
    assert_eq!((figures(&analysis, 16), blamed(&analysis, 16)), ((1, 42, 0, 2, 0), vec![(1, 0, 40)]));
    assert_eq!((analysis.objects[0].figures.hold.sum(), analysis.threads[0].idleness), (59 + 8, 30));
}

#[test]
fn a_wait_that_goes_on_for_its_mutex_is_one_of_its_thread() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.push((20, 1, "3:4:1", &[32, 16, 0, 0, 0x500]));
    lines.extend(lock(30, 2, &[16]));
    lines.extend([(40, 2, "3:2:0", &[32, 0, 1][..]), (70, 2, "2:4:0", &[16, 0, 1]), (75, 1, "3:4:2", &[0])]);
    let (analysis, _) = analysed(&lines);
    assert_eq!((analysis.threads[0].waits, analysis.sites.sites[1].waits), (1, 1));
    assert_eq!((figures(&analysis, 16).0, figures(&analysis, 32).0), (1, 1));
}

/// A thread may leave a call by siglongjmp: nobody knows when.
#[test]
fn a_thread_with_later_records_is_not_stuck_in_an_open_call() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.extend([(20, 1, "4:2:1", &[32, 0][..]), (30, 2, "2:2:1", &[16]), (90, 1, "1:6:0", &[])]);
    let (analysis, graph) = analysed(&lines);
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![]));
    assert_eq!((figures(&analysis, 32).0, analysis.missing.returns), (0, 1));
    assert_eq!(figures(&analysis, 16), (1, 60, 0, 0, 0));
}

/// A handler has left each of three waits by a jump, in a thread that has ended, or that nobody knows to be in none of them.
#[test]
fn each_wait_that_a_thread_left_before_its_end_has_no_return_record() {
    let missing = |last: RecordLine| {
        let mut lines = lock(10, 1, &[16]).to_vec();
        lines.extend([(20, 2, "4:2:1", &[32, 0][..]), (25, 2, "4:2:1", &[32, 0]), (30, 2, "2:2:1", &[16]), last]);
        let (analysis, _) = analysed(&lines);
        assert_eq!([16, 32].map(|address| figures(&analysis, address).0), [0, 0]);
        analysis.missing.returns
    };
    assert_eq!(missing((40, 2, "1:2:0", &[0])), 3);
    assert_eq!(missing((40, 2, "1:6:0", &[])), 1);
}

#[test]
fn a_release_in_flight_whose_record_was_written_happened_once() {
    let record: RecordLine = (10, 1, "6:4:0", &[16, 0, 0]);
    let in_flight: RecordLine = (10, 1, "0:4:0", &[604, 16]);
    for released in [[record, in_flight], [in_flight, record]] {
        let lines = [
            (1, 1, "6:2:1", &[16][..]),
            (1, 1, "6:2:2", &[0, 0, 1]),
            (2, 1, "6:2:1", &[16]),
            (2, 1, "6:2:2", &[0, 0, 2]),
            released[0],
            released[1],
            (20, 1, "0:4:0", &[604, 16]),
        ];
        let (analysis, _) = analysed(&lines);
        assert_eq!((analysis.objects[0].figures.hold.sum(), analysis.missing.acquisitions), (19, 0));
    }
}

#[test]
fn what_happens_once_is_in_one_range_of_time() {
    let mut lines = lock(5, 1, &[16]).to_vec();
    lines.extend([
        (10, 2, "2:30:1", &[16, 0, 99][..]),
        (20, 1, "1:1:1", &[0, 0, 0, 0, 0x500]),
        (21, 1, "1:1:2", &[0, 3]),
        (50, 2, "2:30:2", &[TIMED_OUT, 1]),
        (60, 1, "2:4:0", &[16, 0, 0]),
    ]);
    let counts = |times| {
        let selection = WaitSelection { times, ..WaitSelection::default() };
        let (analysis, _) = selected(&lines, Knowledge::default(), selection);
        (analysis.objects[0].figures.timeouts, analysis.sites.sites[1].calls)
    };
    assert_eq!([counts(0..u64::MAX), counts(0..30), counts(30..u64::MAX)], [(1, 1), (0, 1), (1, 0)]);
}

#[test]
fn an_owner_that_several_waiters_saw_had_the_lock_in_between() {
    let lines = [
        (0, 3, "1:4:0", &[][..]),
        (10, 1, "2:2:1", &[16, 0, 0, 3]),
        (40, 2, "2:2:1", &[16, 0, 0, 3]),
        (70, 1, "2:2:2", &[0, 1]),
        (80, 1, "2:4:0", &[16, 0, 1]),
        (85, 2, "2:2:2", &[0, 1]),
    ];
    let (analysis, _) = analysed_with(&lines, Knowledge { only_blocked: true, ..Knowledge::default() });
    // When it released the lock after that, without a record, is not known.
    assert_eq!(blamed(&analysis, 16), [(1, 0, 10), (3, 0, 30)]);
    assert_eq!(figures(&analysis, 16), (2, 105, 0, 0, 65));
}
