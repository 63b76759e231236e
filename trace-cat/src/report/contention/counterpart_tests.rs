//! What several processes may share, which no record shows.

use super::analysis_tests::{RecordLine, analysed, analysed_with, record};
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::path_tests::{analysed_with_paths, path_figures};

const MADE_FOR_PROCESSES: RecordLine = (5, 1, "2:1:0", &[16, 99, 0, 0]);
/// LWPs from 20 on are another process's.
const FORK: [RecordLine; 3] = [(6, 1, "11:1:1", &[0]), (7, 21, "11:2:0", &[1]), (8, 1, "11:1:2", &[20, 0, 0])];
/// The first thread has seen that the second one has the lock, gets it 20 after its release, and ends the process.
const WAITS: [RecordLine; 6] = [
    (10, 2, "2:2:1", &[16, 0, 0, 0, 7]),
    (10, 2, "2:2:2", &[0, 0]),
    (11, 1, "2:2:1", &[16, 0, 0, 2, 7]),
    (30, 2, "2:4:0", &[16, 0, 0, 1, 7]),
    (50, 1, "2:2:2", &[0, 1]),
    (60, 1, "11:4:0", &[0]),
];

/// What is handoff and what unknown of the waits of the first process, and whether the critical path has that as unknown.
fn divided(lines: &[&[RecordLine]]) -> (u64, u64, bool) {
    let mut records: Vec<NumericRecord> = lines.concat().into_iter().map(record).collect();
    records.sort_by_key(|record| record.time);
    let analysis = analysed_with_paths(&records, Knowledge::default());
    let figures = &analysis.objects.iter().find(|object| object.figures.contention > 0).unwrap().figures;
    let ([.., unknown], ..) = path_figures(&analysis, 0);
    (figures.handoff, figures.unknown, unknown >= 20)
}

/// What it holds after the one whom the waiting thread has seen is not known.
#[test]
fn another_process_that_uses_a_lock_may_have_had_it() {
    let takes =
        |address: &'static [u64]| -> [RecordLine; 2] { [(12, 21, "2:2:1", address), (32, 21, "2:2:2", &[0, 1])] };
    let made: &[RecordLine] = &[MADE_FOR_PROCESSES];
    let (known, unknown) = ((20, 0, false), (0, 20, true));
    assert_eq!(divided(&[made, &WAITS]), known);
    assert_eq!(divided(&[made, &FORK, &WAITS]), known, "the child does not use it");
    assert_eq!(divided(&[made, &FORK, &WAITS, &takes(&[16, 0, 0, 2, 7])]), unknown);
    assert_eq!(divided(&[made, &FORK, &WAITS, &takes(&[4112, 0, 0, 2, 7])]), unknown, "mapped at another address");
    assert_eq!(divided(&[made, &FORK, &WAITS, &takes(&[24, 0, 0, 2, 7])]), known, "another lock");
    let own: &[RecordLine] = &[(9, 21, "2:1:0", &[4112, 99, 0, 0])];
    assert_eq!(divided(&[made, &FORK, own, &WAITS, &takes(&[4112, 0, 0, 0, 7])]), known, "one of its own");
    assert_eq!(divided(&[&FORK, own, &WAITS]), unknown, "made by the other process");
    let ends: &[RecordLine] = &[(9, 21, "2:1:0", &[4112, 99, 0, 0]), (9, 21, "11:4:0", &[0])];
    let later: Vec<RecordLine> =
        WAITS.iter().map(|(time, lwp, event, arguments)| (time + 90, *lwp, *event, *arguments)).collect();
    let other: &[RecordLine] = &[(5, 21, "2:1:0", &[4112, 99, 0, 0]), (6, 21, "11:4:0", &[0])];
    assert_eq!(divided(&[other, &later]), known, "made by one that had ended");
    assert_ne!(divided(&[&FORK, ends, &WAITS]), known, "by one that ended meanwhile");
    assert_eq!(divided(&[&FORK, &WAITS, &takes(&[4112, 0, 0, 0, 7])]), known, "nobody has made one for processes");
}

