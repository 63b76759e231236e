//! Calls on descriptors that may be the host's.

use core::ffi::c_int;

use super::call::{Result, call, filled_by};

/// The status of the file behind a descriptor.
pub fn stat(fd: c_int) -> Result<libc::stat> {
    // SAFETY: the kernel fills the struct when it returns 0.
    unsafe { filled_by(|stat| call(libc::SYS_fstat, [fd as usize, stat])) }
}

/// Whether a write to the descriptor would neither wait nor fail for want of a reader.
pub fn is_writable(fd: c_int) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one struct, which is writable; the call does not wait.
    let ready = unsafe { call(libc::SYS_poll, [&raw mut poll as usize, 1]) };
    ready == Ok(1) && poll.revents == libc::POLLOUT
}

/// Writes the slices to a descriptor in one call; what the file does not take at once is lost.
pub fn write_slices(fd: c_int, slices: &[libc::iovec]) {
    // SAFETY: the slices describe readable memory; writev does not write to it.
    let _ = unsafe { call(libc::SYS_writev, [fd as usize, slices.as_ptr() as usize, slices.len()]) };
}
