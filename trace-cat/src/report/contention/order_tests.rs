//! Programs that take locks in different orders, and whether that is a possible deadlock.

use super::analysis::Analysis;
use super::analysis_tests::{RecordLine, analysed, analysed_with};
use super::holds::Knowledge;
use crate::report::lock_order::LockCycle;

/// LWP does this to the mutex at an address: `+` locks it, `-` unlocks it, `?` tries to lock it, `t` locks it with a time limit. An
/// rwlock is at an address from 0x100 on; `r` locks it for reading.
type Act = (u32, char, u64);

const FIRST: u64 = 0x10;
const SECOND: u64 = 0x20;
const THIRD: u64 = 0x30;
const GATE: u64 = 0x40;
const RW: u64 = 0x100;
const OTHER_RW: u64 = 0x110;

/// The arguments of records with an object and nothing else.
fn arguments(address: u64) -> &'static [u64] {
    match address {
        FIRST => &[FIRST],
        SECOND => &[SECOND],
        THIRD => &[THIRD],
        GATE => &[GATE],
        RW => &[RW],
        OTHER_RW => &[OTHER_RW],
        thread => [&[0][..], &[1], &[2], &[3], &[4], &[5]][thread as usize],
    }
}

/// The lines of acts, which begin at a time.
fn lines(mut time: u64, acts: &[Act]) -> Vec<RecordLine<'static>> {
    let mut lines = Vec::new();
    for &(lwp, act, address) in acts {
        time += 1;
        let is_rwlock = address >= RW;
        let pair = match (act, is_rwlock) {
            ('+', false) => ["2:2:1", "2:2:2"],
            ('+', true) => ["5:3:1", "5:3:2"],
            ('r', _) => ["5:2:1", "5:2:2"],
            ('t', _) => ["2:30:1", "2:30:2"],
            ('-', false) => ["2:4:0", ""],
            ('-', true) => ["5:4:0", ""],
            ('?', _) => ["2:3:0", ""],
            // Creation, exit and join of a thread; a wait at a barrier.
            ('c', _) => ["1:1:1", "1:1:2"],
            ('b', _) => ["1:30:0", ""],
            ('x', _) => ["1:2:0", ""],
            ('j', _) => ["1:3:1", "1:3:2"],
            _ => panic!("{act}"),
        };
        lines.push((time, lwp, pair[0], arguments(address)));
        match act {
            'c' => lines.push((time, lwp, pair[1], [&[0, 0][..], &[0, 1], &[0, 2], &[0, 3]][address as usize])),
            _ if !pair[1].is_empty() => lines.push((time, lwp, pair[1], &[0, 0])),
            _ => {}
        }
    }
    lines
}

/// The objects of each possible deadlock, and its threads.
fn cycles(analysis: &Analysis) -> Vec<(Vec<u64>, Vec<u32>)> {
    let cycle = |cycle: &LockCycle| {
        let mut steps: Vec<(u64, u32)> = cycle
            .steps
            .iter()
            .map(|step| {
                let address = analysis.objects[step.from as usize].address;
                (address, analysis.threads[step.thread as usize].lwp)
            })
            .collect();
        // It begins with the object that was used first.
        let first = (0..steps.len()).min_by_key(|index| steps[*index]).unwrap();
        steps.rotate_left(first);
        steps.into_iter().unzip()
    };
    analysis.cycles.iter().map(cycle).collect()
}

fn cycles_of(acts: &[Act]) -> Vec<(Vec<u64>, Vec<u32>)> {
    cycles(&analysed(&lines(100, acts)).0)
}

/// A thread takes one lock inside another.
fn nested(lwp: u32, outer: u64, inner: u64) -> [Act; 4] {
    [(lwp, '+', outer), (lwp, '+', inner), (lwp, '-', inner), (lwp, '-', outer)]
}

