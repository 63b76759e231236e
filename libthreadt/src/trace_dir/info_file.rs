//! The trinfo file: how lines are appended to it.

use core::ffi::CStr;

use spec::info::{escape, is_literal};
use spec::names::{FileName, PROCESS_MASK};
use spec::record::NANOS_PER_SECOND;

use super::{directory, sandbox_spares};
use crate::process_state::{self, PLACES, PROCESS, WorkingProcess, of_process};
use crate::sys::diagnostics::{Warning, errno_text, warn};
use crate::sys::path::{self, PATH_MAX};
use crate::sys::{self, Errno, Fd, FileIdentity, Result, SetOnce};

/// What is kept of a process's trinfo from one time that it is open to the next; and buffers, which are not on a host's stack.
///
/// Page by page: the kernel gives a forked child those that it writes to.
#[repr(C, align(4096))]
struct InfoFile {
    /// The file of this process's trinfo, once it has been opened.
    known: Option<FileIdentity>,
    /// The last write has failed, perhaps within a line.
    has_failed: bool,
    path: [u8; PATH_MAX],
    text: [u8; 4096],
}

/// A child that returns into its parent's work goes on in its parent's.
static FILES: [SetOnce<InfoFile>; PLACES] =
    [const { SetOnce::new(InfoFile { known: None, has_failed: false, path: [0; PATH_MAX], text: [0; 4096] }) }; PLACES];

/// The open trinfo.
pub struct InfoWriter {
    file: &'static mut InfoFile,
    /// On the stack of who writes: a child has it too when it returns into its parent's work, and what a jump has left is closed by its
    /// note.
    fd: Option<Fd>,
    /// The process whose file it is: the caller's, unless that is a child which returns into its parent's work.
    process: WorkingProcess,
    /// How much text has not been written.
    length: usize,
    /// The file has just been made in the place of one that was removed.
    is_anew: bool,
}

/// # Safety
/// One thread of the process at a time may use it.
unsafe fn file_of(process: WorkingProcess) -> &'static mut InfoFile {
    // SAFETY: the caller's.
    unsafe { of_process(&FILES, process).get_mut() }
}

/// Appends what `content` writes. Does nothing if a thread (perhaps this one, interrupted) is writing already, or if
/// the file cannot be opened.
#[inline(always)]
pub fn append(content: impl FnOnce(&mut InfoWriter)) {
    if PROCESS.writing_info.take() {
        append_held(content);
    }
}

/// The same, but opens the file only if there is something to write, by the answer of `is_needed`. The one writer asks, where the
/// process may open files.
#[inline(always)]
pub fn append_if(is_needed: impl FnOnce() -> bool, content: impl FnOnce(&mut InfoWriter)) {
    if sandbox_spares::hindrance().is_some() || !PROCESS.writing_info.take() {
        return;
    }
    let process = WorkingProcess::current();
    if is_needed() || was_removed() {
        append_held(content);
    } else if process.is_current() {
        PROCESS.writing_info.release();
    }
}

/// Whether somebody has removed the file that this process has made or found.
fn was_removed() -> bool {
    // SAFETY: the one writer calls this.
    let file = unsafe { file_of(WorkingProcess::current()) };
    let path = path::trace_file(&mut file.path, directory::path(), own_name());
    file.known.is_some_and(|known| known.is_gone_from(path))
}

/// Calls `work` as the one writer, without the file, unless a thread is writing.
pub fn in_turn(work: impl FnOnce()) {
    if !PROCESS.writing_info.take() {
        return;
    }
    let process = WorkingProcess::current();
    if sandbox_spares::hindrance().is_none() {
        work();
    }
    if process.is_current() {
        PROCESS.writing_info.release();
    }
}

/// The same as [`append`], but waits up to a second or so for another thread that is writing; whether `content` was called.
#[inline(always)]
pub fn append_in_turn(content: impl FnOnce(&mut InfoWriter)) -> bool {
    const TRIES: u32 = 10_000;
    const PAUSE_NS: i64 = 50_000;
    for _ in 0..TRIES {
        if PROCESS.writing_info.take() {
            return append_held(content);
        }
        // This thread itself was interrupted by a signal handler.
        if PROCESS.writing_info.holder().is_some_and(|holder| holder.lwp() == sys::thread_id()) {
            return false;
        }
        sys::sleep(PAUSE_NS);
    }
    false
}

