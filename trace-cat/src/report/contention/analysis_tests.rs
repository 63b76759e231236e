//! The analysis of records whose report is known.

use std::collections::HashMap;

use super::analysis::Analysis;
use super::chain_ends::ChainEnd;
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::tables::ImageEnd;
use super::wait_graph::{BlockedThread, WaitGraph};
use super::wait_selection::WaitSelection;

pub(super) const TIMED_OUT: u64 = libc::ETIMEDOUT as u64;

/// A record as a line of a test: time, LWP, `event1:event2:which`, and arguments.
pub(super) type RecordLine<'a> = (u64, u32, &'a str, &'a [u64]);

pub(super) fn record((time, lwp, event, arguments): RecordLine) -> NumericRecord {
    let numbers: Vec<u8> = event.split(':').map(|number| number.parse().unwrap()).collect();
    let mut record = NumericRecord { time, lwp, pid: 1, tid: u64::from(lwp), ..NumericRecord::default() };
    (record.event, record.which) = ((numbers[0], numbers[1]), numbers[2]);
    record.arguments[..arguments.len()].copy_from_slice(arguments);
    // LWPs from 20 on are threads of a child, whose pthread_t is that of the parent's.
    if lwp >= 20 {
        (record.pid, record.tid) = (2, u64::from(lwp - 20));
    }
    record
}

pub(super) fn analysed_with(lines: &[RecordLine], knowledge: Knowledge) -> (Analysis, WaitGraph) {
    selected(lines, knowledge, WaitSelection::default())
}

pub(super) fn selected(lines: &[RecordLine], knowledge: Knowledge, selection: WaitSelection) -> (Analysis, WaitGraph) {
    let mut analysis = Analysis::new(HashMap::from([(1, knowledge), (2, knowledge)]), selection);
    lines.iter().for_each(|line| analysis.add(&record(*line)));
    let graph = analysis.finish(&[]);
    (analysis, graph)
}

pub(super) fn analysed(lines: &[RecordLine]) -> (Analysis, WaitGraph) {
    analysed_with(lines, Knowledge::default())
}

/// Waits, contention, idleness, handoff and unknown of the object at an address.
pub(super) fn figures(analysis: &Analysis, address: u64) -> (u64, u64, u64, u64, u64) {
    let figures = &analysis.objects.iter().find(|object| object.address == address).unwrap().figures;
    (figures.wait.count(), figures.contention, figures.idleness, figures.handoff, figures.unknown)
}

/// Who is blamed for waits for the object at an address: LWP, site and time.
pub(super) fn blamed(analysis: &Analysis, address: u64) -> Vec<(u32, u64, u64)> {
    let objects = analysis.objects.iter().filter(|object| object.address == address);
    let mut blame: Vec<_> = objects
        .flat_map(|object| object.figures.blamed.in_order())
        .map(|(holder, time)| {
            let lwp = analysis.threads[holder.thread as usize].lwp;
            (lwp, analysis.sites.sites[holder.site as usize].address, *time)
        })
        .collect();
    blame.sort_unstable();
    blame
}

/// Who ended waits for the object at an address: LWPs with counts.
pub(super) fn wakers(analysis: &Analysis, address: u64) -> Vec<(u32, u64)> {
    let objects = analysis.objects.iter().filter(|object| object.address == address);
    let wakers = objects.flat_map(|object| object.figures.wakers.in_order());
    let mut wakers: Vec<_> =
        wakers.map(|((thread, _), count)| (analysis.threads[*thread as usize].lwp, *count)).collect();
    wakers.sort_unstable();
    wakers
}

/// The LWPs of each deadlock that is in doubt.
pub(super) fn undecided(analysis: &Analysis, graph: &WaitGraph) -> Vec<Vec<u32>> {
    lwps(analysis, &graph.undecided)
}

fn lwps(analysis: &Analysis, circles: &[Vec<BlockedThread>]) -> Vec<Vec<u32>> {
    let lwp = |blocked: &BlockedThread| analysis.threads[blocked.thread as usize].lwp;
    circles.iter().map(|circle| circle.iter().map(lwp).collect()).collect()
}

/// The LWPs of each deadlock, and of each stuck thread with who it waits for.
pub(super) fn wrong(analysis: &Analysis, graph: &WaitGraph) -> (Vec<Vec<u32>>, Vec<(u32, u32)>) {
    let lwp = |thread: u32| analysis.threads[thread as usize].lwp;
    let mut stuck: Vec<_> = graph.stuck.iter().map(|stuck| (lwp(stuck.thread), lwp(stuck.held_by))).collect();
    stuck.sort_unstable();
    (lwps(analysis, &graph.deadlocks), stuck)
}

