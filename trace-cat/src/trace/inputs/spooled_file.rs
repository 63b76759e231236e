//! What a pipe or a device gives, in a temporary file: records are read twice.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use log::debug;

use crate::support::diagnostics::Diagnostics;
use crate::support::progress::{Amount, Phase};
use crate::support::temporary_files::temporary_file_error;
use crate::trace::file_handle::FileHandle;

/// Reads the pipe or device at `path` to its end; returns the temporary file with its length.
pub fn spool(path: &Path, diagnostics: &Diagnostics) -> io::Result<(FileHandle, u64)> {
    let mut source = File::open(path)?;
    let mut copy = tempfile::tempfile().map_err(temporary_file_error)?;
    // Progress would disturb a user who types the records on this terminal.
    let phase =
        if source.is_terminal() { Phase::hidden() } else { diagnostics.start_phase("reading", Amount::Unknown) };
    let (mut length, mut buffer) = (0, vec![0; 256 << 10]);
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        copy.write_all(&buffer[..count]).map_err(temporary_file_error)?;
        length += count as u64;
        phase.advance(count as u64);
    }
    debug!("{}: {length} bytes copied to a temporary file", path.display());
    Ok((FileHandle::unnamed(path.to_owned(), copy), length))
}
