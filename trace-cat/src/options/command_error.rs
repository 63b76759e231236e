//! Why a command fails.

use crate::support::error::Error;

/// Why a command fails.
#[derive(Debug)]
pub enum CommandError {
    /// The command line asks for something that cannot be done.
    Usage(String),
    /// The records do not show what was asked for.
    NotKnown(String),
    /// Reading or writing failed.
    Failed(Error),
}

impl From<Error> for CommandError {
    fn from(error: Error) -> CommandError {
        CommandError::Failed(error)
    }
}
