//! libthreadt: preloaded into a program, records what its threads do with pthreads, semaphores and C11 threads.
//!
//! # Layers
//!
//! A record travels down this list. Each module imports only from those below it.
//!
//! - `hooks`: interposed functions
//! - `lifecycle`: threads begin and end, exec, the final flush; it alone coordinates the modules below
//! - `recorder`: from a hook's values to a record in the thread's slot; nesting
//! - `first_use`: initialises the library in each process at the first call of a hook; at the first record makes the
//!   process's files and describes it in trinfo
//! - `storage`: slots in the process's trbuf, mapped shared; when and how their text gets to the thread's file
//! - `trace_dir`: the directory, the names in it and their owner, the clock that its processes share, trinfo
//! - `control`: the words by which users change what is recorded while the process runs
//! - `process_state`: the words of the process, which a forked child does not inherit
//! - `unwind`: the call stack of a thread, without allocation and lock
//! - `glibc`: the functions behind the hooks, the words of synchronisation objects, calls that unwind
//! - `clock`, `config`: the time of a record; the environment
//! - `sys`: what stands in the place of libc: system calls, paths, ELF symbols, lock-free primitives, messages
//!
//! # The laws of the host's house
//!
//! On the way of a record, and in every hook:
//! 1. No allocation, no lock, no libc call but the next function. System calls are raw: they leave errno alone and are
//!    no cancellation points. Only where a library is closed the linker is asked what it has loaded, under the lock that
//!    closing takes.
//! 2. The host is never ended, and it gets what the next function returned. Its signals wait only for the microseconds in
//!    which a file is opened or written (`sys::signals`). What cannot be recorded is counted, and one line on stderr
//!    reports it.
//! 3. Every hook works before the constructor, after the destructors, in a signal handler, on a small stack (4096 bytes
//!    below its caller), in a forked or vforked child, and in a thread that is being cancelled.
//! 4. errno after a hook is errno after the next function.
//! 5. Hooks nest (a signal handler's `sem_post` during a record), and hold nothing while the next function runs.
//! 6. A forked child has files of its own and never writes to its parent's slots.
//! 7. What the host points to is read where the next function reads it, or after the kernel has.
//! 8. There is one thread-local variable, a word, in the initial-exec model (`sys::thread_word`).
//!
//! No frame has anything to drop while the next function runs: it may unwind, and the frames let it pass
//! (`glibc::unwind_guard`).

#![cfg_attr(not(test), no_std)]
#![cfg_attr(test, allow(dead_code, reason = "without their exported names nothing calls the hooks"))]
#![allow(clippy::missing_safety_doc, reason = "hooks have the contract of the C function whose name they bear")]

mod clock;
mod config;
mod control;
mod first_use;
mod glibc;
mod hooks;
mod lifecycle;
mod process_state;
mod recorder;
mod storage;
mod sys;
mod trace_dir;
mod unwind;

#[cfg(not(test))]
mod entry {
    use core::ffi::{c_int, c_void};
    use core::ptr::null_mut;

    use crate::{first_use, lifecycle, recorder};

    unsafe extern "C" {
        fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        fn __cxa_at_quick_exit(handler: extern "C" fn(*mut c_void), object: *mut c_void) -> c_int;
    }

    /// The constructor. It runs before the program's own code, though not always before the first hook.
    extern "C" fn construct() {
        if first_use::is_recording() {
            // SAFETY: the handlers stay mapped: the library is linked with -z nodelete.
            unsafe {
                on_exit(lifecycle::at_exit, null_mut());
                if __cxa_at_quick_exit(lifecycle::at_quick_exit, null_mut()) == 0 {
                    lifecycle::note_quick_exit_handler();
                }
            }
            recorder::begin_handler();
            first_use::choose_functions();
        }
    }

    // SAFETY: a function without arguments is what the linker expects in this section.
    #[unsafe(link_section = ".init_array")]
    #[used]
    static CONSTRUCTOR: extern "C" fn() = construct;

    /// Nothing here panics. If it ever did, an abort would blame the host.
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        loop {
            crate::sys::sleep(1_000_000_000);
        }
    }
}
