//! The program restricts what its threads may do, and this library with them.

use core::ffi::c_long;
use core::sync::atomic::Ordering::Relaxed;

use libc::sock_fprog;

use super::sandbox::prepare_for_sandbox;
use crate::first_use::{initialise, is_recording};
use crate::process_state;
use crate::storage::thread_local;
use crate::sys::{Errno, process_id, seccomp, thread_word, user_dispatch};
use crate::trace_dir::sandbox_spares;
use crate::{clock, recorder};

/// What a call forbids to the calling thread, and to threads that it makes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// Reading the processor's time stamp counter: SIGSEGV.
    Counter,
    /// Strict seccomp: reading the counter, and every system call but read, write, exit and sigreturn: SIGKILL.
    SystemCalls,
    /// System calls, while the byte at this address says so: SIGSYS.
    Dispatched(*mut u8),
    /// Nothing: it ends [`Restriction::Dispatched`].
    NotDispatched,
    /// What a seccomp filter decides. It is at this address. `may_name_thread`: the call may return a thread that is in its way.
    Filtered { filter: *const sock_fprog, may_name_thread: bool },
}

/// Restricts the thread by `call_next`.
pub fn restrict(restriction: Restriction, call_next: impl Fn() -> c_long) -> c_long {
    // What needs system calls is done now.
    initialise();
    match restriction {
        Restriction::Counter => {
            clock::avoid_counter();
            call_next()
        }
        Restriction::SystemCalls => mute(|result| result == 0, call_next),
        Restriction::Dispatched(selector) => dispatch(selector, call_next),
        Restriction::NotDispatched => {
            let result = call_next();
            if result == 0 {
                user_dispatch::end();
            }
            result
        }
        Restriction::Filtered { filter, may_name_thread } => {
            install(filter, |result| result >= 0 && !(may_name_thread && result > 0), call_next)
        }
    }
}

/// Installs a filter. System calls for which it kills are not made any more; where no file can be opened under it, the
/// records stay in the thread's slot until that is full. `is_done` judges what `call_next` returns.
fn install(filter: *const sock_fprog, is_done: impl Fn(c_long) -> bool, call_next: impl Fn() -> c_long) -> c_long {
    let guest = process_state::is_vfork_child().then(process_id);
    let filter = match seccomp::copy_filter(filter, guest) {
        Ok(filter) => filter,
        Err(Errno(libc::EFAULT)) => return call_next(),
        // No memory: the filter may forbid anything.
        Err(_) => return mute(is_done, call_next),
    };
    if filter.kills_for_recording() && is_recording() {
        recorder::slot_or_claim(0, clock::now_fenced(), &[]);
    }
    // A vfork child makes no files.
    if filter.refuses_files() && guest.is_none() {
        prepare_for_sandbox();
        if process_state::sandboxed().is_some() {
            sandbox_spares::give_up();
        }
    }
    // Before the call: a signal handler may come right after it.
    filter.apply();
    let result = call_next();
    if !is_done(result) {
        filter.withdraw();
    }
    result
}

/// Lets the thread's system calls go to the program while the byte says so.
fn dispatch(selector: *mut u8, call_next: impl Fn() -> c_long) -> c_long {
    if is_recording() {
        recorder::slot_or_claim(0, clock::now_fenced(), &[]);
    }
    // Before the call: if there is no byte, its return is too late.
    let before = user_dispatch::begin(selector);
    let result = call_next();
    if result != 0 {
        match before {
            Some(selector) => _ = user_dispatch::begin(selector),
            None => user_dispatch::end(),
        }
    }
    result
}

/// Puts the thread under strict seccomp, or what may be as strict.
///
/// Records of a thread without system calls have no time and no way to a file: from here on they are counted as lost, in
/// memory that the thread has already. What it recorded before stays in its slot.
fn mute(is_done: impl Fn(c_long) -> bool, call_next: impl Fn() -> c_long) -> c_long {
    if process_state::is_unrecorded() {
        return call_next();
    }
    clock::avoid_counter();
    let now = clock::since_epoch(clock::now_fenced());
    let slot = thread_local::own().filter(|slot| slot.lost_since.compare_exchange(0, now, Relaxed, Relaxed).is_ok());
    // Before the call: a signal handler may come right after it.
    thread_word::set_muted(true);
    let result = call_next();
    if !is_done(result) {
        thread_word::set_muted(false);
        slot.inspect(|slot| slot.lost_since.store(0, Relaxed));
    }
    result
}
