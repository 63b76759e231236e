//! Calls on descriptors that may be the host's.

use core::ffi::c_int;

use super::call::{Errno, Result, call, filled_by};

/// The status of the file behind a descriptor.
pub fn stat(fd: c_int) -> Result<libc::stat> {
    // SAFETY: the kernel fills the struct when it returns 0.
    unsafe { filled_by(|stat| call(libc::SYS_fstat, [fd as usize, stat])) }
}

/// The flags of a descriptor (`F_GETFL`, `F_GETFD`); none if it is not open.
pub fn control(fd: c_int, command: c_int) -> c_int {
    // SAFETY: no memory is involved.
    unsafe { call(libc::SYS_fcntl, [fd as usize, command as usize]) }.map_or(0, |flags| flags as c_int)
}

/// Closes a descriptor of this library.
pub fn close(fd: c_int) {
    // SAFETY: this library opened it.
    let _ = unsafe { call(libc::SYS_close, [fd as usize]) };
}

/// Whether a file is open by this number.
pub(super) fn is_open(number: c_int) -> bool {
    // SAFETY: no memory is involved.
    unsafe { call(libc::SYS_fcntl, [number as usize, libc::F_GETFD as usize]) }.is_ok()
}

/// How many numbers that are not open end a search of all.
const HOLE: u32 = 1024;

/// All numbers that are open, but for those behind a long hole.
pub(super) fn open_numbers() -> impl Iterator<Item = c_int> {
    let mut unused = 0;
    let before_hole = (0..).map(move |number| (number, is_open(number))).take_while(move |(_, is_open)| {
        unused = if *is_open { 0 } else { unused + 1 };
        unused < HOLE
    });
    before_hole.filter(|(_, is_open)| *is_open).map(|(number, _)| number)
}

/// Whether a write to the descriptor, one below 64, would neither wait nor fail for want of a reader.
pub fn is_writable(fd: c_int) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one struct, which is writable; the call does not wait.
    match unsafe { call(libc::SYS_poll, [&raw mut poll as usize, 1]) } {
        // The kernel polls no more descriptors than may be opened: none.
        Err(Errno(libc::EINVAL)) => is_selected_for_writing(fd),
        ready => ready == Ok(1) && poll.revents == libc::POLLOUT,
    }
}

/// As [`is_writable`], but `false` also if there is something to be read.
fn is_selected_for_writing(fd: c_int) -> bool {
    let asked = 1u64 << (fd & 63);
    let (mut readable, mut writable, mut at_once) = (asked, asked, [0i64; 2]);
    let sets = [&raw mut readable as usize, &raw mut writable as usize];
    // SAFETY: words for 64 descriptors and a time, which are writable; the call does not wait.
    let selected =
        unsafe { call(libc::SYS_select, [fd as usize + 1, sets[0], sets[1], 0, at_once.as_mut_ptr() as usize]) };
    // What has no reader any more counts as readable.
    selected == Ok(1) && writable == asked
}

/// Writes the slices to a descriptor in one call; what the file does not take at once is lost.
pub fn write_slices(fd: c_int, slices: &[libc::iovec]) {
    // SAFETY: the slices describe readable memory; writev does not write to it.
    let _ = unsafe { call(libc::SYS_writev, [fd as usize, slices.as_ptr() as usize, slices.len()]) };
}

/// What [`detach`] opens, and placeholders (`standard_numbers`), besides `O_CLOEXEC`. The kernel keeps these flags, which hardly a program combines.
pub(super) const NOWHERE: c_int = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;

/// Whether a descriptor looks like one that [`detach`] has made, or like a placeholder.
pub(super) fn leads_nowhere(number: c_int) -> bool {
    control(number, libc::F_GETFL) & NOWHERE == NOWHERE && control(number, libc::F_GETFD) & libc::FD_CLOEXEC != 0
}

/// Makes a descriptor one that can neither be read nor written, only closed.
pub(super) fn detach(number: c_int) {
    let flags = (NOWHERE | libc::O_CLOEXEC) as usize;
    // SAFETY: the path is NUL-terminated.
    let nowhere = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, c"/".as_ptr() as usize, flags, 0]) };
    if let Ok(nowhere) = nowhere {
        // SAFETY: no memory is involved.
        let _ = unsafe { call(libc::SYS_dup3, [nowhere, number as usize, libc::O_CLOEXEC as usize]) };
        close(nowhere as c_int);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn full_pipes_and_pipes_without_a_reader_are_not_writable() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let is_writable = |fd| [is_writable(fd), is_selected_for_writing(fd)];
        // The first descriptors of a test are below 64.
        let fd = writer.as_raw_fd();
        assert_eq!(is_writable(fd), [true; 2]);
        writer.write_all(&[0; 1 << 16]).unwrap();
        assert_eq!(is_writable(fd), [false; 2], "full");
        drop(reader);
        assert_eq!(is_writable(fd), [false; 2], "without a reader");
    }
}
