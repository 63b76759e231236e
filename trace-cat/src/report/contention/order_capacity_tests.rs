//! Orders of locks that are taken many times, by many threads or in many phases, of which one conflicts with another order.

use super::analysis::Analysis;
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::wait_selection::WaitSelection;

const FIRST: u64 = 0x10;
const SECOND: u64 = 0x20;
const GATE: u64 = 0x30;
const BARRIER: u64 = 0x40;

/// Records of one process, each some time after the one before.
#[derive(Default)]
struct Program {
    records: Vec<NumericRecord>,
}

impl Program {
    fn put(&mut self, lwp: u32, event: (u8, u8), which: u8, arguments: &[u64]) {
        let mut record = NumericRecord { lwp, pid: 1, tid: lwp.into(), event, which, ..NumericRecord::default() };
        record.time = 100 + 10 * self.records.len() as u64;
        record.arguments[..arguments.len()].copy_from_slice(arguments);
        self.records.push(record);
    }

    /// The thread takes these locks, one inside the other.
    fn nest(&mut self, lwp: u32, locks: &[u64]) {
        for lock in locks {
            self.put(lwp, (2, 2), 1, &[*lock]);
            self.put(lwp, (2, 2), 2, &[0, 0]);
        }
        locks.iter().rev().for_each(|lock| self.put(lwp, (2, 4), 0, &[*lock, 0, 0]));
    }

    /// The threads wait at a barrier until all are there.
    fn meet(&mut self, lwps: &[u32]) {
        for (lwp, missing) in lwps.iter().zip((1..=lwps.len() as u64).rev()) {
            self.put(*lwp, (7, 2), 1, &[BARRIER, missing]);
        }
        lwps.iter().for_each(|lwp| self.put(*lwp, (7, 2), 2, &[0]));
    }

    fn create(&mut self, creator: u32, created: u32) {
        self.put(creator, (1, 1), 1, &[]);
        self.put(creator, (1, 1), 2, &[0, created.into()]);
        self.put(created, (1, 30), 0, &[]);
    }

    fn join(&mut self, joiner: u32, joined: u32) {
        self.put(joined, (1, 2), 0, &[]);
        self.put(joiner, (1, 3), 1, &[joined.into()]);
        self.put(joiner, (1, 3), 2, &[joined.into(), 0, 0]);
    }

    fn analysed(&self) -> Analysis {
        let knowledge = std::collections::HashMap::from([(1, Knowledge::default())]);
        let mut analysis = Analysis::new(knowledge, WaitSelection::default());
        self.records.iter().for_each(|record| analysis.add(record));
        analysis.finish(&[]);
        analysis
    }

    /// The threads of the possible deadlock, if there is one.
    fn cycle(&self) -> Option<Vec<u32>> {
        let analysis = self.analysed();
        assert_eq!(analysis.cycles_left_out, 0);
        let steps = &analysis.cycles.first()?.steps;
        Some(steps.iter().map(|step| analysis.threads[step.thread as usize].lwp).collect())
    }
}

/// Two threads take locks in the same order in each round but one: then the second does not.
fn rounds(count: u32, has_first_paused: bool) -> Program {
    let mut program = Program::default();
    program.create(1, 2);
    for round in 0..count {
        let is_other = round == count / 2;
        if !(is_other && has_first_paused) {
            program.nest(1, &[FIRST, SECOND]);
        }
        program.nest(2, if is_other { &[SECOND, FIRST] } else { &[FIRST, SECOND] });
        program.meet(&[1, 2]);
    }
    program
}

#[test]
fn one_round_of_many_conflicts() {
    assert_eq!(rounds(100, false).cycle(), Some(vec![1, 2]));
    assert_eq!(rounds(1000, false).cycle(), Some(vec![1, 2]));
    // Comparing all rounds of one with all of the other would be too much work.
    assert_eq!(rounds(20_000, false).cycle(), Some(vec![1, 2]));
    // What the first does in other rounds is before or after.
    assert_eq!(rounds(1000, true).cycle(), None);
}

#[test]
fn one_thread_of_many_has_no_gate() {
    let with_gate = |has_other: bool| {
        let mut program = Program::default();
        (2..300).for_each(|lwp| program.create(1, lwp));
        for lwp in 2..300 {
            let gated = lwp != 150 || !has_other;
            program.nest(lwp, if gated { &[GATE, FIRST, SECOND] } else { &[FIRST, SECOND] });
            program.nest(lwp, &[GATE, SECOND, FIRST]);
        }
        program
    };
    let found = with_gate(true).cycle().expect("the thread without the gate");
    assert!(found.contains(&150), "{found:?}");
    assert_eq!(with_gate(false).cycle(), None);
}

#[test]
fn one_of_many_threads_that_ran_one_after_another_conflicts() {
    let one_by_one = |has_other: bool| {
        let mut program = Program::default();
        for lwp in 2..200 {
            program.create(1, lwp);
            program.nest(1, &[FIRST, SECOND]);
            if has_other && lwp == 100 {
                program.nest(lwp, &[SECOND, FIRST]);
            }
            program.join(1, lwp);
        }
        program.nest(1, &[SECOND, FIRST]);
        program
    };
    assert_eq!(one_by_one(true).cycle(), Some(vec![1, 100]));
    assert_eq!(one_by_one(false).cycle(), None);
}