/// LWP takes the mutex at an address at once.
pub(super) fn lock(time: u64, lwp: u32, address: &'static [u64]) -> [RecordLine<'static>; 2] {
    [(time, lwp, "2:2:1", address), (time, lwp, "2:2:2", &[0, 0])]
}

#[test]
fn waits_are_given_to_sites_of_holders_and_to_wakers() {
    let lines = [
        (10, 1, "2:2:1", &[16, 0, 0, 0, 0x500][..]),
        (10, 1, "2:2:2", &[0, 0]),
        (20, 2, "2:2:1", &[16, 0, 0, 0, 0x600]),
        (30, 3, "2:30:1", &[16, 0, 99]),
        (45, 1, "2:4:0", &[16, 0, 1]),
        (50, 2, "2:2:2", &[0, 1]),
        (60, 3, "2:30:2", &[TIMED_OUT, 1]),
        (90, 2, "2:4:0", &[16, 0, 0]),
        (95, 2, "2:3:0", &[16, 0]),
        (96, 3, "2:3:0", &[16, 16]),
    ];
    let (analysis, _) = analysed(&lines);
    assert_eq!(figures(&analysis, 16), (2, 60, 0, 10, 0));
    assert_eq!(blamed(&analysis, 16), [(1, 0x500, 40), (2, 0x600, 10)]);
    assert_eq!(wakers(&analysis, 16), [(1, 1)]);
    let object = &analysis.objects[0].figures;
    assert_eq!((object.calls, object.timeouts, object.failed_tries, object.max_waiters), (7, 1, 1, 2));
    assert_eq!((object.hold.count(), object.hold.sum(), object.owner_changes), (3, 35 + 40 + 1, 1));
    assert_eq!(analysis.threads.iter().map(|thread| thread.contention).collect::<Vec<_>>(), [0, 30, 30]);
}

#[test]
fn from_its_signal_on_a_wait_for_a_condition_is_contention_of_the_mutex() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.extend([(20, 1, "3:4:1", &[32, 16][..])]);
    lines.extend(lock(30, 2, &[16]));
    lines.extend([
        (40, 2, "3:2:0", &[32, 0, 1][..]),
        (45, 2, "3:2:0", &[32, 0, 0]),
        (70, 2, "2:4:0", &[16, 0, 1]),
        (75, 1, "3:4:2", &[0]),
        (80, 1, "2:4:0", &[16, 0, 0]),
        (85, 2, "3:3:0", &[32, 0, 0]),
    ]);
    let (analysis, _) = analysed(&lines);
    assert_eq!(figures(&analysis, 32), (1, 0, 25, 0, 0));
    assert_eq!(figures(&analysis, 16), (1, 30, 0, 0, 0));
    assert_eq!((blamed(&analysis, 16), wakers(&analysis, 32)), (vec![(2, 0, 30)], vec![(2, 1)]));
    // The mutex is held from 10 to 20, from 30 to 70 and from 75 to 80.
    let mutex = &analysis.objects.iter().find(|object| object.address == 16).unwrap().figures;
    assert_eq!((mutex.hold.sum(), mutex.max_waiters), (55, 1));
    // The second signal and the broadcast woke nobody.
    assert_eq!(analysis.objects.iter().find(|object| object.address == 32).unwrap().figures.wasted_signals, 2);
}

/// All whom a broadcast wakes wait for the mutex that it was made with.
#[test]
fn after_a_broadcast_all_wait_for_the_mutex() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.push((20, 1, "3:4:1", &[32, 16]));
    lines.extend(lock(22, 2, &[16]));
    lines.push((24, 2, "3:4:1", &[32, 16]));
    lines.extend(lock(30, 3, &[16]));
    lines.extend([
        (40, 3, "3:3:0", &[32, 0, 2][..]),
        (50, 3, "2:4:0", &[16, 0, 1]),
        (55, 1, "3:4:2", &[0]),
        (60, 1, "2:4:0", &[16, 0, 1]),
        (65, 2, "3:4:2", &[0]),
        (70, 2, "2:4:0", &[16, 0, 1]),
    ]);
    let (analysis, _) = analysed(&lines);
    let mutex = &analysis.objects.iter().find(|object| object.address == 16).unwrap().figures;
    assert_eq!((figures(&analysis, 16).0, mutex.max_waiters), (2, 2));
    assert_eq!(blamed(&analysis, 16), [(1, 0, 5), (3, 0, 10 + 10)]);
}

