//! The program restricts what its threads may do, and this library with them.

use core::ffi::c_long;
use core::sync::atomic::Ordering::Relaxed;

use crate::clock;
use crate::first_use::initialise;
use crate::storage::thread_local;
use crate::sys::thread_word;

/// What a call forbids to the calling thread, and to threads that it makes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// Reading the processor's time stamp counter: SIGSEGV.
    Counter,
    /// Strict seccomp: reading the counter, and every system call but read, write, exit and sigreturn: SIGKILL.
    SystemCalls,
}

/// Restricts the thread by `call_next`, which returns 0 if it does.
///
/// Records of a thread without system calls have no time and no way to a file: from here on they are counted as lost, in
/// memory that the thread has already. What it recorded before stays in its slot.
pub fn restrict(restriction: Restriction, call_next: impl Fn() -> c_long) -> c_long {
    // What needs system calls is done now.
    initialise();
    clock::avoid_counter();
    if restriction == Restriction::Counter {
        return call_next();
    }
    let now = clock::since_epoch(clock::now_fenced());
    let slot =
        thread_local::current().filter(|slot| slot.lost_since.compare_exchange(0, now, Relaxed, Relaxed).is_ok());
    // Before the call: a signal handler may come right after it.
    thread_word::set_muted(true);
    let result = call_next();
    if result != 0 {
        thread_word::set_muted(false);
        slot.inspect(|slot| slot.lost_since.store(0, Relaxed));
    }
    result
}
