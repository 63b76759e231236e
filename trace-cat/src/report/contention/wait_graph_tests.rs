//! Deadlocks and stuck threads, at the end and at a moment.

use super::analysis_tests::{RecordLine, analysed, lock, wrong};
use super::moment::Moment;
use super::numeric_record::NumericRecord;
use super::tables::OngoingCall;
use super::wait_graph::ChainEnd;

fn lines(lines: &[&[RecordLine<'static>]]) -> Vec<RecordLine<'static>> {
    lines.concat()
}

/// A thread takes an rwlock for reading.
fn read(time: u64, lwp: u32) -> [RecordLine<'static>; 2] {
    [(time, lwp, "5:2:1", &[48]), (time, lwp, "5:2:2", &[0, 0, 1])]
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

/// LWPs from 20 on are another process's.
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
            &[(13, 1, "1:2:0", &[0]), (14, 2, "2:2:1", &[16]), (15, 3, "1:3:1", &[2])],
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
    let at = |time: u64| {
        let mut moment = Moment::new(time);
        let mut analysis = super::Analysis::new(Default::default(), super::WaitSelection::default());
        for &(time, lwp, event, arguments) in &records {
            let numbers: Vec<u8> = event.split(':').map(|number| number.parse().unwrap()).collect();
            let mut record = NumericRecord { time, lwp, pid: 1, tid: u64::from(lwp), ..NumericRecord::default() };
            (record.event, record.which) = ((numbers[0], numbers[1]), numbers[2]);
            record.arguments[..arguments.len()].copy_from_slice(arguments);
            moment.pass(&mut analysis, time);
            analysis.add(&record);
        }
        let last = analysis.finish(&[]);
        let graph = moment.graph(last);
        assert_eq!(graph.moment, Some(time));
        wrong(&analysis, &graph)
    };
    assert_eq!(at(5), (vec![], vec![]));
    assert_eq!(at(30), (vec![], vec![]));
    assert_eq!(at(31), (vec![vec![1, 2]], vec![(3, 1)]));
    assert_eq!(at(39), (vec![vec![1, 2]], vec![(3, 1)]));
    assert_eq!(at(40), (vec![], vec![]));
}
