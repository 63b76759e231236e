//! A process in trace-cat's process group that shows which signals were sent to the whole group.
//!
//! A signal to the group reaches the program without help, and one to trace-cat alone has to be forwarded. The kernel gives
//! both to trace-cat in the same form. The witness blocks all signals: one that is pending there too was for the group.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitOptions, waitpid};

/// The witness, which ends when this is dropped, or when trace-cat dies.
pub struct GroupWitness {
    socket: Option<OwnedFd>,
    process: Pid,
}

impl GroupWitness {
    /// Starts it. While it is forked, signals have to be blocked.
    pub fn start() -> io::Result<GroupWitness> {
        let (socket, theirs) = UnixStream::pair()?;
        // SAFETY: this process has one thread, and the child only makes system calls.
        let child = unsafe { libc::fork() };
        if child == 0 {
            answer(theirs.into_raw_fd());
        }
        let process = Pid::from_raw(child.max(0)).ok_or_else(io::Error::last_os_error)?;
        Ok(GroupWitness { socket: Some(socket.into()), process })
    }

    /// What [`was_sent_to_group`] takes.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, |socket| socket.as_raw_fd())
    }
}

impl Drop for GroupWitness {
    fn drop(&mut self) {
        // It ends when the other end of its socket is closed.
        self.socket = None;
        let _ = retry_on_intr(|| waitpid(Some(self.process), WaitOptions::empty()));
    }
}

/// Whether `signal` has reached the witness since the last question about it. Async-signal-safe.
pub fn was_sent_to_group(descriptor: RawFd, signal: c_int) -> bool {
    let mut byte = signal as u8;
    let place = (&raw mut byte).cast::<c_void>();
    // SAFETY: each call has one byte to read or to write. A witness that has died gives no answer, and raises no signal.
    unsafe {
        libc::send(descriptor, place, 1, libc::MSG_NOSIGNAL) == 1
            && libc::recv(descriptor, place, 1, 0) == 1
            && byte == 1
    }
}

/// Takes `signal` from those that are pending for this process; returns whether it was one. Async-signal-safe.
pub fn take_pending(signal: c_int) -> bool {
    // SAFETY: all bytes zero is a valid sigset_t and timespec, and each call gets places for such.
    unsafe {
        let (mut set, now): (libc::sigset_t, libc::timespec) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigtimedwait(&set, std::ptr::null_mut(), &now) == signal
    }
}

/// The witness's life: it answers for each signal that it is asked about.
fn answer(socket: RawFd) -> ! {
    // SAFETY: the sigset_t is filled before it is read, and each call on the socket has one byte to read or to write. Nothing of
    // what this process shares with its parent is used again: not even its descriptors, which others may wait to see closed.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        libc::dup2(socket, 0);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        let mut byte = 0u8;
        while libc::read(0, (&raw mut byte).cast(), 1) == 1 {
            byte = take_pending(byte.into()).into();
            if libc::send(0, (&raw const byte).cast(), 1, libc::MSG_NOSIGNAL) != 1 {
                break;
            }
        }
        libc::_exit(0)
    }
}
