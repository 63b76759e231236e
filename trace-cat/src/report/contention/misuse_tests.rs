//! Programs that misuse objects and threads, and records that only look so.

use super::analysis::Analysis;
use super::analysis_tests::{RecordLine, analysed, analysed_with, lock};
use super::holds::Knowledge;

/// The kinds of misuse with LWP, address of the object and count.
pub(super) fn misuse(analysis: &Analysis) -> Vec<(&'static str, u32, u64, u64)> {
    let address = |object: Option<u32>| object.map_or(0, |object| analysis.objects[object as usize].address);
    let row = |misuse: &crate::report::misuse::Misuse| {
        let lwp = analysis.threads[misuse.thread as usize].lwp;
        (misuse.kind.name(), lwp, address(misuse.object), misuse.count)
    };
    analysis.misuse.rows.iter().map(row).collect()
}

pub(super) fn misuse_in(lines: &[RecordLine]) -> Vec<(&'static str, u32, u64, u64)> {
    misuse(&analysed(lines).0)
}

#[test]
fn an_unlock_by_another_thread_than_the_owner() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.push((20, 2, "2:4:0", &[16, 0, 0]));
    assert_eq!(misuse_in(&lines), [("unlock_not_owner", 2, 16, 1)]);
    // Once for each site.
    let sited = |time: u64| -> Vec<RecordLine> {
        let mut lines = lock(time, 1, &[16]).to_vec();
        lines.push((time + 1, 2, "2:4:0", &[16, 0, 0, 0, 0x500]));
        lines
    };
    assert_eq!(misuse_in(&[sited(10), sited(20), sited(30)].concat()), [("unlock_not_owner", 2, 16, 3)]);
    // The owner's release was lost, or the acquisition of the other one was not recorded.
    let lost = [lines.clone(), lock(30, 3, &[16]).to_vec(), lock(40, 4, &[16]).to_vec()].concat();
    assert_eq!(misuse_in(&lost), []);
    for knowledge in [
        Knowledge { only_blocked: true, ..Knowledge::default() },
        Knowledge { is_selective: true, ..Knowledge::default() },
        Knowledge { complete_from: 15, ..Knowledge::default() },
    ] {
        assert_eq!(misuse(&analysed_with(&lines, knowledge).0), []);
    }
    let mut gap = lock(10, 1, &[16]).to_vec();
    gap.extend([(15, 2, "0:1:0", &[3, 28][..]), (20, 2, "2:4:0", &[16, 0, 0])]);
    assert_eq!(misuse_in(&gap), []);
    // Who got it by a wait for a condition has it.
    let mut waited = lock(10, 1, &[16]).to_vec();
    waited.extend([(11, 1, "3:4:1", &[32, 16][..])]);
    waited.extend(lock(12, 2, &[16]));
    waited.extend([
        (13, 2, "3:2:0", &[32, 0, 1][..]),
        (14, 2, "2:4:0", &[16, 0, 1]),
        (15, 1, "3:4:2", &[0]),
        (16, 1, "2:4:0", &[16, 0, 0]),
    ]);
    assert_eq!(misuse_in(&waited), []);
}

