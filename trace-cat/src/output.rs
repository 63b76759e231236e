//! Where records go: the standard output or a file, a large piece at a time.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::read::handle::Identity;

/// Device and inode number of the regular file that output to `path`, or to the standard output, would change.
pub fn identity(path: Option<&Path>) -> Option<Identity> {
    let metadata = match path {
        Some(path) => path.metadata().ok()?,
        None => File::from(io::stdout().as_fd().try_clone_to_owned().ok()?).metadata().ok()?,
    };
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

/// Where pieces of output go; they are large, so nothing is gathered.
pub struct Output(Box<dyn Write + Send>);

impl Output {
    /// The standard output, or `path`, which is made or made empty.
    ///
    /// # Errors
    /// What the system says about `path`.
    pub fn open(path: Option<&Path>) -> io::Result<Output> {
        match path {
            Some(path) => Ok(Output(Box::new(File::create(path)?))),
            // Not through io::Stdout, which looks for newlines in all that it writes.
            None => Ok(Output(Box::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)))),
        }
    }

    /// Writes a piece.
    ///
    /// # Errors
    /// What writing says.
    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.0.write_all(piece)
    }

    /// Tells what only the end tells.
    ///
    /// # Errors
    /// What writing says.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}