#[test]
fn idle_waits_know_who_ended_them() {
    let lines = [
        (10, 1, "4:2:1", &[16, 0][..]),
        (11, 2, "4:2:1", &[16, 0]),
        (12, 4, "4:2:1", &[16, 5]),
        (12, 4, "4:2:2", &[0]),
        (20, 3, "4:4:0", &[16, 0, 0]),
        (21, 4, "4:4:0", &[16, 0, 0]),
        (22, 2, "4:2:2", &[0]),
        (25, 1, "4:2:2", &[0]),
        (30, 1, "7:2:1", &[48, 2]),
        (33, 2, "7:2:1", &[48, 1]),
        (35, 1, "7:2:2", &[0]),
        (35, 2, "7:2:2", &[libc::PTHREAD_BARRIER_SERIAL_THREAD as u64]),
        (40, 1, "1:3:1", &[3]),
        (44, 3, "1:2:0", &[0]),
        (45, 1, "1:3:2", &[3, 0, 0]),
        (45, 4, "1:2:0", &[0]),
        (46, 1, "1:3:1", &[4]),
        (47, 1, "1:3:2", &[4, 0, 0]),
        (50, 1, "10:1:1", &[64, 0, 1, 0]),
        (52, 2, "10:2:0", &[64, 1, 1, 1]),
        (53, 1, "10:1:2", &[0]),
        (54, 1, "10:1:1", &[64, 0, 1, 0]),
        (55, 1, "10:1:2", &[u64::MAX, libc::EAGAIN as u64]),
    ];
    let (analysis, _) = analysed(&lines);
    assert_eq!((figures(&analysis, 16), wakers(&analysis, 16)), ((2, 0, 26, 0, 0), vec![(3, 1), (4, 1)]));
    assert_eq!((figures(&analysis, 48), wakers(&analysis, 48)), ((1, 0, 5, 0, 0), vec![(2, 1)]));
    assert_eq!((figures(&analysis, 64), wakers(&analysis, 64)), ((1, 0, 3, 0, 0), vec![(2, 1)]));
    // The second join is of a thread that had ended.
    assert_eq!(analysis.threads[0].idleness, 15 + 5 + 5 + 3);
}

#[test]
fn who_waits_for_pthread_once_waits_for_who_runs_the_routine() {
    let lines = [
        (100_000, 1, "1:38:1", &[16, 0][..]),
        (150_001, 2, "1:38:1", &[16, 0]),
        (300_000, 1, "1:38:2", &[0]),
        (300_002, 2, "1:38:2", &[0]),
        (400_000, 2, "1:38:1", &[16, 0]),
        (400_000, 2, "1:38:2", &[0]),
    ];
    let (analysis, _) = analysed(&lines);
    let found = (figures(&analysis, 16), blamed(&analysis, 16));
    assert_eq!(found, ((1, 150_001, 0, 2, 0), vec![(1, 0, 149_999)]));
    assert_eq!(analysis.objects[0].figures.hold.count(), 1);
}

#[test]
fn deadlocks_are_cycles_and_stuck_threads_wait_for_them() {
    let mut lines = [lock(10, 1, &[16]), lock(11, 2, &[32]), lock(12, 4, &[64])].concat();
    lines.extend([
        (20, 1, "2:2:1", &[32][..]),
        (21, 2, "2:2:1", &[16]),
        (22, 3, "2:2:1", &[16]),
        (23, 4, "1:3:1", &[3]),
        (24, 5, "2:2:1", &[64]),
        // Who waits with a time limit, or for a thread that runs, is not stuck.
        (25, 6, "2:30:1", &[16, 0, 99]),
        (26, 7, "2:3:0", &[80, 0]),
        (27, 8, "2:2:1", &[80]),
    ]);
    let (analysis, graph) = analysed(&lines);
    assert_eq!(wrong(&analysis, &graph), (vec![vec![1, 2]], vec![(3, 1), (4, 3), (5, 4)]));
    assert!(graph.stuck.iter().all(|stuck| matches!(stuck.end, ChainEnd::Deadlock(_))));
    // Open waits last until the last record.
    assert_eq!((figures(&analysis, 32), figures(&analysis, 64)), ((1, 7, 0, 0, 0), (1, 3, 0, 0, 0)));
}

#[test]
fn a_thread_that_is_joined_before_its_first_record_is_found() {
    let mut lines: Vec<RecordLine> = vec![(5, 1, "1:3:1", &[2])];
    lines.extend(lock(10, 2, &[16]));
    lines.push((11, 2, "2:2:1", &[16]));
    let (analysis, graph) = analysed(&lines);
    assert_eq!(wrong(&analysis, &graph), (vec![vec![2]], vec![(1, 2)]));
}

