//! Where records go: the standard output or a file, a large piece at a time.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::read::handle::Identity;

/// Bytes that are gathered before they are written.
const PIECE: usize = 128 * 1024;

/// Device and inode number of the regular file that output to `path`, or to the standard output, would change.
pub fn identity(path: Option<&Path>) -> Option<Identity> {
    let metadata = match path {
        Some(path) => path.metadata().ok()?,
        None => File::from(io::stdout().as_fd().try_clone_to_owned().ok()?).metadata().ok()?,
    };
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

/// A buffered output. What is left in it is written by [`Output::finish`], not when it is dropped.
pub struct Output {
    sink: Box<dyn Write>,
    buffer: Vec<u8>,
}

impl Output {
    /// The standard output, or `path`, which is made or made empty.
    ///
    /// # Errors
    /// What the system says about `path`.
    pub fn open(path: Option<&Path>) -> io::Result<Output> {
        match path {
            Some(path) => Ok(Output::to(Box::new(File::create(path)?))),
            None => Ok(Output::to(Box::new(io::stdout().lock()))),
        }
    }

    /// An output to `sink`.
    pub fn to(sink: Box<dyn Write>) -> Output {
        Output { sink, buffer: Vec::with_capacity(PIECE + PIECE / 4) }
    }

    /// Lets `add` append to what is to be written.
    ///
    /// # Errors
    /// What writing says.
    pub fn add(&mut self, add: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        add(&mut self.buffer);
        if self.buffer.len() >= PIECE { self.write() } else { Ok(()) }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// What writing says.
    pub fn finish(mut self) -> io::Result<()> {
        self.write()?;
        self.sink.flush()
    }

    fn write(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