#[inline(always)]
fn append_held(content: impl FnOnce(&mut InfoWriter)) -> bool {
    let process = WorkingProcess::current();
    // SAFETY: the caller has taken the right, which excludes all others.
    let file = unsafe { file_of(process) };
    let mut writer = InfoWriter { file, fd: None, process, length: 0, is_anew: false };
    let is_open = writer.open();
    if is_open {
        content(&mut writer);
        writer.flush();
    }
    // Before others may write.
    drop(writer);
    if process.is_current() {
        PROCESS.writing_info.release();
    }
    is_open
}

/// Lets what follows go to the trinfo of the directory to which the process has moved.
pub fn begin_anew() {
    if PROCESS.writing_info.take() {
        // SAFETY: the right excludes all others.
        unsafe { file_of(WorkingProcess::current()) }.known = None;
        PROCESS.writing_info.release();
    }
}

/// Removes the trinfo that this process has made or found.
pub fn remove() {
    if !PROCESS.writing_info.take() {
        return;
    }
    // SAFETY: the right excludes all others.
    let file = unsafe { file_of(WorkingProcess::current()) };
    if file.known.take().is_some() {
        let _ = path::unlink(path::trace_file(&mut file.path, directory::path(), own_name()));
    }
    PROCESS.writing_info.release();
}

/// Lets others write, or the thread that ends the process or calls exec, although the thread `lwp` was at it, perhaps within a line.
pub fn give_up(lwp: u32) {
    if PROCESS.writing_info.holder().is_some_and(|holder| holder.lwp() == lwp) {
        // SAFETY: that thread alone has the right, and goes on in another place.
        unsafe { file_of(WorkingProcess::current()) }.has_failed = true;
        PROCESS.writing_info.release();
    }
}

/// In a forked child, which has no other thread: the one that was writing in the parent does not exist.
pub fn forget() {
    begin_place();
    PROCESS.writing_info.release();
}

/// Begins without a known file where the process has another place than before, which may have been an ancestor's.
pub fn begin_place() {
    // SAFETY: nobody uses the new place yet. What this thread has interrupted goes on with the one before.
    let file = unsafe { file_of(WorkingProcess::current()) };
    (file.known, file.has_failed) = (None, false);
}

/// Opens the trinfo at `path` for appending, or makes it. The first time an existing one is that of the program before
/// an exec; from then on the file is `known`. Returns which one it is, and whether it is new: the kernel may have given it the number
/// of the one that was removed.
fn open(path: &CStr, known: Option<FileIdentity>) -> Result<(Fd, FileIdentity, bool)> {
    let flags = libc::O_WRONLY | libc::O_APPEND;
    if let Some(identity) = known {
        match Fd::open_known(path, flags, identity, true, sys::thread_id()) {
            // It was removed; what follows goes to a new one.
            Err(Errno(libc::ENOENT)) => {}
            opened => return opened.map(|(fd, _)| (fd, identity, false)),
        }
    }
    match Fd::create(path, flags) {
        Err(Errno(libc::EEXIST)) => Fd::open_trusted(path, flags).map(|(fd, identity, _)| (fd, identity, false)),
        created => created.map(|(fd, identity)| (fd, identity, true)),
    }
}

fn own_name() -> FileName {
    FileName::Info(process_state::id() & PROCESS_MASK)
}

/// FNV-1a, but never 0: by which a line is recognised that is there already.
pub fn nonzero_hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

/// A number in hexadecimal digits, `0x1f`.
pub fn hex_number(number: u64) -> impl Iterator<Item = u8> {
    let digits = (16 - number.leading_zeros() / 4).max(1);
    b"0x".iter().copied().chain((0..digits).rev().map(move |place| spec::hex_digit((number >> (4 * place)) as u32)))
}

/// A time in seconds, the separator, and nanoseconds with their leading zeros.
pub fn time_text(time: u64, separator: u8) -> impl Iterator<Item = u8> {
    let (mut seconds, mut nanoseconds) = (itoa::Buffer::new(), itoa::Buffer::new());
    // The leading digit keeps the zeros behind it.
    let fraction = nanoseconds.format(NANOS_PER_SECOND + time % NANOS_PER_SECOND).as_bytes();
    let mut text = [0; 32];
    let whole = seconds.format(time / NANOS_PER_SECOND).as_bytes();
    let bytes = whole.iter().chain([&separator]).chain(fraction.get(1..).unwrap_or_default());
    let length = text.iter_mut().zip(bytes).map(|(place, &byte)| *place = byte).count();
    text.into_iter().take(length)
}

