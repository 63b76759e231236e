//! Temporary files. They have no name, so they go when the program ends, however it ends.

use std::env;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::diagnostics::reason;

/// Bytes that are gathered before they are written.
const WRITE_BUFFER: usize = 256 << 10;

/// The error of a temporary file, which names the directory for temporary files.
#[derive(Debug)]
struct TemporaryFileError(io::Error);

impl fmt::Display for TemporaryFileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "temporary file in {}: {}", env::temp_dir().display(), reason(&self.0))
    }
}

impl Error for TemporaryFileError {}

/// Makes `error` name the directory for temporary files, since it may be reported as an error of the output.
pub fn temporary_file_error(error: io::Error) -> io::Error {
    if is_temporary_file_error(&error) { error } else { io::Error::new(error.kind(), TemporaryFileError(error)) }
}

/// True if `error` is about a temporary file, and its message names the directory.
pub fn is_temporary_file_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<TemporaryFileError>())
}

/// A temporary file that is written once, from its beginning to its end.
#[derive(Debug)]
pub struct TemporaryFile {
    writer: BufWriter<File>,
    /// The number of bytes that were pushed.
    pub length: u64,
}

impl TemporaryFile {
    /// An empty file in the directory for temporary files (`TMPDIR`).
    pub fn new() -> io::Result<TemporaryFile> {
        let file = tempfile::tempfile().map_err(temporary_file_error)?;
        Ok(TemporaryFile { writer: BufWriter::with_capacity(WRITE_BUFFER, file), length: 0 })
    }

    /// Appends `bytes`, which may stay in memory until [`flush`](TemporaryFile::flush) is called.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.writer.write_all(bytes).map_err(temporary_file_error)
    }

    /// Writes what is still in memory.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(temporary_file_error)
    }

    /// The file, without the bytes that are not flushed.
    pub fn file(&self) -> &File {
        self.writer.get_ref()
    }
}

/// Reads a range of a temporary file.
pub struct TemporaryFileRange<'a> {
    pub file: &'a File,
    /// What is not read yet.
    pub range: Range<u64>,
}

impl Read for TemporaryFileRange<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.file.read_at(&mut buffer[..wanted], self.range.start).map_err(temporary_file_error)?;
        self.range.start += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_directory_for_temporary_files() {
        let error = temporary_file_error(temporary_file_error(io::Error::from_raw_os_error(libc::ENOSPC)));
        assert!(is_temporary_file_error(&error) && error.kind() == io::ErrorKind::StorageFull);
        let expected = format!("temporary file in {}: No space left on device", env::temp_dir().display());
        assert_eq!(reason(&error), expected);
        assert!(!is_temporary_file_error(&io::Error::other("x")));
    }
}
