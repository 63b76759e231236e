//! The trinfo file: how lines are appended to it.

use spec::buffer::SLOT_PATH_MAX;
use spec::info::escape;
use spec::names::{FileName, PROCESS_MASK};

use super::directory;
use crate::process_state;
use crate::sys::{Fd, Hold, SetOnce, path};

/// The open trinfo, with a buffer that is not on a host's stack.
pub struct InfoWriter {
    fd: Option<Fd>,
    path: [u8; SLOT_PATH_MAX],
    text: [u8; 4096],
    length: usize,
}

static WRITER: SetOnce<InfoWriter> =
    SetOnce::new(InfoWriter { fd: None, path: [0; SLOT_PATH_MAX], text: [0; 4096], length: 0 });
/// The right to use the writer.
static WRITING: Hold = Hold::new();

/// Appends what `content` writes. Does nothing if a thread (perhaps this one, interrupted) is writing already, or if
/// the file cannot be opened.
#[inline(always)]
pub fn append(content: impl FnOnce(&mut InfoWriter)) {
    if !WRITING.take() {
        return;
    }
    // SAFETY: WRITING excludes all others.
    let writer = unsafe { WRITER.get_mut() };
    // What a jump has left is closed by its note.
    core::mem::forget(writer.fd.take());
    if writer.open() {
        content(writer);
        writer.flush();
        writer.fd = None;
    }
    WRITING.release();
}

/// In a forked child: the thread that was writing in the parent does not exist. What it had open is closed by its note.
pub fn forget() {
    // SAFETY: the child has no other thread. If this one forked in a handler that interrupted it here, it finds no file
    // to write to when it goes on.
    core::mem::forget(unsafe { WRITER.get_mut() }.fd.take());
    WRITING.release();
}

impl InfoWriter {
    fn open(&mut self) -> bool {
        let name = FileName::Info(process_state::id() & PROCESS_MASK);
        let path = path::trace_file(&mut self.path, directory::path(), name);
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_NOFOLLOW;
        self.length = 0;
        self.fd = Fd::open(path, flags, 0o600).ok();
        if let Some(fd) = &self.fd {
            // Whatever the umask.
            let _ = fd.set_mode(0o600);
        }
        self.fd.is_some()
    }

    fn flush(&mut self) {
        if let (Some(fd), Some(text)) = (&self.fd, self.text.get(..self.length)) {
            // The records are complete without this file; so an error does not matter.
            let _ = fd.write(text);
        }
        self.length = 0;
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.length == self.text.len() {
                self.flush();
            }
            if let Some(place) = self.text.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
        }
    }

    /// Adds bytes, escaped.
    pub fn escaped(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.raw(escape(byte).as_bytes()));
    }

    /// Adds a line: the key, and the value escaped.
    pub fn line(&mut self, key: &str, value: &[u8]) {
        self.raw(key.as_bytes());
        self.raw(b" ");
        self.escaped(value);
        self.raw(b"\n");
    }

    pub fn number(&mut self, key: &str, value: u64) {
        self.line(key, itoa::Buffer::new().format(value).as_bytes());
    }
}
