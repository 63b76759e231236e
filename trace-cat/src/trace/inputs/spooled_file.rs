//! What a pipe or a device gives, in a temporary file: records are read twice.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use log::debug;
use rustix::event::{PollFd, PollFlags, poll};

use crate::support::diagnostics::Diagnostics;
use crate::support::progress::{Amount, Phase};
use crate::support::temporary_files::temporary_file_error;
use crate::trace::file_handle::FileHandle;

/// Reads `source`, a pipe, a device or the rest of a file, to its end; returns the temporary file with its length. `path` is
/// for messages.
pub fn spool(path: &Path, mut source: File, diagnostics: &Diagnostics) -> io::Result<(FileHandle, u64)> {
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
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Whoever shares the standard input with this program may have made it non-blocking.
                let _ = poll(&mut [PollFd::new(&source, PollFlags::IN)], None);
                continue;
            }
            Err(error) => return Err(error),
        };
        copy.write_all(&buffer[..count]).map_err(temporary_file_error)?;
        length += count as u64;
        phase.advance(count as u64);
    }
    debug!("{}: {length} bytes copied to a temporary file", path.display());
    Ok((FileHandle::unnamed(path.to_owned(), copy), length))
}