#[test]
fn a_thread_alone_can_be_in_a_deadlock() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.push((11, 1, "2:2:1", &[16]));
    lines.extend([(12, 2, "5:2:1", &[32][..]), (12, 2, "5:2:2", &[0, 0, 1]), (13, 2, "5:3:1", &[32])]);
    lines.extend([(14, 3, "6:2:1", &[48][..]), (14, 3, "6:2:2", &[0, 0, 1]), (15, 3, "6:2:1", &[48])]);
    lines.extend([(15, 3, "6:2:2", &[0, 0, 2][..]), (16, 3, "6:4:0", &[48, 0]), (18, 3, "6:4:0", &[48, 0])]);
    let (analysis, graph) = analysed(&lines);
    assert_eq!(wrong(&analysis, &graph), (vec![vec![1], vec![2]], vec![]));
    assert_eq!(analysis.objects[2].figures.hold.sum(), 4);
}

#[test]
fn missing_records_make_no_deadlock() {
    // Thread 1 has lost records since it took the mutex.
    let mut lines = [lock(10, 1, &[16]), lock(11, 2, &[32])].concat();
    lines.extend([(15, 1, "0:1:0", &[3, 28][..]), (20, 1, "2:2:1", &[32]), (21, 2, "2:2:1", &[16])]);
    let (mut analysis, graph) = analysed(&lines);
    assert_eq!(wrong(&analysis, &graph), (vec![], vec![]));
    assert_eq!(figures(&analysis, 16), (1, 0, 0, 0, 0));
    assert_eq!((analysis.missing.releases, analysis.processes[0].lost), (1, 3));
    // The process has counted itself what no loss record counts.
    for (counted, lost) in [(0, 3), (2, 3), (7, 7)] {
        analysis.raise_losses(analysis.processes[0].pid, counted);
        assert_eq!(analysis.processes[0].lost, lost);
    }
    // The thread ended between a release and its record.
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.extend([(15, 1, "1:2:0", &[0][..]), (16, 1, "0:4:0", &[204, 16]), (20, 2, "2:2:1", &[16])]);
    let (analysis, graph) = analysed(&lines);
    assert_eq!((wrong(&analysis, &graph), analysis.objects[0].figures.hold.sum()), ((vec![], vec![]), 6));
    // Another one has the mutex, so the release of thread 1 is missing.
    let lines = [lock(10, 1, &[16]), lock(30, 2, &[16])].concat();
    let (analysis, _) = analysed(&lines);
    assert_eq!((analysis.missing.releases, analysis.objects[0].figures.lost_holds), (1, 1));
    assert_eq!(analysis.objects[0].figures.hold.count(), 1, "that of thread 2");
}

#[test]
fn where_only_blocked_calls_are_recorded_the_owner_that_was_seen_is_to_blame() {
    let only_blocked = Knowledge { only_blocked: true, ..Knowledge::default() };
    // Threads 1 and 2 have taken a mutex each without waiting.
    let lines = [
        (5, 1, "1:39:0", &[1, 0, 0, 0][..]),
        (6, 2, "1:39:0", &[2, 0, 0, 0]),
        (10, 3, "2:2:1", &[16, 0, 0, 1, 0]),
        (20, 1, "2:4:0", &[16, 0, 1]),
        (25, 3, "2:2:2", &[0, 1]),
        (30, 1, "2:2:1", &[32]),
        (40, 2, "2:4:0", &[32, 0, 1]),
        (41, 1, "2:2:2", &[0, 1]),
        (45, 3, "4:2:1", &[64, 0]),
        (50, 2, "2:2:1", &[16, 0, 0, 1, 0]),
        (60, 1, "2:2:1", &[48, 0, 0, 2, 0]),
    ];
    let (analysis, graph) = analysed_with(&lines, only_blocked);
    // Thread 3 has had 16 after its wait, but thread 1 was seen as the owner later.
    assert_eq!((figures(&analysis, 16), blamed(&analysis, 16)), ((2, 25, 0, 0, 5), vec![(1, 0, 20)]));
    // Nobody was seen, but thread 2 released it.
    assert_eq!((figures(&analysis, 32), blamed(&analysis, 32)), ((1, 11, 0, 0, 1), vec![(2, 0, 10)]));
    assert_eq!(wrong(&analysis, &graph), (vec![vec![1, 2]], vec![]));
}