#[test]
fn destructions_of_what_is_in_use() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.push((20, 2, "2:5:0", &[16, libc::EBUSY as u64]));
    assert_eq!(misuse_in(&lines), [("destroy_held", 2, 16, 1)]);
    lines.push((25, 3, "2:2:1", &[16]));
    lines.push((30, 1, "2:5:0", &[16, 0]));
    let expected = [("destroy_held", 2, 16, 2), ("destroy_waited", 1, 16, 1)];
    assert_eq!(misuse_in(&lines), expected);
    // A semaphore, if the thread waits for ever.
    let waits: Vec<RecordLine> = vec![(10, 1, "4:2:1", &[16, 0]), (20, 2, "4:5:0", &[16, 0])];
    assert_eq!(misuse_in(&waits), [("destroy_waited", 2, 16, 1)]);
    let mut woken = waits;
    woken.push((30, 1, "4:2:2", &[0]));
    assert_eq!(misuse_in(&woken), [], "the post that ended it may have been in progress");
    // A post after the destruction ended it: the thread was waiting.
    let posted_late: Vec<RecordLine> = vec![
        (10, 1, "4:2:1", &[16, 0]),
        (20, 2, "4:5:0", &[16, 0]),
        (25, 2, "4:4:0", &[16, 0]),
        (30, 1, "4:2:2", &[0]),
    ];
    assert_eq!(misuse_in(&posted_late), [("destroy_waited", 2, 16, 1)]);
    let posted_before: Vec<RecordLine> = vec![(5, 3, "4:4:0", &[16, 0])];
    assert_eq!(misuse_in(&[posted_before, posted_late.clone()].concat()), [], "that post may have taken effect late");
    let failed: Vec<RecordLine> = vec![(30, 1, "4:2:2", &[libc::EINTR as u64])];
    assert_eq!(misuse_in(&[posted_late[..3].to_vec(), failed].concat()), []);
    let knowledge = Knowledge { complete_from: 2, ..Knowledge::default() };
    assert_eq!(misuse(&analysed_with(&posted_late, knowledge).0), []);
    let after: Vec<RecordLine> =
        vec![(10, 1, "2:2:1", &[16]), (10, 1, "2:2:2", &[0, 0]), (11, 1, "2:4:0", &[16, 0, 0])];
    assert_eq!(misuse_in(&[after, vec![(20, 2, "2:5:0", &[16, 0])]].concat()), []);
}

#[test]
fn a_thread_that_ends_and_holds_a_lock() {
    let mut ended = lock(10, 2, &[16]).to_vec();
    ended.push((20, 2, "1:2:0", &[0]));
    let joined: [RecordLine; 2] = [(30, 1, "1:3:1", &[2]), (31, 1, "1:3:2", &[2, 0, 0])];
    assert_eq!(misuse_in(&ended), [], "destructors may run yet");
    assert_eq!(misuse_in(&[&ended[..], &joined].concat()), [("exit_holding", 2, 16, 1)]);
    // Another thread unlocks it for the one that is gone, or before that is certain.
    let unlocked: [RecordLine; 1] = [(40, 1, "2:4:0", &[16, 0, 0])];
    assert_eq!(misuse_in(&[&ended[..], &joined, &unlocked].concat()), [("exit_holding", 2, 16, 1)]);
    assert_eq!(misuse_in(&[&ended[..], &unlocked].concat()), []);
    let destructor: [RecordLine; 1] = [(25, 2, "2:4:0", &[16, 0, 0])];
    assert_eq!(misuse_in(&[&ended[..], &destructor, &joined].concat()), []);
    // Attributes may have made it robust.
    let initialised: [RecordLine; 1] = [(5, 1, "2:1:0", &[16, 0x7000, 0, 0])];
    assert_eq!(misuse_in(&[&initialised[..], &ended, &joined].concat()), []);
    let plain: [RecordLine; 1] = [(5, 1, "2:1:0", &[16, 0, 0, 0])];
    assert_eq!(misuse_in(&[&plain[..], &ended, &joined].concat()).len(), 1);
}

#[test]
fn a_lock_that_the_thread_has() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.push((20, 1, "2:2:1", &[16]));
    assert_eq!(misuse_in(&lines), [("relock_self", 1, 16, 1)]);
    lines[2] = (20, 1, "2:30:1", &[16, 0, 99]);
    lines.push((30, 1, "2:30:2", &[libc::ETIMEDOUT as u64, 1]));
    assert_eq!(misuse_in(&lines), [("relock_self", 1, 16, 1)]);
    // The release was not recorded.
    lines[3] = (30, 1, "2:30:2", &[0, 1]);
    assert_eq!(misuse_in(&lines), []);
    let mut checked = lock(10, 1, &[16]).to_vec();
    checked.extend([(20, 1, "2:2:1", &[16][..]), (21, 1, "2:2:2", &[libc::EDEADLK as u64, 0])]);
    assert_eq!(misuse_in(&checked), [("error", 1, 16, 1)]);
    let upgrade: Vec<RecordLine> = vec![(10, 1, "5:2:1", &[48]), (10, 1, "5:2:2", &[0, 0, 1]), (11, 1, "5:3:1", &[48])];
    assert_eq!(misuse_in(&upgrade), [("relock_self", 1, 48, 1)]);
    let readers: Vec<RecordLine> = vec![(10, 1, "5:2:1", &[48]), (10, 1, "5:2:2", &[0, 0, 1]), (11, 1, "5:2:1", &[48])];
    assert_eq!(misuse_in(&readers), []);
    let recursive: Vec<RecordLine> =
        vec![(10, 1, "6:2:1", &[48]), (10, 1, "6:2:2", &[0, 0, 1]), (11, 1, "6:2:1", &[48])];
    assert_eq!(misuse_in(&recursive), []);
}