impl InfoWriter {
    fn open(&mut self) -> bool {
        if sandbox_spares::hindrance().is_some() {
            return false;
        }
        let path = path::trace_file(&mut self.file.path, directory::path(), own_name());
        let before = self.file.known;
        if !self.process.is_current() {
            return false;
        }
        let opened = sys::repeat_if_closed(|| open(path, before));
        if !self.process.is_current() {
            return false;
        }
        match opened {
            Ok((fd, identity, is_new)) => {
                self.is_anew = before.is_some_and(|before| is_new || before != identity);
                self.file.known = Some(identity);
                self.fd = Some(fd);
            }
            // Something else has the name.
            Err(errno) if errno.is_foreign_file() && before.is_none() => {
                warn(Warning::Info, &[b"'", path.to_bytes(), b"' is not used: ", errno_text(errno)]);
            }
            Err(_) => {}
        }
        if core::mem::take(&mut self.file.has_failed) {
            self.raw(b"\n");
        }
        self.fd.is_some()
    }

    /// Whether the file lacks what was written before, because somebody has removed that one.
    pub fn is_anew(&self) -> bool {
        self.is_anew
    }

    /// Writes what was added; whether all has been written that was added since the file was opened. The records are
    /// complete without this file, so nothing else depends on it.
    pub fn flush(&mut self) -> bool {
        if self.length != 0
            && self.process.is_current()
            && let Some(fd) = &self.fd
        {
            self.file.has_failed |= fd.write(self.file.text.get(..self.length).unwrap_or(b"")).is_err();
        }
        self.length = 0;
        !self.file.has_failed
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.length == self.file.text.len() {
                self.flush();
            }
            let room = self.file.text.get_mut(self.length..).unwrap_or_default();
            let count = room.iter_mut().zip(rest).map(|(place, &byte)| *place = byte).count();
            self.length += count;
            rest = rest.get(count..).unwrap_or_default();
        }
    }

    /// Adds bytes, escaped.
    pub fn escaped(&mut self, bytes: &[u8]) {
        for run in bytes.split_inclusive(|&byte| !is_literal(byte)) {
            match run.split_last() {
                Some((&last, before)) if !is_literal(last) => {
                    self.raw(before);
                    self.raw(escape(last).as_bytes());
                }
                _ => self.raw(run),
            }
        }
    }

    /// Adds a line: the key, and the value escaped.
    pub fn line(&mut self, key: &str, value: &[u8]) {
        self.raw(key.as_bytes());
        self.raw(b" ");
        self.escaped(value);
        self.raw(b"\n");
    }

    /// Adds a note: a sentence, of these parts.
    pub fn note(&mut self, parts: &[&[u8]]) {
        self.raw(b"note ");
        parts.iter().for_each(|part| self.raw(part));
        self.raw(b"\n");
    }

    /// Adds a number in hexadecimal digits.
    pub fn hex(&mut self, number: u64) {
        hex_number(number).for_each(|digit| self.raw(&[digit]));
    }

    pub fn number(&mut self, key: &str, value: u64) {
        self.line(key, itoa::Buffer::new().format(value).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// Whatever numbers the kernel gives them: a file with a number that is in use again looks the same.
    #[test]
    #[cfg_attr(miri, ignore = "files")]
    fn a_file_in_the_place_of_a_removed_one_is_new() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trinfo.0000001");
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        let (_, made, is_new) = open(&name, None).unwrap();
        assert!(is_new);
        let (_, found, is_new) = open(&name, Some(made)).unwrap();
        assert!(found == made && !is_new);
        assert!(!open(&name, None).unwrap().2, "as after an exec");
        std::fs::remove_file(&path).unwrap();
        let (_, anew, is_new) = open(&name, Some(made)).unwrap();
        assert!(is_new);
        assert_eq!(anew.inode, std::fs::metadata(&path).unwrap().ino());
    }
}
