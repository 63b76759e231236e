//! Temporary files that are written part by part, and read with all parts at once.

use std::env;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::diagnostics::reason;

/// An error of a temporary file, which says where that is.
#[derive(Debug)]
struct TemporaryFileError(io::Error);

impl fmt::Display for TemporaryFileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "temporary file in {}: {}", env::temp_dir().display(), reason(&self.0))
    }
}

impl Error for TemporaryFileError {}

/// Makes an error tell that it is about a temporary file, and not about what else is being done.
pub fn temporary_file_error(error: io::Error) -> io::Error {
    if is_temporary_file_error(&error) { error } else { io::Error::new(error.kind(), TemporaryFileError(error)) }
}

/// Whether an error tells by itself that it is about a temporary file.
pub fn is_temporary_file_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<TemporaryFileError>())
}

/// Bytes that all readers together may hold, if there are not too many for it.
const MEMORY: usize = 16 << 20;

/// A temporary file being written. It has no name, so it goes when the program ends, however that happens.
#[derive(Debug)]
pub struct TemporaryRuns {
    file: BufWriter<File>,
    at: u64,
    ends: Vec<u64>,
}

impl TemporaryRuns {
    /// An empty one in the directory for temporary files (`TMPDIR`).
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<TemporaryRuns> {
        let file = tempfile::tempfile().map_err(temporary_file_error)?;
        Ok(TemporaryRuns { file: BufWriter::with_capacity(1 << 16, file), at: 0, ends: Vec::new() })
    }

    /// Adds to the current part.
    ///
    /// # Errors
    /// What writing says.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.file.write_all(bytes).map_err(temporary_file_error)
    }

    /// Ends the current part; the next one begins.
    pub fn end(&mut self) {
        self.ends.push(self.at);
    }

    /// How many parts have ended.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The file, whose parts do not matter.
    ///
    /// # Errors
    /// What writing says.
    pub fn into_file(self) -> io::Result<File> {
        self.file.into_inner().map_err(|error| temporary_file_error(error.into_error()))
    }

    /// A reader for each part that has ended.
    ///
    /// # Errors
    /// What writing says.
    pub fn into_readers(self) -> io::Result<Vec<BufReader<TemporaryRun>>> {
        let TemporaryRuns { file, ends, .. } = self;
        let file = Arc::new(file.into_inner().map_err(|error| temporary_file_error(error.into_error()))?);
        let buffer = (MEMORY / ends.len().max(1)).clamp(4 << 10, 64 << 10);
        let mut at = 0;
        let part = |end| {
            let part = TemporaryRun { file: file.clone(), at, end };
            at = end;
            BufReader::with_capacity(buffer, part)
        };
        Ok(ends.into_iter().map(part).collect())
    }
}

/// A part of a file, read from its beginning to its end.
#[derive(Debug)]
pub struct TemporaryRun {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for TemporaryRun {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.file.read_at(&mut buffer[..wanted], self.at).map_err(temporary_file_error)?;
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_that_it_is_about_a_temporary_file() {
        let error = temporary_file_error(temporary_file_error(io::Error::from_raw_os_error(libc::ENOSPC)));
        assert!(is_temporary_file_error(&error) && error.kind() == io::ErrorKind::StorageFull);
        let expected = format!("temporary file in {}: No space left on device", env::temp_dir().display());
        assert_eq!(reason(&error), expected);
        assert!(!is_temporary_file_error(&io::Error::other("x")));
    }
}
