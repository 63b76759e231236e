//! What was recorded of an object; and what records show of that where no trinfo does: the level, and whether releases and threads were
//! recorded.
//!
//! A hold that lasts by the records has ended if its release makes no record. So it counts only where the records show that
//! releases make one: at LEVEL=blocked there is no acquisition that did not wait, and where the events leave out unlocks there are none.

use super::analysis::Analysis;
use super::holds::Knowledge;
use super::object_state::ObjectKind::{Futex, Mutex, Once, Rmutex, Rwlock, Spin};
use super::object_state::ObjectState;
use super::tables::ProgramState;

impl Analysis {
    /// What is known of the records of an object's process.
    pub fn knowledge_of(&self, object: u32) -> Knowledge {
        let ObjectState { process, kind, .. } = self.objects[object as usize];
        // Changed in place: a copy of each field alone takes three times as long.
        let mut knowledge = self.processes[process as usize].knowledge;
        match kind {
            // Who takes a futex that is free, or leaves one for which nobody waits, makes no call.
            Futex => (knowledge.only_blocked, knowledge.is_handed_over) = (true, true),
            Mutex => knowledge.is_partial |= knowledge.misses_mutexes,
            Rmutex => knowledge.is_partial |= knowledge.misses_rmutexes,
            // At each level all of its calls are recorded.
            Once => knowledge.only_blocked = false,
            _ => {}
        }
        knowledge
    }

    /// Whether it is not known that each release of an object makes a record.
    pub fn may_lack_releases(&self, object: u32) -> bool {
        let state = &self.objects[object as usize];
        let ProgramState { knowledge, shown, .. } = &self.processes[state.process as usize];
        let shows_releases = shown.all_levels && shown.has_unlock(state.kind);
        let has_unlocks = matches!(state.kind, Mutex | Rmutex | Rwlock | Spin);
        knowledge.lacks_settings && has_unlocks && !shows_releases
    }

    /// Whether each acquisition and release of an object makes a record, so that who has it is known by the records. What else is recorded
    /// does not matter for that.
    pub fn shows_holds(&self, object: u32) -> bool {
        let knowledge = self.knowledge_of(object);
        !(knowledge.only_blocked || knowledge.is_partial || self.may_lack_releases(object))
    }

    /// Whether each thread of a process that may run has made a record, where nothing else shows that threads do: each but the main
    /// thread has one of its beginning, so that these are recorded.
    pub fn shows_threads(&self, process: &ProgramState) -> bool {
        let thread = |of: &u32| &self.threads[*of as usize];
        let has_begun = |of: &u32| thread(of).start.is_some();
        let is_main = |of: &u32| process.is_main(thread(of).lwp);
        let others = || process.threads.iter().filter(|of| !is_main(of));
        process.threads.iter().any(is_main) && others().all(has_begun) && others().count() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis_tests::{RecordLine, analysed_with, lock, undecided, wrong};
    use super::super::holds::Knowledge;

    /// Two threads have locks and wait for each other's.
    #[test]
    fn a_circle_is_a_deadlock_where_the_records_show_that_releases_are_recorded() {
        let unknown = Knowledge { lacks_settings: true, ..Knowledge::default() };
        let holds = [lock(20, 1, &[16]), lock(21, 2, &[48])].concat();
        let waits: &[RecordLine] = &[(30, 1, "2:2:1", &[48]), (31, 2, "2:2:1", &[16])];
        let found = |lines: &[&[RecordLine<'static>]], knowledge: Knowledge| {
            let (analysis, graph) = analysed_with(&lines.concat(), knowledge);
            (wrong(&analysis, &graph).0, undecided(&analysis, &graph))
        };
        let (deadlock, doubt) = ((vec![vec![1, 2]], vec![]), (vec![], vec![vec![1, 2]]));
        let unlocks: &[RecordLine] = &[(10, 1, "2:4:0", &[80, 0, 0])];
        let unlocks_spin: &[RecordLine] = &[(10, 1, "9:4:0", &[80, 0, 0])];
        assert_eq!(found(&[&holds, waits], Knowledge::default()), deadlock);
        assert_eq!(found(&[&holds, waits], unknown), doubt, "unlocks may have been left out");
        assert_eq!(found(&[unlocks, &holds, waits], unknown), deadlock);
        assert_eq!(found(&[unlocks_spin, &holds, waits], unknown), doubt, "those of another kind");
        // All acquisitions have waited, as at LEVEL=blocked, which leaves out unlocks for which nobody waits.
        let waited: &[RecordLine] =
            &[(11, 1, "2:2:1", &[16]), (12, 2, "2:2:1", &[48]), (13, 1, "2:2:2", &[0, 1]), (14, 2, "2:2:2", &[0, 1])];
        assert_eq!(found(&[unlocks, waited, waits], unknown), doubt);
        // Nor does it show who takes a lock at once that another one has released: here each has what the other one waits for.
        let released: &[RecordLine] = &[(15, 1, "2:4:0", &[16, 0, 1]), (16, 2, "2:4:0", &[48, 0, 1])];
        let (analysis, graph) = analysed_with(&[waited, released, waits].concat(), unknown);
        assert_eq!((wrong(&analysis, &graph), undecided(&analysis, &graph)), ((vec![], vec![]), vec![]));
        assert_eq!(graph.unknown_holders.iter().map(|unknown| unknown.waits.len()).sum::<usize>(), 2);
        // A thread that waits does not release what another one saw that it has.
        let sees: &[RecordLine] = &[(30, 1, "2:2:1", &[48, 0, 0, 2]), (31, 2, "2:2:1", &[16, 0, 0, 1])];
        let begin: &[RecordLine] = &[(5, 2, "1:30:0", &[2])];
        assert_eq!(found(&[&holds, sees], unknown), doubt, "another thread may have got it from thread 2");
        assert_eq!(found(&[begin, &holds, sees], unknown), (vec![vec![2, 1]], vec![]), "there is none");
        // A thread locks what it has.
        let again: &[RecordLine] = &[(30, 1, "2:2:1", &[16, 0, 0, 1])];
        assert_eq!(found(&[&lock(20, 1, &[16]), again], unknown), (vec![vec![1]], vec![]));
    }
}