#[test]
fn holds_go_across_a_fork_and_end_with_an_exec() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.extend([
        (20, 1, "11:1:1", &[0][..]),
        (25, 21, "11:2:0", &[1]),
        (30, 1, "11:1:2", &[2, 0, 0]),
        (35, 1, "2:4:0", &[16, 0, 0]),
        (40, 21, "2:4:0", &[16, 0, 0]),
        (50, 22, "2:2:1", &[32]),
        (50, 22, "2:2:2", &[0, 0]),
        (60, 22, "11:3:1", &[]),
        (61, 22, "11:3:2", &[2]),
        (62, 21, "2:2:1", &[32]),
    ]);
    let (analysis, _) = analysed(&lines);
    let held = |pid: u32, address: u64| {
        let of = |process: u32| analysis.processes[process as usize].pid == pid;
        let object = analysis.objects.iter().find(|object| of(object.process) && object.address == address).unwrap();
        object.figures.hold.sum()
    };
    assert_eq!([held(1, 16), held(2, 16), held(2, 32)], [25, 15, 12]);
    assert_eq!(blamed(&analysis, 32), []);

    // The child initialises what it began with, as functions of pthread_atfork do.
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.extend([(20, 1, "11:1:1", &[0][..]), (25, 21, "11:2:0", &[1]), (30, 21, "2:1:0", &[16, 0, 0, 0])]);
    lines.extend([(35, 1, "11:1:2", &[2, 0, 0][..]), (40, 1, "2:1:0", &[16, 0, 0, 0])]);
    let (analysis, _) = analysed(&lines);
    let held: Vec<u64> = analysis.objects.iter().map(|object| object.figures.hold.sum()).collect();
    assert_eq!((held, analysis.missing.releases), (vec![0, 5], 1));

    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.extend([(15, 2, "2:2:1", &[16][..]), (20, 1, "11:3:1", &[])]);
    lines.extend(lock(30, 1, &[16]));
    let (analysis, graph) = analysed(&lines);
    let images: Vec<_> = analysis.processes.iter().map(|process| (process.image, process.end, process.last)).collect();
    assert_eq!(images, [(0, ImageEnd::Exec, 20), (1, ImageEnd::Unknown, 30)]);
    assert_eq!((figures(&analysis, 16), analysis.objects[0].figures.hold.sum()), ((1, 5, 0, 0, 0), 10));
    assert_eq!((analysis.objects.iter().count(), analysis.objects[1].number, graph.stuck.len()), (2, 2, 0));
}

#[test]
fn an_owner_that_died_held_a_robust_mutex_until_its_end() {
    let mut lines = lock(10, 1, &[16]).to_vec();
    lines.extend([
        (12, 2, "2:2:1", &[16][..]),
        (20, 1, "1:2:0", &[0]),
        (30, 2, "2:2:2", &[libc::EOWNERDEAD as u64, 1]),
        (40, 2, "2:4:0", &[16, 0, 0]),
    ]);
    let (analysis, _) = analysed(&lines);
    assert_eq!((figures(&analysis, 16), blamed(&analysis, 16)), ((1, 18, 0, 10, 0), vec![(1, 0, 8)]));
    assert_eq!((analysis.objects[0].figures.hold.sum(), analysis.missing.releases), (20, 0));
}

#[test]
fn an_object_lives_until_it_is_destroyed_or_used_as_another_kind() {
    let lines = [
        (10, 1, "2:1:0", &[16, 0, 0, 0][..]),
        (20, 1, "2:5:0", &[16, 0]),
        (30, 1, "2:1:0", &[16, 0, 0, 0]),
        (40, 1, "3:1:0", &[16, 0, 0, 0]),
        (50, 1, "3:6:0", &[16, libc::EBUSY as u64]),
        (60, 1, "3:2:0", &[16, 0, 0]),
        // A semaphore of the parent that is shared is the child's, too.
        (70, 1, "4:1:0", &[32, 1, 0, 0, 0]),
        (71, 1, "4:1:0", &[48, 0, 0, 0, 0]),
        (80, 21, "11:2:0", &[1]),
        (90, 21, "4:4:0", &[32, 0, 0]),
        (91, 21, "4:4:0", &[48, 0, 0]),
    ];
    let (analysis, _) = analysed(&lines);
    let objects: Vec<_> =
        analysis.objects.iter().map(|object| (object.address, object.number, object.kind.name())).collect();
    let expected =
        [(16, 1, "mutex"), (16, 2, "mutex"), (16, 3, "cond"), (32, 1, "sema"), (48, 1, "sema"), (48, 1, "sema")];
    assert_eq!(objects, expected);
}