#[test]
fn a_condition_with_two_mutexes() {
    let wait = |time: u64, lwp: u32, mutex: &'static [u64], both: &'static [u64]| -> Vec<RecordLine<'static>> {
        let mut lines = lock(time, lwp, mutex).to_vec();
        lines.push((time + 1, lwp, "3:4:1", both));
        lines
    };
    let both = [wait(10, 1, &[16], &[64, 16]), wait(20, 2, &[32], &[64, 32])].concat();
    assert_eq!(misuse_in(&both), [("cond_two_mutexes", 2, 64, 1)]);
    let signalled: Vec<RecordLine> = vec![(30, 3, "3:2:0", &[64, 0, 1]), (40, 1, "3:4:2", &[0])];
    assert_eq!(misuse_in(&[both.clone(), signalled].concat()), [("cond_two_mutexes", 2, 64, 1)]);
    // The first wait was over, or may have been.
    let returned: Vec<RecordLine> = vec![(40, 1, "3:4:2", &[0])];
    assert_eq!(misuse_in(&[both, returned].concat()), []);
    let before: Vec<RecordLine> = vec![(15, 3, "3:2:0", &[64, 0, 1])];
    assert_eq!(misuse_in(&[wait(10, 1, &[16], &[64, 16]), before, wait(20, 2, &[32], &[64, 32])].concat()), []);
    assert_eq!(misuse_in(&[wait(10, 1, &[16], &[64, 16]), wait(20, 2, &[16], &[64, 16])].concat()), []);
}

#[test]
fn a_condition_with_two_mutexes_until_time_limits() {
    let wait = |time: u64, lwp: u32, mutex: &'static [u64], call: &'static [u64]| -> Vec<RecordLine<'static>> {
        let mut lines = lock(time, lwp, mutex).to_vec();
        lines.push((time + 1, lwp, "3:5:1", call));
        lines
    };
    let ends = |time: u64, lwp: u32, result: &'static [u64]| vec![(time, lwp, "3:5:2", result)];
    const TIMED_OUT: &[u64] = &[libc::ETIMEDOUT as u64];
    // Both end with their time limits, at 1 s and 2 s.
    let both = [wait(10, 1, &[16], &[64, 16, 1, 0]), wait(20, 2, &[32], &[64, 32, 2, 0])].concat();
    let out = [ends(1_000_000_005, 1, TIMED_OUT), ends(2_000_000_005, 2, TIMED_OUT)].concat();
    assert_eq!(misuse_in(&[both.clone(), out].concat()), [("cond_two_mutexes", 2, 64, 1)]);
    assert_eq!(misuse_in(&both), [("cond_two_mutexes", 2, 64, 1)], "the first one waits in the end");
    // The limit of the first had passed, and it only had no mutex yet.
    let passed = [wait(10, 1, &[16], &[64, 16, 0, 15]), wait(20, 2, &[32], &[64, 32, 2, 0])].concat();
    assert_eq!(misuse_in(&[passed.clone(), ends(40, 1, TIMED_OUT)].concat()), []);
    assert_eq!(misuse_in(&passed), []);
    // The limit is one of another clock than that of the records.
    assert_eq!(misuse_in(&[both.clone(), ends(40, 1, TIMED_OUT)].concat()), []);
    // It was woken, nobody knows by whom.
    assert_eq!(misuse_in(&[both, ends(1_000_000_005, 1, &[0])].concat()), []);
    let by_clock = [wait(10, 1, &[16], &[64, 16, 1, 0]), wait(20, 2, &[32], &[64, 32, 2, 0])].concat();
    let mut by_clock: Vec<RecordLine> = by_clock.into_iter().collect();
    by_clock[2] = (11, 1, "3:30:1", &[64, 16, 0, 1_000_000_000]);
    by_clock.push((1_000_000_005, 1, "3:30:2", TIMED_OUT));
    assert_eq!(misuse_in(&by_clock), [("cond_two_mutexes", 2, 64, 1)]);
}

