//! Threads with the LWP of one that has ended, which may have left lock 16 locked.

use super::Analysis;
use super::analysis_tests::{RecordLine, record, undecided, wrong};
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::owners_elsewhere_tests::ALL;

const ONLY_BLOCKED: Knowledge = Knowledge { only_blocked: true, ..ALL };

/// Records of a process with this ID, whose threads have their LWPs as pthread_t.
fn of(pid: u32, lines: &[RecordLine]) -> Vec<NumericRecord> {
    let of_process = |line: &RecordLine| NumericRecord { pid, tid: line.1.into(), ..record(*line) };
    lines.iter().map(of_process).collect()
}

/// The first record of a child that a thread with this LWP has forked.
fn begins(pid: u32, time: u64, lwp: u32, parent: u64, forking: u32) -> Vec<NumericRecord> {
    let begin = record((time, lwp, "11:2:0", &[]));
    vec![NumericRecord { pid, tid: forking.into(), arguments: [parent, 0, 0, 0, 0], ..begin }]
}

/// The LWPs of the deadlocks, and of those that are in doubt.
fn found(records: &[Vec<NumericRecord>], knowledge: Knowledge) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let mut analysis = Analysis::new([1, 2, 3].map(|pid| (pid, knowledge)).into(), Default::default());
    records.concat().iter().for_each(|record| analysis.add(record));
    let graph = analysis.finish(&[]);
    (wrong(&analysis, &graph).0, undecided(&analysis, &graph))
}

fn certain(circle: &[u32]) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    (vec![circle.to_vec()], vec![])
}

fn in_doubt(circle: &[u32]) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    (vec![], vec![circle.to_vec()])
}

const MADE: RecordLine = (1, 1, "2:1:0", &[16, 0, 0, 0]);
/// A thread that has ended, and one that begins with the same LWP.
const ENDED: [RecordLine; 2] = [(5, 2, "1:30:0", &[0x1000]), (6, 2, "1:2:0", &[0])];
const BEGIN: RecordLine = (30, 2, "1:30:0", &[0x1000]);
const WAITS: RecordLine = (40, 2, "2:2:1", &[16, 0, 0, 2]);
/// Its own record shows that it has the lock.
const HAS_GOT_IT: [RecordLine; 3] =
    [(32, 9, "2:2:1", &[16, 0, 0, 2]), (33, 2, "2:2:1", &[16, 0, 0, 9]), (34, 2, "2:2:2", &[0, 1])];

#[test]
fn the_owner_of_a_childs_lock_may_be_an_ended_thread_of_an_ancestor() {
    for made in [&[][..], &[MADE]] {
        let parent = |ended: &[RecordLine]| of(1, &[made, ended].concat());
        let fork = of(1, &[(20, 1, "11:1:1", &[0])]);
        let first = begins(2, 21, 21, 1, 1);
        // A thread of the child has the LWP.
        let waits = of(2, &[BEGIN, WAITS]);
        assert_eq!(found(&[parent(&[]), fork.clone(), first.clone(), waits.clone()], ONLY_BLOCKED), certain(&[2]));
        assert_eq!(found(&[parent(&ENDED), fork.clone(), first.clone(), waits.clone()], ONLY_BLOCKED), in_doubt(&[2]));
        let has_it = of(2, &[&[BEGIN][..], &HAS_GOT_IT, &[WAITS]].concat());
        let by_its_record = found(&[parent(&ENDED), fork.clone(), first.clone(), has_it], ONLY_BLOCKED);
        assert_eq!(by_its_record, certain(&[2]), "by its own record");
        // The child is forked with it.
        let child = [parent(&ENDED), fork.clone(), begins(2, 21, 2, 1, 1), of(2, &[WAITS])];
        assert_eq!(found(&child, ONLY_BLOCKED), in_doubt(&[2]));
        // It is one of the parent's parent.
        let forks = of(2, &[(24, 21, "11:1:1", &[0])]);
        let grandchild = [parent(&ENDED), fork, first, forks, begins(3, 25, 31, 2, 21), of(3, &[BEGIN, WAITS])];
        assert_eq!(found(&grandchild, ONLY_BLOCKED), in_doubt(&[2]));
    }
}

