//! Locks with priority inheritance, and waiters that are moved, against programs whose kernel is simulated.

use std::collections::{BTreeMap, HashMap};

use super::analysis::Analysis;
use super::analysis_tests::{RecordLine, TIMED_OUT, analysed, blamed, figures, record, wakers};
use super::numeric_record::NumericRecord;
use super::timeline_event::TimelineEvent;
use super::wait_selection::WaitSelection;
use crate::testing::seeded_random::SeededRandom;

const EPERM: u64 = libc::EPERM as u64;
const FAILED: u64 = u64::MAX;

#[test]
fn who_unlocks_a_word_with_priority_inheritance_had_it() {
    let (analysis, _) = analysed(&[
        (1, 1, "10:3:1", &[64, 0x86, 0, 0, 0x1000]),
        (21, 2, "10:3:1", &[64, 0x87, 0, 0, 0x2000]),
        (22, 2, "10:3:2", &[0, 0]),
        (26, 1, "10:3:2", &[0, 0]),
    ]);
    assert_eq!((figures(&analysis, 64), blamed(&analysis, 64)), ((1, 25, 0, 5, 0), vec![(2, 0, 20)]));
    assert_eq!(analysis.objects[0].kind_name(), "PI futex");
}

#[test]
fn each_owner_has_its_part_of_a_wait() {
    let lines: &[RecordLine] = &[
        (1, 1, "10:3:1", &[64, 0x86, 0, 0, 0x1000]),
        (11, 3, "10:3:1", &[64, 0x86, 0, 0, 0x1000]),
        (21, 2, "10:3:1", &[64, 0x87, 0, 0, 0x2000]),
        // The kernel gives it to the first, whose record may be earlier than that of the unlock's return.
        (24, 1, "10:3:2", &[0, 0]),
        (25, 2, "10:3:2", &[0, 0]),
        (50, 1, "10:3:1", &[64, 0x87, 0, 0, 0x2000]),
        (51, 1, "10:3:2", &[0, 0]),
        (53, 3, "10:3:2", &[0, 0]),
    ];
    let (analysis, _) = analysed(lines);
    assert_eq!(figures(&analysis, 64), (2, 23 + 42, 0, 3 + 3 + 3, 0));
    assert_eq!(blamed(&analysis, 64), [(1, 0x1000, 26), (2, 0, 20 + 10)]);
    assert_eq!(wakers(&analysis, 64), [(1, 1), (2, 1)]);
}