#[test]
fn locks_in_different_orders_are_a_possible_deadlock() {
    let acts = [nested(1, FIRST, SECOND), nested(1, FIRST, SECOND), nested(2, SECOND, FIRST)].concat();
    let (analysis, graph) = analysed(&lines(100, &acts));
    assert_eq!(cycles(&analysis), [(vec![FIRST, SECOND], vec![1, 2])]);
    assert_eq!(analysis.cycles[0].steps.iter().map(|step| step.count).collect::<Vec<_>>(), [2, 1]);
    assert!(graph.deadlocks.is_empty());
    let acts = [nested(1, FIRST, SECOND), nested(2, SECOND, THIRD), nested(3, THIRD, FIRST)].concat();
    assert_eq!(cycles_of(&acts), [(vec![FIRST, SECOND, THIRD], vec![1, 2, 3])]);
    // One for all locks that are in cycles with each other: the shortest.
    let more = [acts, nested(2, THIRD, SECOND).to_vec(), nested(4, SECOND, THIRD).to_vec()].concat();
    assert_eq!(cycles_of(&more), [(vec![SECOND, THIRD], vec![4, 2])]);
}

#[test]
fn a_cycle_needs_a_thread_for_each_step() {
    assert_eq!(cycles_of(&[nested(1, FIRST, SECOND), nested(1, SECOND, FIRST)].concat()), []);
    let acts = [nested(1, FIRST, SECOND), nested(2, SECOND, THIRD), nested(1, THIRD, FIRST)].concat();
    assert_eq!(cycles_of(&acts), []);
}

#[test]
fn a_gate_lock_keeps_orders_apart() {
    let gated =
        |lwp: u32, outer, inner| [&[(lwp, '+', GATE)][..], &nested(lwp, outer, inner), &[(lwp, '-', GATE)]].concat();
    assert_eq!(cycles_of(&[gated(1, FIRST, SECOND), gated(2, SECOND, FIRST)].concat()), []);
    // One thread does it once without the gate.
    let acts = [gated(1, FIRST, SECOND), gated(2, SECOND, FIRST), nested(3, SECOND, FIRST).to_vec()].concat();
    assert_eq!(cycles_of(&acts), [(vec![FIRST, SECOND], vec![1, 3])]);
    // Readers share a gate; a writer does not.
    let shared =
        |lwp: u32, how, outer, inner| [&[(lwp, how, RW)][..], &nested(lwp, outer, inner), &[(lwp, '-', RW)]].concat();
    let readers = [shared(1, 'r', FIRST, SECOND), shared(2, 'r', SECOND, FIRST)].concat();
    assert_eq!(cycles_of(&readers), [(vec![FIRST, SECOND], vec![1, 2])]);
    let writer = [shared(1, 'r', FIRST, SECOND), shared(2, '+', SECOND, FIRST)].concat();
    assert_eq!(cycles_of(&writer), []);
}

#[test]
fn tries_and_time_limits_do_not_wait_for_ever() {
    for act in ['?', 't'] {
        let second = [(2, '+', SECOND), (2, act, FIRST), (2, '-', FIRST), (2, '-', SECOND)];
        assert_eq!(cycles_of(&[nested(1, FIRST, SECOND), second].concat()), [], "{act}");
        // What is taken so is held.
        let second = [(2, act, SECOND), (2, '+', FIRST), (2, '-', FIRST), (2, '-', SECOND)];
        let expected = [(vec![FIRST, SECOND], vec![1, 2])];
        assert_eq!(cycles_of(&[nested(1, FIRST, SECOND), second].concat()), expected, "{act}");
    }
}

#[test]
fn readers_do_not_wait_for_readers() {
    let read = |lwp: u32, outer: char, first: u64, inner: char, second: u64| {
        [(lwp, outer, first), (lwp, inner, second), (lwp, '-', second), (lwp, '-', first)]
    };
    assert_eq!(cycles_of(&[read(1, 'r', RW, 'r', OTHER_RW), read(2, 'r', OTHER_RW, 'r', RW)].concat()), []);
    assert_eq!(cycles_of(&[read(1, 'r', RW, '+', FIRST), read(2, '+', FIRST, 'r', RW)].concat()), []);
    let expected = [(vec![FIRST, RW], vec![2, 1])];
    assert_eq!(cycles_of(&[read(1, 'r', RW, '+', FIRST), read(2, '+', FIRST, '+', RW)].concat()), expected);
    let expected = [(vec![RW, OTHER_RW], vec![1, 2])];
    assert_eq!(cycles_of(&[read(1, 'r', RW, '+', OTHER_RW), read(2, 'r', OTHER_RW, '+', RW)].concat()), expected);
}

