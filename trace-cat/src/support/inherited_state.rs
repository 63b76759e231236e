//! Remembers what Rust's runtime changes before `main`: it ignores SIGPIPE, and opens standard descriptors that are closed.
//! A program that trace-cat runs gets the inherited state.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// SIGPIPE was ignored.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);
/// Bit n: descriptor n was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// libc calls this before Rust's runtime begins. Miri knows no sigaction.
#[cfg_attr(not(miri), used, unsafe(link_section = ".init_array"))]
static REMEMBER: extern "C" fn() = remember;

extern "C" fn remember() {
    // SAFETY: all bytes zero is a valid sigaction, and a place for one is given. The descriptors are only asked about.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action);
        PIPE_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Relaxed);
        let closed = (0..3).filter(|&descriptor: &c_int| libc::fcntl(descriptor, libc::F_GETFD) == -1);
        CLOSED.store(closed.fold(0, |bits, descriptor| bits | 1 << descriptor), Relaxed);
    }
}

/// Whether a standard descriptor (0 to 2) was closed; now it is /dev/null.
pub fn was_closed(descriptor: c_int) -> bool {
    CLOSED.load(Relaxed) >> descriptor & 1 == 1
}

/// Undoes the changes, in a child that is about to become another program.
pub fn restore() {
    let closed = CLOSED.load(Relaxed);
    // SAFETY: no code is installed, and the descriptors are those that the runtime opened for itself.
    unsafe {
        if !PIPE_IGNORED.load(Relaxed) {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
        for descriptor in (0..3).filter(|descriptor| closed >> descriptor & 1 == 1) {
            libc::close(descriptor);
        }
    }
}
