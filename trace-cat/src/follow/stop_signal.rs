//! Whether a signal has asked trace-cat to stop: SIGINT, SIGTERM or SIGHUP. A second signal ends the process at once.
//!
//! libc sets the handlers: signal-hook would also handle signals that were inherited as ignored, as under `nohup`.

use std::ffi::c_int;
use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn request_stop(_signal: c_int) {
    REQUESTED.store(true, Relaxed);
}

/// From now on the first signal only asks to stop. A signal that is ignored stays ignored.
pub fn catch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all zeros are a valid sigaction; both are read and written by the kernel alone. The handler does nothing but
        // store to an atomic.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            let mut before: libc::sigaction = zeroed();
            action.sa_sigaction = request_stop as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
            if libc::sigaction(signal, std::ptr::null(), &mut before) == 0 && before.sa_sigaction != libc::SIG_IGN {
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// Whether a signal has asked to stop.
pub fn is_requested() -> bool {
    REQUESTED.load(Relaxed)
}
