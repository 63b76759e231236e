//! Whether a process runs, and what its trbuf holds.

use super::leftovers::{CopiedBuffers, ProcessLeftovers};

/// The state of a process, as its trbuf shows it.
#[derive(Debug)]
pub enum ProcessState {
    /// There is no trbuf, or none that can be read: only the record files hold records.
    None,
    /// The process runs, and its buffers could not be copied.
    Alive,
    /// The process runs, and its buffers were copied.
    Running(CopiedBuffers),
    /// The process is gone.
    Dead(ProcessLeftovers),
}

impl ProcessState {
    /// What is in no record file, if that is known.
    pub fn leftovers(&self) -> Option<&ProcessLeftovers> {
        match self {
            ProcessState::None | ProcessState::Alive => None,
            ProcessState::Running(copied) => Some(&copied.leftovers),
            ProcessState::Dead(leftovers) => Some(leftovers),
        }
    }
}
