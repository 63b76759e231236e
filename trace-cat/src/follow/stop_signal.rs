//! Whether it has been told to end: by SIGINT, SIGTERM or SIGHUP. A second signal ends it at once.

use std::ffi::c_int;
use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static REPORTED_MAX: AtomicBool = AtomicBool::new(false);

extern "C" fn tell(_signal: c_int) {
    REPORTED_MAX.store(true, Relaxed);
}

/// From now on signals only tell. One that is ignored stays ignored.
pub fn listen() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all zeros are a valid sigaction; both are read and written by the kernel alone. The handler does nothing but
        // store to an atomic.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            let mut before: libc::sigaction = zeroed();
            action.sa_sigaction = tell as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
            if libc::sigaction(signal, std::ptr::null(), &mut before) == 0 && before.sa_sigaction != libc::SIG_IGN {
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// Whether a signal has come.
pub fn to_end() -> bool {
    REPORTED_MAX.load(Relaxed)
}