/// A condition with attributes, as each with a clock of its own has.
#[test]
fn another_process_that_may_use_a_condition_may_wake_who_waits() {
    let waits: &[RecordLine] = &[
        (5, 1, "3:1:0", &[64, 99, 1, 0]),
        (20, 2, "2:2:1", &[32, 0]),
        (20, 2, "2:2:2", &[0, 0]),
        (21, 2, "3:4:1", &[64, 32]),
        (22, 1, "1:3:1", &[2]),
    ];
    let stuck = |lines: &[&[RecordLine<'static>]]| {
        let mut lines = lines.concat();
        lines.sort_by_key(|line| line.0);
        analysed(&lines).1.stuck.len()
    };
    assert_eq!(stuck(&[waits]), 1);
    assert_eq!(stuck(&[waits, &FORK]), 0, "a child that has not used it yet");
    assert_eq!(stuck(&[waits, &FORK, &[(9, 21, "11:4:0", &[0])]]), 1, "one that has ended");
    assert_eq!(stuck(&[waits, &FORK, &[(9, 21, "11:3:1", &[0])]]), 1, "one that has executed a program");
    let other: &[RecordLine] = &[(11, 21, "4:4:0", &[80, 0])];
    assert_eq!(stuck(&[waits, other]), 1, "another program");
    let own: &[RecordLine] = &[(12, 21, "3:1:0", &[4160, 99, 1, 0])];
    assert_eq!(stuck(&[waits, other, own]), 1, "which has a condition of its own");
    let signals: &[RecordLine] = &[(12, 21, "3:2:0", &[4160, 0])];
    assert_eq!(stuck(&[waits, other, signals]), 0, "which uses one that it has not made");
    let ends: &[RecordLine] = &[(13, 21, "11:4:0", &[0])];
    assert_eq!(stuck(&[waits, other, signals, ends]), 1, "and has ended");
    assert_eq!(stuck(&[&waits[1..], other, own]), 0, "which has made the one that the thread waits for");
    let destroys: &[RecordLine] = &[(13, 21, "3:6:0", &[4160, 0])];
    assert_eq!(stuck(&[&waits[1..], other, own, destroys]), 1, "and destroyed it");
}

/// The memory of a program's own data and heap is nobody else's.
#[test]
fn what_is_in_a_programs_own_memory_is_its_own() {
    let waits = |cond: &'static [u64; 2]| -> [RecordLine; 4] {
        [(20, 2, "2:2:1", &cond[1..]), (20, 2, "2:2:2", &[0, 0]), (21, 2, "3:4:1", cond), (22, 1, "1:3:1", &[2])]
    };
    let made: &[RecordLine] = &[(5, 21, "3:1:0", &[0x7f00_0000_0040, 99, 1, 0])];
    for (cond, certain) in [(&[0x7fff_0000_0040, 32], 0), (&[0x55a0_0000_0040, 32], 1)] {
        assert_eq!(analysed(&[made, &waits(cond)].concat()).1.stuck.len(), certain, "{cond:x?}");
    }
    let own: &[RecordLine] = &[(5, 1, "3:1:0", &[0x55a0_0000_0040, 99, 0, 0])];
    let graph = analysed(&[own, &FORK, &waits(&[0x55a0_0000_0040, 32])].concat()).1;
    assert_eq!(graph.stuck.len(), 0, "a child may have what is mapped there");
}

/// So are its initialisation, and whose child a process is.
#[test]
fn who_uses_a_condition_may_be_missing() {
    let waits: &[RecordLine] =
        &[(20, 2, "2:2:1", &[32, 0]), (20, 2, "2:2:2", &[0, 0]), (21, 2, "3:4:1", &[64, 32]), (22, 1, "1:3:1", &[2])];
    let made: &[RecordLine] = &[(5, 1, "3:1:0", &[64, 99, 0, 0])];
    let runs: &[RecordLine] = &[(11, 21, "4:4:0", &[80, 0])];
    let of_ring = Knowledge { complete_from: 10, ..Knowledge::default() };
    let of_child = Knowledge { is_forked: true, ..Knowledge::default() };
    let stuck = |lines: &[&[RecordLine]], knowledge| analysed_with(&lines.concat(), knowledge).1.stuck.len();
    assert_eq!(stuck(&[runs, waits], Knowledge::default()), 1);
    assert_eq!(stuck(&[&FORK, runs, waits], of_ring), 0, "a child, and an initialisation that is overwritten");
    assert_eq!(stuck(&[made, runs, waits], Knowledge::default()), 1, "another program");
    assert_eq!(stuck(&[made, runs, waits], of_child), 0, "perhaps its child");
    let signals: &[RecordLine] = &[(12, 21, "3:2:0", &[4160, 0])];
    assert_eq!(stuck(&[runs, signals, waits], of_ring), 0, "which both use");
    let of_program = Knowledge { is_spawned: true, ..Knowledge::default() };
    assert_eq!(stuck(&[made, &FORK, runs, waits], Knowledge::default()), 0, "its child");
    assert_eq!(stuck(&[made, &FORK, runs, waits], of_program), 1, "a program that it runs");
}
