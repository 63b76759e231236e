//! Whether a process runs, and what its trbuf holds.

use super::leftovers::{CopiedBuffers, ProcessLeftovers};

/// What a trbuf tells of its process.
#[derive(Debug)]
pub enum ProcessState {
    /// There is none, or none that can be read: what the record files hold is all there is.
    None,
    /// The process runs, and its buffers could not be copied.
    Alive,
    /// The process runs; what is in its buffers was copied.
    Running(CopiedBuffers),
    /// The process is gone.
    Dead(ProcessLeftovers),
}

impl ProcessState {
    /// What is in no file, if that is known.
    pub fn leftovers(&self) -> Option<&ProcessLeftovers> {
        match self {
            ProcessState::None | ProcessState::Alive => None,
            ProcessState::Running(copied) => Some(&copied.leftovers),
            ProcessState::Dead(leftovers) => Some(leftovers),
        }
    }
}
