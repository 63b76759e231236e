//! Locks that a forked child has with an owner that it does not have: a thread of its parent. If that one forked, the child's thread has
//! what it had.

use super::analysis::Analysis;
use super::object_state::ObjectKind;

impl Analysis {
    /// The first thread of a forked child, if the LWP that a lock's word has is that of the thread that forked it: the thread has the
    /// lock itself, and the child has not released it. `None` if the memory may be shared, or records may be missing that show that.
    pub fn owner_by_fork(&self, process: u32, address: u64, kind: ObjectKind, owner: u64) -> Option<u32> {
        let lwp = u32::try_from(owner).ok()?;
        let parent = self.processes[process as usize].parent?;
        let first = *self.processes[process as usize].threads.first()?;
        let forking = *self.thread_of_lwp.get(&(parent, lwp))?;
        let has_forked = self.threads[forking as usize].tid == self.threads[first as usize].tid;
        let parent_of = |process: &u32| self.processes[*process as usize].parent;
        let is_private = |process: u32| {
            let knowledge = self.processes[process as usize].knowledge;
            match self.object_at(process, address).map(|object| &self.objects[object as usize]) {
                Some(object) => object.kind == kind && !object.may_be_robust,
                // Initialisations are recorded at each level.
                None => knowledge.complete_from == 0 && !knowledge.is_partial,
            }
        };
        (has_forked && std::iter::successors(Some(process), parent_of).all(is_private)).then_some(first)
    }

    /// The thread of an ancestor that had a lock when that forked, by the LWP that the lock's word in the child's memory has. `None`
    /// if the memory may be shared, since an ancestor can release the lock then: only attributes make a lock one for processes.
    pub fn owner_before_fork(&self, process: u32, address: u64, kind: ObjectKind, owner: u64) -> Option<u32> {
        let lwp = u32::try_from(owner).ok().filter(|lwp| *lwp != 0)?;
        let parent_of = |process: &u32| self.processes[*process as usize].parent;
        let ancestors = || std::iter::successors(parent_of(&process), parent_of);
        let is_private = |ancestor: u32| {
            let knowledge = self.processes[ancestor as usize].knowledge;
            let object = self.object_at(ancestor, address).map(|object| &self.objects[object as usize]);
            !knowledge.is_partial && object.is_none_or(|object| object.kind == kind && !object.may_be_robust)
        };
        let owner = ancestors().find_map(|ancestor| self.thread_of_lwp.get(&(ancestor, lwp)).copied())?;
        let is_known = self.object_at(self.threads[owner as usize].process, address).is_some();
        (is_known && ancestors().all(is_private)).then_some(owner)
    }
}