/// Other threads of the child see it as the owner, which waits itself.
#[test]
fn a_circle_with_the_lwp_of_an_ancestors_ended_thread_is_in_doubt() {
    let circle = of(2, &[BEGIN, (40, 2, "2:2:1", &[32, 0, 0, 21]), (41, 21, "2:2:1", &[16, 0, 0, 2])]);
    let records = |ended: &[RecordLine]| {
        let fork = of(1, &[(20, 1, "11:1:1", &[0])]);
        // So they see that each is in its wait.
        let sees = of(2, &[(42, 8, "2:2:1", &[32, 0, 0, 21])]);
        [of(1, ended), fork, begins(2, 21, 21, 1, 1), circle.clone(), sees]
    };
    assert_eq!(found(&records(&[]), ONLY_BLOCKED), certain(&[21, 2]));
    assert_eq!(found(&records(&ENDED), ONLY_BLOCKED), in_doubt(&[21, 2]));
}

/// The copy of a lock that the forking thread has seems to be its first thread's.
#[test]
fn a_thread_that_forks_may_have_the_lwp_of_an_ended_one() {
    let records = |ended: &[RecordLine]| {
        let forks = of(1, &[BEGIN, (31, 2, "11:1:1", &[0])]);
        [of(1, &[MADE]), of(1, ended), forks, begins(2, 32, 21, 1, 2), of(2, &[(40, 21, "2:2:1", &[16, 0, 0, 2])])]
    };
    assert_eq!(found(&records(&[]), ONLY_BLOCKED), certain(&[21]));
    assert_eq!(found(&records(&ENDED), ONLY_BLOCKED), in_doubt(&[21]));
}

/// No record shows whose child a process is.
#[test]
fn a_process_may_be_a_child_of_one_whose_thread_has_ended() {
    let child = of(2, &[(21, 21, "1:39:0", &[21]), BEGIN, WAITS]);
    let forked = Knowledge { is_forked: true, misses_forks: true, ..ONLY_BLOCKED };
    let unknown = Knowledge { lacks_settings: true, ..ONLY_BLOCKED };
    for (knowledge, expected) in [(ONLY_BLOCKED, certain(&[2])), (forked, in_doubt(&[2])), (unknown, in_doubt(&[2]))] {
        assert_eq!(found(&[of(1, &ENDED), child.clone()], knowledge), expected, "{knowledge:?}");
    }
    assert_eq!(found(&[of(1, &[]), child], forked), certain(&[2]));
}

/// An ended thread of another process may have left it locked.
#[test]
fn the_owner_of_a_shared_lock_may_be_an_ended_thread_of_another_process() {
    let circle = of(2, &[BEGIN, (40, 2, "2:2:1", &[32, 0, 0, 21]), (41, 21, "2:2:1", &[16, 0, 0, 2])]);
    let records = |attributes: &'static [u64], ended: &[RecordLine]| {
        let made = of(2, &[(20, 21, "2:1:0", attributes), (20, 21, "2:1:0", &[32, 0, 0, 0])]);
        [
            of(1, &[(1, 1, "1:39:0", &[1])]),
            of(1, ended),
            made,
            circle.clone(),
            of(2, &[(42, 8, "2:2:1", &[32, 0, 0, 21])]),
        ]
    };
    let (shared, private): (&[u64], &[u64]) = (&[16, 99, 0, 0], &[16, 0, 0, 0]);
    assert_eq!(found(&records(shared, &[]), ONLY_BLOCKED), certain(&[21, 2]));
    assert_eq!(found(&records(shared, &ENDED), ONLY_BLOCKED), in_doubt(&[21, 2]));
    assert_eq!(found(&records(private, &ENDED), ONLY_BLOCKED), certain(&[21, 2]));
}
