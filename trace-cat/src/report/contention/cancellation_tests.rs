//! What the analysis makes of threads that are cancelled while they wait.

use super::analysis_tests::{RecordLine, analysed, analysed_with, lock, record, wrong};
use super::chain_ends::ChainEnd;
use super::holds::Knowledge;
use super::misuse_tests::{misuse, misuse_in};

/// Who is cancelled needs its mutex until its call ends, and waits for the condition no more.
#[test]
fn a_condition_with_two_mutexes_of_which_one_waiter_is_cancelled() {
    let wait = |time: u64, lwp: u32, mutex: &'static [u64], both: &'static [u64]| -> Vec<RecordLine<'static>> {
        let mut lines = lock(time, lwp, mutex).to_vec();
        lines.push((time + 1, lwp, "3:4:1", both));
        lines
    };
    let [first, second] = [wait(10, 1, &[16], &[64, 16]), wait(20, 2, &[32], &[64, 32])];
    let cancel = |time: u64| -> Vec<RecordLine<'static>> { vec![(time, 3, "1:32:0", &[1, 0])] };
    let found = |parts: &[&[RecordLine<'static>]]| misuse_in(&parts.concat());
    let is_misuse = [("cond_two_mutexes", 2, 64, 1)];
    let ended: [RecordLine; 1] = [(40, 1, "3:4:2", &[libc::ECANCELED as u64])];
    for end in [&ended[..], &[]] {
        assert_eq!(found(&[&first, &cancel(15), &second, end]), [], "{end:?}");
        assert_eq!(found(&[&first, &second, &cancel(25), end]), is_misuse, "it waited until it was cancelled: {end:?}");
    }
    // It does not let itself be cancelled.
    let woken: [RecordLine; 2] = [(30, 3, "3:2:0", &[64, 0, 1]), (40, 1, "3:4:2", &[0])];
    assert_eq!(found(&[&first, &cancel(15), &second, &woken]), is_misuse);
    let failed: [RecordLine; 1] = [(15, 3, "1:32:0", &[1, libc::ESRCH as u64])];
    assert!(found(&[&first, &failed, &second]).contains(&is_misuse[0]));
    let knowledge = Knowledge { misses_cancels: true, ..Knowledge::default() };
    assert_eq!(misuse(&analysed_with(&[first, second].concat(), knowledge).0), []);
}

/// Its cleanup handlers may unlock what it has.
#[test]
fn who_waits_for_a_thread_that_is_cancelled_in_a_wait_is_not_stuck() {
    let waits = [lock(10, 1, &[16]), lock(11, 1, &[48])].concat();
    for (call, wait) in [("3:4:1", &[80, 48][..]), ("4:2:1", &[80, 0])] {
        let found = |cancel: &[RecordLine<'static>]| {
            let records = [&waits[..], &[(15, 1, call, wait)], cancel, &[(30, 2, "2:2:1", &[16])]].concat();
            let (analysis, graph) = analysed(&records);
            wrong(&analysis, &graph)
        };
        assert_eq!(found(&[]), (vec![], vec![(2, 1)]));
        assert_eq!(found(&[(20, 3, "1:32:0", &[1, 0])]), (vec![], vec![]), "{call}");
    }
}

/// Who joins a thread that it has cancelled waits for ever, if that does not let itself be cancelled, and else not: nobody knows.
#[test]
fn who_waits_for_a_thread_that_is_cancelled_in_a_wait_may_be_stuck() {
    let ends = |wait: RecordLine<'static>| {
        let (_, graph) = analysed(&[(5, 1, "1:39:0", &[1]), wait, (20, 2, "1:32:0", &[1, 0]), (30, 2, "1:3:1", &[1])]);
        assert!(graph.stuck.is_empty() && graph.deadlocks.is_empty(), "{graph:?}");
        graph.perhaps_stuck.iter().map(|stuck| stuck.end).collect::<Vec<_>>()
    };
    for (event, arguments) in [("3:4:1", &[80, 48][..]), ("4:2:1", &[80, 0]), ("1:3:1", &[7])] {
        let ends = ends((10, 1, event, arguments));
        assert!(matches!(ends[..], [ChainEnd::Cancelled(0, _)]), "{event}: {ends:?}");
    }
    let joined = |state: &'static [u64]| {
        let begin: [RecordLine; 2] = [(4, 2, "1:39:0", &[2]), (5, 1, "1:33:0", state)];
        let joins: [RecordLine; 3] = [(10, 1, "1:3:1", &[2]), (20, 2, "1:32:0", &[1, 0]), (30, 2, "1:3:1", &[1])];
        let (analysis, graph) = analysed(&[&begin[..], &joins].concat());
        (wrong(&analysis, &graph).0, graph.perhaps_stuck.len())
    };
    assert_eq!(joined(&[1, 0, 0]), (vec![vec![2, 1]], 0), "it does not let itself be cancelled");
    assert_eq!(joined(&[0, 0, 0]), (vec![], 1));
    assert_eq!(joined(&[1, 0, 22]), (vec![], 1), "the call failed");
    assert_eq!(ends((10, 1, "4:30:1", &[80, 0, 0, 99])), [], "its limit ends the wait");
    assert_eq!(ends((10, 1, "2:2:1", &[80])), [], "a cancellation does not");
}

/// Thread 1 waits for a condition; thread 2 takes the mutex, cancels thread 1 and joins it.
#[test]
fn who_is_cancelled_needs_its_mutex() {
    let wait = [&lock(10, 1, &[16])[..], &[(11, 1, "3:4:1", &[64, 16])]].concat();
    let cancel: [RecordLine; 2] = [(30, 2, "1:32:0", &[1, 0]), (31, 2, "1:3:1", &[1])];
    let deadlock = [&wait[..], &lock(20, 2, &[16]), &cancel].concat();
    let (analysis, graph) = analysed(&deadlock);
    assert_eq!(wrong(&analysis, &graph), (vec![vec![1, 2]], vec![]));
    let (analysis, graph) = analysed(&[&wait[..], &lock(20, 2, &[16]), &[(25, 2, "2:4:0", &[16])], &cancel].concat());
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![]));
    // It calls pthread_once, which unwinding does, or code to which it has jumped.
    let once: [RecordLine; 2] = [(40, 1, "1:38:1", &[96, 5, 0, 0, 0x700]), (41, 1, "1:38:2", &[0])];
    let found = |is_unwinding: bool, more: &[RecordLine<'static>]| {
        let mut analysis = super::Analysis::new(Default::default(), super::WaitSelection::default());
        for line in [&deadlock[..], &once, more].concat() {
            analysis.add(&record(line));
            let asked = analysis.unwinding.take();
            assert_eq!(asked.is_some(), line.0 == 40, "{line:?}");
            asked.filter(|_| is_unwinding).into_iter().for_each(|(thread, _)| analysis.unwind(thread));
        }
        let graph = analysis.finish(&[]);
        wrong(&analysis, &graph)
    };
    assert_eq!(found(true, &[]), (vec![vec![1, 2]], vec![]));
    assert_eq!(found(false, &[]), (vec![], vec![]));
    assert_eq!(found(true, &[(50, 1, "2:3:0", &[48, 0])]), (vec![], vec![]), "it has left the wait");
}