#[test]
fn creations_and_joins_keep_orders_apart() {
    // Main does one before it creates the thread, or after it has joined it.
    let thread = [&[(2, 'b', 0)][..], &nested(2, SECOND, FIRST), &[(2, 'x', 0)]].concat();
    let created = [nested(1, FIRST, SECOND).to_vec(), vec![(1, 'c', 2)], thread.clone()].concat();
    assert_eq!(cycles_of(&created), []);
    let joined = [vec![(1, 'c', 2)], thread.clone(), vec![(1, 'j', 2)], nested(1, FIRST, SECOND).to_vec()].concat();
    assert_eq!(cycles_of(&joined), []);
    let between = [vec![(1, 'c', 2)], thread.clone(), nested(1, FIRST, SECOND).to_vec(), vec![(1, 'j', 2)]].concat();
    assert_eq!(cycles_of(&between), [(vec![FIRST, SECOND], vec![1, 2])]);
    // Main joins one thread and creates the next one.
    let other = [&[(3, 'b', 0)][..], &nested(3, FIRST, SECOND), &[(3, 'x', 0)]].concat();
    let one_by_one = [vec![(1, 'c', 2)], thread.clone(), vec![(1, 'j', 2), (1, 'c', 3)], other.clone()].concat();
    assert_eq!(cycles_of(&one_by_one), []);
    let together = [vec![(1, 'c', 2)], thread, vec![(1, 'c', 3)], other].concat();
    assert_eq!(cycles_of(&together), [(vec![FIRST, SECOND], vec![3, 2])]);
}

#[test]
fn barriers_keep_orders_apart() {
    let barrier = |time: u64| -> Vec<RecordLine> {
        vec![
            (time, 1, "7:2:1", &[0x90, 2]),
            (time + 1, 2, "7:2:1", &[0x90, 1]),
            (time + 1, 1, "7:2:2", &[0]),
            (time + 2, 2, "7:2:2", &[libc::PTHREAD_BARRIER_SERIAL_THREAD as u64]),
        ]
    };
    let mut all = Vec::new();
    for round in 0..100 {
        all.extend(lines(1000 + 100 * round, &nested(1, FIRST, SECOND)));
        all.extend(barrier(1010 + 100 * round));
        all.extend(lines(1050 + 100 * round, &nested(2, SECOND, FIRST)));
        all.extend(barrier(1060 + 100 * round));
    }
    assert_eq!(cycles(&analysed(&all).0), []);
    all.extend(lines(1_000_000, &nested(1, FIRST, SECOND)));
    assert_eq!(cycles(&analysed(&all).0), [], "it is after all others");
    all.extend(lines(1_000_010, &nested(2, SECOND, FIRST)));
    assert_eq!(cycles(&analysed(&all).0).len(), 1);
}

#[test]
fn other_objects_at_the_same_addresses_have_an_order_of_their_own() {
    let first = lines(100, &nested(1, FIRST, SECOND));
    let last = lines(300, &nested(2, SECOND, FIRST));
    let destroyed: [RecordLine; 1] = [(200, 1, "2:5:0", &[FIRST, 0])];
    let initialised: [RecordLine; 1] = [(200, 1, "2:1:0", &[FIRST, 0, 0, 0])];
    for (between, count) in [(&[][..], 1), (&destroyed, 0), (&initialised, 0)] {
        let all = [&first, between, &last].concat();
        assert_eq!(cycles(&analysed(&all).0).len(), count);
    }
}

