//! Whether a process runs, and what its trbuf holds.

use super::leftovers::{Copied, Leftovers};

/// What a trbuf tells of its process.
#[derive(Debug)]
pub enum State {
    /// There is none, or none that can be read: what the record files hold is all there is.
    None,
    /// The process runs, and its buffers could not be copied.
    Alive,
    /// The process runs; what is in its buffers was copied.
    Running(Copied),
    /// The process is gone.
    Dead(Leftovers),
}

impl State {
    /// What is in no file, if that is known.
    pub fn leftovers(&self) -> Option<&Leftovers> {
        match self {
            State::None | State::Alive => None,
            State::Running(copied) => Some(&copied.leftovers),
            State::Dead(leftovers) => Some(leftovers),
        }
    }
}