#[test]
fn threads_that_are_joined_twice_or_never() {
    let thread: Vec<RecordLine> = vec![
        (10, 1, "1:1:1", &[0x70, 0, 0x500]),
        (11, 1, "1:1:2", &[0, 2]),
        (12, 2, "1:30:0", &[0x500]),
        (20, 2, "1:2:0", &[0]),
    ];
    let join = |time: u64| -> Vec<RecordLine> { vec![(time, 1, "1:3:1", &[2]), (time + 1, 1, "1:3:2", &[2, 0, 0])] };
    let exit: Vec<RecordLine> = vec![(90, 1, "11:4:0", &[0])];
    assert_eq!(misuse_in(&[thread.clone(), exit.clone()].concat()), [("never_joined", 2, 0, 1)]);
    assert_eq!(misuse_in(&[thread.clone(), join(30), exit.clone()].concat()), []);
    assert_eq!(misuse_in(&thread), [], "the process did not exit");
    let detached: Vec<RecordLine> = vec![(30, 1, "1:31:0", &[2, 0])];
    assert_eq!(misuse_in(&[thread.clone(), detached, exit.clone()].concat()), []);
    let mut detached_at_once = thread.clone();
    detached_at_once.insert(2, (11, 1, "1:31:0", &[2, 0]));
    assert_eq!(misuse_in(&[detached_at_once, exit.clone()].concat()), []);
    let mut with_attributes = thread.clone();
    with_attributes[0] = (10, 1, "1:1:1", &[0x70, 0x80, 0x500]);
    assert_eq!(misuse_in(&[with_attributes, exit.clone()].concat()), []);
    assert_eq!(misuse_in(&[thread.clone(), join(30), join(40), exit.clone()].concat()), [("join_twice", 1, 0, 1)]);
    // A new thread has the pthread_t, although it has no record yet.
    let other: Vec<RecordLine> = vec![(35, 1, "1:1:1", &[0x70, 0, 0x500]), (36, 1, "1:1:2", &[0, 2])];
    assert_eq!(misuse_in(&[thread, join(30), other, join(40), exit].concat()), []);
}

#[test]
fn errors_that_functions_returned() {
    let lines: Vec<RecordLine> = vec![
        (10, 1, "2:4:0", &[16, libc::EPERM as u64, 0, 0, 0x500]),
        (11, 1, "2:4:0", &[16, libc::EPERM as u64, 0, 0, 0x500]),
        (12, 1, "2:4:0", &[32, libc::EPERM as u64, 0, 0, 0x600]),
        (13, 1, "1:3:1", &[7]),
        (14, 1, "1:3:2", &[7, 0, libc::ESRCH as u64]),
        (15, 1, "2:3:0", &[16, libc::EBUSY as u64]),
        (16, 1, "1:38:1", &[64, 0x500]),
        (17, 1, "1:38:2", &[1]),
        (18, 1, "4:31:0", &[0, 0x40, 0o600, 1, libc::EINVAL as u64]),
    ];
    let knowledge = Knowledge { only_blocked: true, ..Knowledge::default() };
    let analysis = analysed_with(&lines, knowledge).0;
    // The first mutex is known only from the second record on.
    let errors = [("error", 1, 0, 2), ("error", 1, 0, 1), ("error", 1, 0, 1), ("error", 1, 0, 1)];
    assert_eq!(misuse(&analysis), errors);
    // What sema_open returned is no address.
    let has_site = analysis.misuse.rows.iter().map(|row| row.site != 0);
    assert_eq!(has_site.collect::<Vec<_>>(), [true, true, false, false]);
}
