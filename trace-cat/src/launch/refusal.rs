//! Why a program is not run, and the exit status for it.

use std::path::Path;

/// The exit status when trace-cat itself fails, as `env` and `timeout` have it.
pub const OWN_FAILURE: u8 = 125;
/// The exit status when the program exists and cannot be executed.
pub const CANNOT_EXECUTE: u8 = 126;
/// The exit status when there is no such program.
pub const NOT_FOUND: u8 = 127;

/// Why the program was not run.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The exit status.
    pub status: u8,
    /// The reason, in one line.
    pub message: String,
}

impl Refusal {
    /// trace-cat's own failure with a file.
    pub fn own_failure(path: &Path, why: impl std::fmt::Display) -> Refusal {
        Refusal::new(OWN_FAILURE, format_args!("{}: {why}", path.display()))
    }

    /// A refusal with this status and this reason.
    pub fn new(status: u8, message: impl std::fmt::Display) -> Refusal {
        Refusal { status, message: message.to_string() }
    }
}