#[test]
fn nobody_is_said_to_own_what_only_the_word_shows() {
    // The first gives the lock back without a call, and somebody else takes it so.
    let (analysis, _) = analysed(&[
        (1, 1, "10:3:1", &[64, 0x86, 0, 0, 0x1000]),
        (5, 2, "10:3:1", &[64, 0x87, 0, 0, 0x2000]),
        (6, 2, "10:3:2", &[0, 0]),
        (7, 1, "10:3:2", &[0, 0]),
        (30, 3, "10:3:1", &[64, 0x86, 0, 9, 0x1000]),
        (40, 3, "10:3:2", &[FAILED, TIMED_OUT]),
        (41, 3, "10:3:1", &[64, 0x86, 0, 9, 0x1000]),
    ]);
    assert_eq!(figures(&analysis, 64), (3, 6 + 10, 0, 2, 10));
    assert_eq!(blamed(&analysis, 64), [(2, 0, 4)]);
    // Here the one that waited gave it back by a call that nobody waited for.
    let (analysis, _) = analysed(&[
        (1, 1, "10:3:1", &[64, 0x87, 0, 0, 0x1000]),
        (2, 1, "10:3:2", &[0, 0]),
        (30, 3, "10:3:1", &[64, 0x86, 0, 0, 0x1000]),
        (40, 3, "10:3:2", &[0, 0]),
    ]);
    assert_eq!((figures(&analysis, 64), blamed(&analysis, 64)), ((1, 10, 0, 0, 10), vec![]));
    // Nor is a thread that has no right to unlock it.
    let (analysis, _) = analysed(&[
        (1, 1, "10:3:1", &[64, 0x86, 0, 0, 0x1000]),
        (5, 2, "10:3:1", &[64, 0x87, 0, 0, 0x2000]),
        (6, 2, "10:3:2", &[FAILED, EPERM]),
        (30, 1, "10:3:2", &[0, 0]),
    ]);
    assert_eq!((figures(&analysis, 64), blamed(&analysis, 64)), ((1, 29, 0, 0, 29), vec![]));
    // What a thread has so is no misuse, and no part of the order of locks.
    let (analysis, _) = analysed(&[
        (1, 1, "10:3:1", &[64, 0x88, 0, 0, 0x1000]),
        (2, 1, "10:3:2", &[0, 0]),
        (3, 1, "2:2:1", &[96]),
        (3, 1, "2:2:2", &[0, 0]),
        (4, 1, "2:4:0", &[96, 0]),
        (5, 1, "10:3:1", &[72, 0x88, 0, 0, 0x1000]),
        (6, 1, "10:3:2", &[FAILED, libc::EAGAIN as u64]),
        (7, 1, "1:2:0", &[0]),
    ]);
    assert!(analysis.misuse.rows.is_empty() && !analysis.objects.iter().any(|object| object.is_inner));
    let tries = analysis.objects.iter().map(|object| (object.address, object.figures.failed_tries));
    assert_eq!(tries.collect::<Vec<_>>(), [(64, 0), (96, 0), (72, 1)]);
}

#[test]
fn who_waits_for_a_condition_and_then_for_a_lock_has_that() {
    let (analysis, _) = analysed(&[
        (1, 1, "10:3:1", &[64, 0x8b, 0, 96, 0x1000]),
        (10, 2, "10:3:1", &[64, 0x8c, 1, 96, 0x2000]),
        (11, 2, "10:3:2", &[1, 0]),
        (12, 3, "10:3:1", &[96, 0x86, 0, 0, 0x3000]),
        (20, 2, "10:3:1", &[96, 0x87, 0, 0, 0x4000]),
        (21, 2, "10:3:2", &[0, 0]),
        (22, 1, "10:3:2", &[0, 0]),
        (40, 1, "10:3:1", &[96, 0x87, 0, 0, 0x4000]),
        (41, 1, "10:3:2", &[0, 0]),
        (42, 3, "10:3:2", &[0, 0]),
    ]);
    assert_eq!([64, 96].map(|address| figures(&analysis, address)), [(1, 0, 21, 0, 0), (1, 30, 0, 4, 0)]);
    assert_eq!(blamed(&analysis, 96), [(1, 0x1000, 18), (2, 0, 8)]);
}

/// By waiting thread and the time of its return: who woke it and when.
type Wakers = BTreeMap<(u32, u64), Option<(u32, u64)>>;

/// The wakers that the analysis finds.
fn found_wakers(records: &[NumericRecord]) -> Wakers {
    let mut analysis = Analysis::new(HashMap::new(), WaitSelection::default());
    analysis.timeline = Some(Vec::new());
    records.iter().for_each(|record| analysis.add(record));
    analysis.finish(&[]);
    let lwp = |thread: u32| analysis.threads[thread as usize].lwp;
    let waits = analysis.timeline.iter().flatten().filter_map(|event| match event {
        TimelineEvent::Wait(wait) if !wait.is_open => Some(wait),
        _ => None,
    });
    waits.map(|wait| ((lwp(wait.thread), wait.to), wait.waker.map(|waker| (lwp(waker.thread), waker.time)))).collect()
}

