//! Which waits are accounted. Who holds what is found from all records.

/// An empty list selects all.
#[derive(Clone, Debug, Default)]
pub struct WaitSelection {
    pub pids: Vec<u32>,
    /// LWPs of the threads that wait.
    pub lwps: Vec<u32>,
    /// Addresses of objects.
    pub objects: Vec<u64>,
}

impl WaitSelection {
    /// Whether waits of a thread for an object are selected; `None` stands for the end of a thread, which is no object.
    pub fn wants(&self, pid: u32, lwp: u32, address: Option<u64>) -> bool {
        let is_object = || address.is_some_and(|address| self.objects.contains(&address));
        self.wants_process(pid)
            && (self.lwps.is_empty() || self.lwps.contains(&lwp))
            && (self.objects.is_empty() || is_object())
    }

    /// Whether anything of a process is selected.
    pub fn wants_process(&self, pid: u32) -> bool {
        self.pids.is_empty() || self.pids.contains(&pid)
    }
}
