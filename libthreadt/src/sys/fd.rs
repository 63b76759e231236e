//! File descriptors. They are held briefly: a file is opened, used and closed.

use core::ffi::{CStr, c_int};

use spec::file_systems::{has_reliable_leases, is_remote};

use super::call::{Errno, Result, call, filled_by};
use super::descriptor::{close, stat};
use super::file_notes::{Note, NoteOrNone};
use super::file_size::file_size_limit;
use super::host_numbers;
use super::open_files;
use super::opened_before;
use super::process::thread_id;
use super::signals::BlockedSignals;
use super::stack::stack_pointer;
use super::standard_numbers;

/// Repeats a call that a signal interrupted, as some file systems return `EINTR` whenever a signal is pending. It gives
/// up after a while: a profiler's timer may fire faster than the call is done.
fn uninterrupted(mut call: impl FnMut() -> Result<usize>) -> Result<usize> {
    let mut result = call();
    for _ in 0..100 {
        if result != Err(Errno(libc::EINTR)) {
            break;
        }
        result = call();
    }
    result
}

/// Repeats `write`, which gets how many bytes are written already, until `length` bytes are.
fn write_all(length: usize, write: impl Fn(usize) -> Result<usize>) -> Result {
    let mut done = 0;
    while done < length {
        match write(done) {
            Ok(0) => return Err(Errno(libc::ENOSPC)),
            Ok(written) => done += written,
            Err(Errno(libc::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// A file descriptor that is closed when it goes out of scope. A function that holds one must not call the host's code.
///
/// Where a jump or a fork leaves one behind, its note (`open_files`) leads to it.
#[derive(Debug)]
pub struct Fd {
    pub(super) number: c_int,
    pub(super) note: NoteOrNone,
}

impl Drop for Fd {
    fn drop(&mut self) {
        // Of what leads nowhere in a forked child the program may have closed the number, and have got it for a file of its own. Where it
        // was being moved, the other number leads to the file.
        let is_detached = self.note.is_some_and(Note::is_detached);
        if !self.is_disowned() && (!is_detached || self.is_still_at(self.number)) {
            close(self.number);
        }
        Note::end(self.note);
    }
}

impl Fd {
    /// As [`Fd::open_inode`], for a file of which nothing is known.
    pub(super) fn open(path: &CStr, flags: c_int, mode: u32) -> Result<Fd> {
        Fd::open_inode(path, flags, mode, 0, thread_id())?.kept_apart()
    }

    /// Opens `path`; the descriptor does not survive an exec. For the functions in `open`, which check what it is. `inode` is
    /// the file's inode number if that is known, else 0, and `lwp` the calling thread's.
    pub(super) fn open_inode(path: &CStr, flags: c_int, mode: u32, inode: u64, lwp: u32) -> Result<Fd> {
        let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY | open_files::MARK;
        let place = stack_pointer();
        if inode != 0 {
            opened_before::add_inode(inode);
        }
        // A jump behind the call would leave a number that nobody knows, of a file that nobody knows. Where that is known, others may be
        // opening theirs, too, so that it takes long to find the number; in a program that leaves writes, signals wait each time.
        let must_block = inode == 0 || open_files::are_left();
        let blocked = if must_block { BlockedSignals::unless_others_get_them() } else { None };
        let note = host_numbers::without_announcement(lwp, || Note::begin(lwp, place, inode), Note::end);
        let (opened, blocked_until_moved) = standard_numbers::while_taken(lwp, || {
            let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, mode as usize];
            // SAFETY: the path is NUL-terminated.
            let number = uninterrupted(|| unsafe { call(libc::SYS_openat, arguments) })? as c_int;
            opened_before::add_number(number);
            Ok(number)
        });
        let number = match opened {
            Ok(number) => number,
            Err(errno) => {
                Note::end(note);
                return Err(errno);
            }
        };
        let mut fd = Fd { number, note };
        fd.note_number();
        let is_standard = standard_numbers::is_standard(number);
        if is_standard {
            // The host has closed it by an instruction of its own, or within libc; what it writes there must not reach our file.
            standard_numbers::note_closing();
        }
        if (is_standard || host_numbers::is_avoided(number, lwp))
            && let Err(errno) = fd.move_to(3, true)
        {
            return fd.unless_replaced().and(Err(errno));
        }
        drop(blocked_until_moved);
        if inode == 0 {
            fd.note_inode();
        }
        drop(blocked);
        Ok(fd)
    }

    /// The file is not this thread's any more: a handler that has interrupted it has forked a child which shares the table of
    /// descriptors, of which this is the thread, or has left the table.
    pub(super) fn is_disowned(&self) -> bool {
        self.note.is_some_and(Note::is_disowned)
    }

    /// The number as a system call's argument; one by which no file can be open if the file is not this thread's any more.
    pub(super) fn for_call(&self) -> usize {
        if self.is_disowned() { usize::MAX } else { self.number as usize }
    }

    fn note_inode(&self) {
        let Ok(stat) = self.stat() else { return };
        opened_before::add_inode(stat.st_ino);
        if let Some(note) = self.note {
            note.set_inode(stat.st_ino);
        }
    }

    /// Bytes read into `buffer` from `at` on; 0 at the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<usize> {
        // SAFETY: the buffer is writable.
        unsafe { call(libc::SYS_pread64, [self.for_call(), buffer.as_mut_ptr() as usize, buffer.len(), at as usize]) }
    }

    /// Bytes read into `buffer`; 0 at the end of the file.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        // SAFETY: the buffer is writable.
        unsafe { call(libc::SYS_read, [self.for_call(), buffer.as_mut_ptr() as usize, buffer.len()]) }
    }

    /// Writes the `length` bytes that begin at `text` at offset `at` of the file. `EBADF` also if it cannot be done because the host has
    /// taken the number, for a pipe for example.
    ///
    /// # Safety
    /// The bytes must be readable.
    pub unsafe fn write_at(&self, text: *const u8, length: usize, at: u64) -> Result {
        write_all(length, |done| {
            let text = text.wrapping_add(done) as usize;
            // SAFETY: `done` is less than `length`, so the range stays within what the caller grants.
            unsafe { call(libc::SYS_pwrite64, [self.for_call(), text, length - done, at as usize + done]) }
        })
        .map_err(|errno| if self.is_hosts() { Errno(libc::EBADF) } else { errno })
    }

    /// Lets the kernel begin to write to the disk what has been written to the file.
    pub fn begin_write_back(&self) {
        let flags = libc::SYNC_FILE_RANGE_WRITE as usize;
        // SAFETY: no memory is involved.
        let _ = unsafe { call(libc::SYS_sync_file_range, [self.for_call(), 0, 0, flags]) };
    }

    /// Appends `text` to a file that was opened for appending, or is new. `EFBIG` if the process may not write so far:
    /// the signal that the write would raise could kill the host.
    pub fn write(&self, text: &[u8]) -> Result {
        if (self.stat()?.st_size as u64).saturating_add(text.len() as u64) > file_size_limit() {
            return Err(Errno(libc::EFBIG));
        }
        write_all(text.len(), |done| {
            let unwritten = text.get(done..).unwrap_or(b"");
            // SAFETY: the text is readable.
            unsafe { call(libc::SYS_write, [self.for_call(), unwritten.as_ptr() as usize, unwritten.len()]) }
        })
    }

    pub fn stat(&self) -> Result<libc::stat> {
        stat(self.for_call() as c_int)
    }

    pub fn set_mode(&self, mode: u32) -> Result {
        // SAFETY: no memory is involved.
        unsafe { call(libc::SYS_fchmod, [self.for_call(), mode as usize]) }.map(drop)
    }

    /// Gives the file to the user `uid`.
    pub fn set_owner(&self, uid: u32) -> Result {
        // SAFETY: no memory is involved. The group stays.
        unsafe { call(libc::SYS_fchown, [self.for_call(), uid as usize, u32::MAX as usize]) }.map(drop)
    }

    /// Makes the file `length` bytes long. Fails with `EFBIG` as [`Fd::write`] does.
    pub fn truncate(&self, length: u64) -> Result {
        if length > file_size_limit() {
            return Err(Errno(libc::EFBIG));
        }
        // SAFETY: no memory is involved.
        unsafe { call(libc::SYS_ftruncate, [self.for_call(), length as usize]) }.map(drop)
    }

    /// Reserves disk space for a range, so that touching its mapping cannot fail; the file grows to cover it. Fails
    /// with `EFBIG` as [`Fd::write`] does, and with `EOPNOTSUPP` where a server has the file: when it goes away, is
    /// restarted or denies access, touching a mapped page raises SIGBUS, whatever it has reserved.
    pub fn reserve(&self, at: u64, length: u64) -> Result {
        if at.saturating_add(length) > file_size_limit() {
            return Err(Errno(libc::EFBIG));
        }
        if self.is_on_server() == Ok(true) {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        let arguments = [self.for_call(), 0, at as usize, length as usize];
        // SAFETY: no memory is involved.
        uninterrupted(|| unsafe { call(libc::SYS_fallocate, arguments) }).map(drop)
    }

    /// Maps `length` bytes from `at` on, shared. The kernel prepares single pages, those that are touched ([`super::read_ahead`]).
    pub fn map(&self, at: u64, length: usize) -> Result<*mut u8> {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let arguments = [0, length, protection, libc::MAP_SHARED as usize, self.for_call(), at as usize];
        // SAFETY: the kernel chooses a free range, and the advice changes no contents.
        unsafe {
            let address = call(libc::SYS_mmap, arguments)?;
            let _ = call(libc::SYS_madvise, [address, length, libc::MADV_RANDOM as usize]);
            Ok(address as *mut u8)
        }
    }

    /// Maps `length` bytes from `at` on, shared, in the place of what is at `address`.
    ///
    /// # Safety
    /// As for [`super::replace_by_private`].
    pub unsafe fn map_over(&self, at: u64, address: *mut u8, length: usize) -> Result {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as usize;
        // SAFETY: the caller owns the range.
        unsafe { call(libc::SYS_mmap, [address as usize, length, protection, flags, self.for_call(), at as usize]) }
            .map(drop)
    }

    /// The file's file system, and how much of it is free.
    pub fn file_system(&self) -> Result<libc::statfs> {
        // SAFETY: the kernel fills the struct when it returns 0.
        unsafe { filled_by(|system| call(libc::SYS_fstatfs, [self.for_call(), system])) }
    }

    /// Whether the file is on a network file system or one in user space.
    fn is_on_server(&self) -> Result<bool> {
        Ok(is_remote(self.file_system()?.f_type as u32))
    }

    /// Whether no process, of any namespace, has the file open or mapped for writing.
    ///
    /// `self` must have been opened read-only. The result is `Err` where the file system has no leases, or grants them
    /// without knowing all writers: overlays count those of the layer below, network file systems this machine's.
    pub fn has_no_writer(&self) -> Result<bool> {
        if !has_reliable_leases(self.file_system()?.f_type as u32) {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        const F_SETSIG: c_int = 10;
        let control = |command: c_int, argument: c_int| {
            // SAFETY: no memory is involved.
            unsafe { call(libc::SYS_fcntl, [self.for_call(), command as usize, argument as usize]) }
        };
        // When somebody opens the file for writing while the lease is held (trace-cat --recover), the kernel sends a
        // signal. SIGIO, the default one, would end the host; SIGURG is ignored by default.
        control(F_SETSIG, libc::SIGURG)?;
        match control(libc::F_SETLEASE, libc::F_RDLCK) {
            Ok(_) => {
                let _ = control(libc::F_SETLEASE, libc::F_UNLCK);
                Ok(true)
            }
            Err(Errno(libc::EAGAIN)) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// The next directory entries, as `getdents64` gives them; 0 bytes at the end.
    pub fn directory_entries(&self, buffer: &mut [u8]) -> Result<usize> {
        // SAFETY: the buffer is writable.
        unsafe { call(libc::SYS_getdents64, [self.for_call(), buffer.as_mut_ptr() as usize, buffer.len()]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_errno_values() {
        assert_eq!(Fd::open(c"/nonexistent/file", libc::O_RDONLY, 0).unwrap_err(), Errno(libc::ENOENT));
    }

    /// The program has made a pipe in the place of the file: the file is to be opened anew, and no error to be reported.
    #[test]
    fn a_write_to_what_has_taken_the_number_fails_as_if_it_were_closed() {
        use std::os::fd::AsRawFd as _;

        let (_reader, writer) = std::io::pipe().unwrap();
        let file = Fd::open(c"/dev/null", libc::O_WRONLY, 0).unwrap();
        // SAFETY: the text is readable.
        let write = || unsafe { file.write_at(b"text".as_ptr(), 4, 0) };
        assert_eq!(write(), Ok(()));
        // SAFETY: the number is this test's.
        assert_eq!(unsafe { libc::dup2(writer.as_raw_fd(), file.number) }, file.number);
        assert_eq!(write(), Err(Errno(libc::EBADF)));
        close(file.number);
        file.forget();
    }
}