/// A program that waits for three words, wakes and moves waiters, and the waker of each wait by the kernel's queues.
fn random_program(random: &mut SeededRandom) -> (Vec<NumericRecord>, Wakers) {
    const WORDS: usize = 3;
    let word = |index: usize| 64 + 8 * index as u64;
    let mut queues: [Vec<u32>; WORDS] = Default::default();
    // What a thread does in its next step: returns from a wait that this call ended, or from a call with this result.
    let mut woken: Vec<(u32, Option<(u32, u64)>)> = Vec::new();
    let mut calls: Vec<(u32, u64, [u64; 2])> = Vec::new();
    let (mut records, mut wakers, mut time) = (Vec::new(), Wakers::new(), 0);
    for _ in 0..400 {
        time += 1 + random.below(9) as u64;
        let mut add = |lwp: u32, event: &str, arguments: &[u64]| records.push(record((time, lwp, event, arguments)));
        if !woken.is_empty() && random.below(3) == 0 {
            // In the order of their wake-ups, by which the report pairs them.
            let (lwp, waker) = woken.remove(0);
            add(lwp, "10:1:2", &[0, 0]);
            wakers.insert((lwp, time), waker);
            continue;
        }
        if !calls.is_empty() && random.below(2) == 0 {
            let (lwp, _, results) = calls.remove(random.below(calls.len()));
            add(lwp, "10:3:2", &results);
            continue;
        }
        let is_busy = |lwp: u32| {
            queues.iter().flatten().any(|waiter| *waiter == lwp)
                || woken.iter().any(|(waiter, _)| *waiter == lwp)
                || calls.iter().any(|(caller, ..)| *caller == lwp)
        };
        let Some(lwp) = (1..9).map(|_| 1 + random.below(8) as u32).find(|lwp| !is_busy(*lwp)) else { continue };
        let (from, to) = (random.below(WORDS), random.below(WORDS));
        // What moves waiters while another such call is in progress is beyond what the records show.
        let waiting = queues.iter().map(Vec::len).sum::<usize>();
        match random.below(if calls.is_empty() { 8 } else { 4 }) {
            0..4 if waiting < 6 => {
                add(lwp, "10:1:1", &[word(from), 0x80, 0, 0, 0]);
                queues[from].push(lwp);
            }
            0..=4 if calls.is_empty() => {
                let count = queues[from].len().min(1 + random.below(2));
                add(lwp, "10:2:0", &[word(from), 0x81, count as u64, count as u64, 0]);
                woken.extend(queues[from].drain(..count).map(|waiter| (waiter, Some((lwp, time)))));
            }
            5..8 if from != to => {
                let is_refused = random.below(4) == 0;
                let (wakes, moves) = (random.below(2), [1, usize::MAX][random.below(2)]);
                add(lwp, "10:3:1", &[word(from), [0x83, 0x84][random.below(2)], wakes as u64, word(to), 0]);
                if is_refused {
                    calls.push((lwp, time, [FAILED, libc::EAGAIN as u64]));
                    continue;
                }
                let count = queues[from].len().min(wakes);
                woken.extend(queues[from].drain(..count).map(|waiter| (waiter, Some((lwp, time)))));
                let moved = queues[from].len().min(moves);
                let waiters: Vec<u32> = queues[from].drain(..moved).collect();
                queues[to].extend(waiters);
                calls.push((lwp, time, [(count + moved) as u64, 0]));
            }
            _ => {}
        }
    }
    (records, wakers)
}

/// Where the kernel's order is that of the records, each wait has the waker that it had, whatever was moved meanwhile.
#[test]
fn moved_waiters_have_their_wakers() {
    let mut random = SeededRandom::seeded("requeue", 9);
    let (mut waits, mut moves) = (0, 0);
    for round in 0..300 {
        let (records, wakers) = random_program(&mut random);
        let found = found_wakers(&records);
        assert_eq!(found, wakers, "round {round}");
        waits += wakers.len();
        moves += records.iter().filter(|record| (record.event, record.which) == ((10, 3), 2)).count();
    }
    assert!(waits > 5000 && moves > 2000, "{waits} {moves}");
}
