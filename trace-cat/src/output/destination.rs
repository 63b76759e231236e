//! Where records go: the standard output or a file, a large piece at a time.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::support::diagnostics::Diagnostics;
use crate::support::inherited_state;
use crate::trace::file_handle::FileIdentity;

/// Device and inode number of the regular file that output to `path`, or to the standard output, would change.
pub fn output_identity(path: Option<&Path>) -> Option<FileIdentity> {
    let metadata = match path {
        Some(path) => path.metadata().ok()?,
        None => File::from(io::stdout().as_fd().try_clone_to_owned().ok()?).metadata().ok()?,
    };
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

/// Makes a file that may not grow (RLIMIT_FSIZE) an error, not the end.
pub fn ignore_file_size_signal() {
    // SAFETY: ignoring a signal installs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Where pieces of output go; they are large, so nothing is gathered.
pub struct Output<'a> {
    out: Box<dyn Write + Send>,
    /// Told before the first piece, if pieces may be seen where stderr is: on a terminal, or by way of a pipe and `grep`.
    seen: Option<&'a Diagnostics>,
}

impl Output<'_> {
    /// The standard output, or `path`, which is made or made empty.
    ///
    /// # Errors
    /// What the system says about `path`.
    pub fn open<'a>(path: Option<&Path>, diagnostics: &'a Diagnostics) -> io::Result<Output<'a>> {
        let file = match path {
            Some(path) => File::create(path)?,
            // Writing fails as it would without the runtime's help.
            None if inherited_state::was_closed(libc::STDOUT_FILENO) => File::open("/dev/null")?,
            // Not through io::Stdout, which looks for newlines in all that it writes.
            None => File::from(io::stdout().as_fd().try_clone_to_owned()?),
        };
        let kind = file.metadata()?.file_type();
        let seen = (file.is_terminal() || kind.is_fifo() || kind.is_socket()).then_some(diagnostics);
        Ok(Output { out: Box::new(file), seen })
    }

    /// Writes a piece.
    ///
    /// # Errors
    /// What writing says.
    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        if let Some(diagnostics) = self.seen.take_if(|_| !piece.is_empty()) {
            diagnostics.stop_progress();
        }
        self.out.write_all(piece)
    }

    /// Tells what only the end tells.
    ///
    /// # Errors
    /// What writing says.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