#[test]
fn a_wait_for_a_condition_takes_its_mutex_again() {
    let mut all = lines(100, &[(1, '+', FIRST), (1, '+', SECOND)]);
    // It waits with the outer mutex, and has it again inside the other one.
    all.extend([(110, 1, "3:4:1", &[0x90, FIRST][..]), (120, 1, "3:4:2", &[0])]);
    all.extend(lines(130, &[(1, '-', FIRST), (1, '-', SECOND)]));
    assert_eq!(cycles(&analysed(&all).0), [], "one thread");
    all.extend(lines(140, &nested(2, FIRST, SECOND)));
    assert_eq!(cycles(&analysed(&all).0), [(vec![FIRST, SECOND], vec![2, 1])]);
}

#[test]
fn recursive_acquisitions_have_no_order() {
    let all: Vec<RecordLine> = vec![
        (10, 1, "6:2:1", &[FIRST]),
        (10, 1, "6:2:2", &[0, 0, 1]),
        (11, 1, "2:2:1", &[SECOND]),
        (11, 1, "2:2:2", &[0, 0]),
        (12, 1, "6:2:1", &[FIRST]),
        (12, 1, "6:2:2", &[0, 0, 2]),
        (13, 2, "6:2:1", &[FIRST]),
        (20, 3, "2:2:1", &[THIRD]),
    ];
    assert_eq!(cycles(&analysed(&all).0), []);
}

#[test]
fn what_threads_wait_for_in_the_end_has_an_order() {
    let acts = [&nested(1, FIRST, SECOND)[..], &[(3, '+', FIRST), (2, '+', SECOND)]].concat();
    let mut all = lines(100, &acts);
    all.push((200, 2, "2:2:1", &[FIRST]));
    assert_eq!(cycles(&analysed(&all).0), [(vec![FIRST, SECOND], vec![1, 2])]);
}

#[test]
fn missing_records_make_no_possible_deadlock() {
    let acts = [nested(1, FIRST, SECOND), nested(2, SECOND, FIRST)].concat();
    let of = |knowledge| cycles(&analysed_with(&lines(100, &acts), knowledge).0).len();
    assert_eq!(of(Knowledge::default()), 1);
    assert_eq!(of(Knowledge { only_blocked: true, ..Knowledge::default() }), 0);
    assert_eq!(of(Knowledge { is_selective: true, ..Knowledge::default() }), 0);
    // Rings have overwritten records: both threads may have held a gate lock since before.
    assert_eq!(of(Knowledge { complete_from: 1, ..Knowledge::default() }), 0);
    let in_ring = |acts: &[Act]| {
        cycles(&analysed_with(&lines(100, acts), Knowledge { complete_from: 1, ..Knowledge::default() }).0).len()
    };
    // One thread is recorded from its beginning, and holds nothing else.
    let acts = [&[(2, 'b', 0)][..], &nested(1, FIRST, SECOND), &nested(2, SECOND, FIRST)].concat();
    assert_eq!(in_ring(&acts), 1);
    let gate = [&[(2, 'b', 0), (2, '+', GATE)][..], &nested(1, FIRST, SECOND), &nested(2, SECOND, FIRST)].concat();
    assert_eq!(in_ring(&gate), 0);
    // The first may have been joined by a thread that created the second.
    let one_by_one =
        [&[(2, 'b', 0)][..], &nested(2, SECOND, FIRST), &[(2, 'x', 0), (3, 'b', 0)], &nested(3, FIRST, SECOND)];
    assert_eq!(in_ring(&one_by_one.concat()), 0);
    // A thread has lost records.
    let mut lost = lines(100, &[(1, '+', FIRST)]);
    lost.push((110, 1, "0:1:0", &[3, 28]));
    lost.extend(lines(120, &[(1, '+', SECOND), (1, '-', SECOND)]));
    lost.extend(lines(130, &nested(2, SECOND, FIRST)));
    assert_eq!(cycles(&analysed(&lost).0), []);
}
