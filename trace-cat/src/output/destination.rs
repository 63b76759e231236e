//! Where output goes: the standard output or a file, a large chunk at a time.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use spec::names::FileName;

use super::pager::Pager;
use crate::support::diagnostics::Diagnostics;
use crate::support::inherited_state;
use crate::trace::file_handle::FileIdentity;
use crate::trace::file_names::split_name;

/// Device and inode number of the regular file that output to `path`, or to the standard output, would change.
pub fn output_identity(path: Option<&Path>) -> Option<FileIdentity> {
    let metadata = match path {
        Some(path) => path.metadata().ok()?,
        None => File::from(io::stdout().as_fd().try_clone_to_owned().ok()?).metadata().ok()?,
    };
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

/// Whether an existing file has the name of one that holds no records and that a trace needs.
pub fn is_needed_by_a_trace(path: &Path) -> bool {
    path.is_file() && split_name(path).1.is_some_and(|name| !matches!(name, FileName::Records { .. }))
}

/// Why such a file is not written.
pub fn needed_by_a_trace() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "it belongs to a trace, which could not be read without it")
}

/// Makes writing beyond RLIMIT_FSIZE fail with an error instead of ending the process.
pub fn ignore_file_size_signal() {
    // SAFETY: ignoring a signal installs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Where chunks of output go. They are large, so they are written without a buffer.
pub struct Output<'a> {
    file: File,
    /// Whose progress line ends before the first chunk, if output may appear where stderr does: on a terminal, or through a
    /// pipe and `grep`.
    progress: Option<&'a Diagnostics>,
    /// Reports what the pager needs that is to be started before the first chunk.
    paging: Option<&'a Diagnostics>,
    pager: Option<Pager>,
}

impl Output<'_> {
    /// The standard output, or the file at `path`, which is created or truncated.
    pub fn open<'a>(path: Option<&Path>, diagnostics: &'a Diagnostics) -> io::Result<Output<'a>> {
        let file = match path {
            Some(path) if is_needed_by_a_trace(path) => {
                return Err(needed_by_a_trace());
            }
            Some(path) => File::create(path)?,
            // The runtime put /dev/null in its place. Writing has to fail as it does on a closed descriptor.
            None if inherited_state::was_closed(libc::STDOUT_FILENO) => File::open("/dev/null")?,
            // io::Stdout would search everything it writes for newlines.
            None => File::from(io::stdout().as_fd().try_clone_to_owned()?),
        };
        let kind = file.metadata()?.file_type();
        let progress = (file.is_terminal() || kind.is_fifo() || kind.is_socket()).then_some(diagnostics);
        Ok(Output { file, progress, paging: None, pager: None })
    }

    /// As [`open`](Output::open), but what goes to a terminal goes through a pager if `paged`.
    pub fn open_paged<'a>(path: Option<&Path>, paged: bool, diagnostics: &'a Diagnostics) -> io::Result<Output<'a>> {
        let output = Output::open(path, diagnostics)?;
        let paging = (paged && output.file.is_terminal()).then_some(diagnostics);
        Ok(Output { paging, ..output })
    }

    /// The file, for a writer of its own. The progress line ends.
    pub fn into_file(self) -> File {
        self.progress.into_iter().for_each(Diagnostics::stop_progress);
        self.file
    }

    pub fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        if let Some(diagnostics) = self.progress.take_if(|_| !chunk.is_empty()) {
            diagnostics.stop_progress();
        }
        if let Some(diagnostics) = self.paging.take_if(|_| !chunk.is_empty()) {
            self.pager = Pager::start(diagnostics);
        }
        match &mut self.pager {
            Some(pager) => pager.write(chunk),
            None => self.file.write_all(chunk),
        }
    }
}
