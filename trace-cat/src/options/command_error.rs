//! Why a command ends early.

use crate::support::error::Error;

/// Why a command ends early.
#[derive(Debug)]
pub enum CommandError {
    /// The command line asks for something that cannot be done.
    Usage(String),
    /// A file failed.
    Failed(Error),
}

impl From<Error> for CommandError {
    fn from(error: Error) -> CommandError {
        CommandError::Failed(error)
    }
}
