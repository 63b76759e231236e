//! What the analysis makes of threads that are cancelled while they wait.

use super::analysis_tests::{RecordLine, analysed, analysed_with, lock, wrong};
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
