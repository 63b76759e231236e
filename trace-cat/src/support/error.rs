//! Why reading a trace or writing the output failed.

use std::{error, fmt, io};

use super::diagnostics::reason;
use super::temporary_files::is_temporary_file_error;

/// A failure that ends the work: of an output, or of a temporary file. Damage in a trace is no error but a
/// [`Diagnostic`](super::diagnostics::Diagnostic).
#[derive(Debug)]
pub struct Error {
    subject: String,
    source: io::Error,
}

impl Error {
    /// The failure of `subject`, a file as a message names it.
    pub(crate) fn new(subject: impl Into<String>, source: io::Error) -> Error {
        Error { subject: subject.into(), source }
    }

    /// The failure of a temporary file.
    pub(crate) fn temporary(source: io::Error) -> Error {
        Error::new("temporary file", source)
    }

    /// The kind of the system's error.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_temporary_file_error(&self.source) {
            // The message itself names the file.
            return out.write_str(&reason(&self.source));
        }
        write!(out, "{}: {}", self.subject, reason(&self.source))
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.source)
    }
}
