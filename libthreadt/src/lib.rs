//! libthreadt: records what every thread of the program it is preloaded into does with pthreads, semaphores and C11
//! threads.
//!
//! # How a record travels
//!
//! ```text
//! hooks ──► record ──► slot ──► file
//!   │                   │         └ tr.xxxxxxx.yyy: opened by path, written, closed
//!   │                   └ the thread's part of the process's trbuf (buffers), mapped shared
//!   └ real, measure, guard: the real function, what glibc's words tell, calls that unwind
//!
//! thread    the thread-local pointer to the slot        process   switches; awakening, also of forked children
//! start     a new thread's beginning and end            ending    writing everything: exit, exec
//! ring      THR_TRACE_RING: only the newest is kept     nesting   records within records
//! mark      when a full buffer goes to its file
//! directory names and their owner, the shared clock     trinfo, maps, identity   what is known of the process
//! config    the environment                             limits, say   when to stop; the one line on stderr
//! sys, elf, clock, stage, pool                           the ground it stands on
//! ```
//!
//! # The laws of the host's house
//!
//! On the way of a record, and in every hook:
//! 1. No allocation, no lock, no libc call but the real function. System calls are raw: they leave errno alone and are no
//!    cancellation points.
//! 2. The host is never ended, its signals are never blocked, and it gets what the real function returned. What cannot be
//!    recorded is counted, and one line on stderr says so once.
//! 3. Every hook works before the constructor, after the destructors, in a signal handler, on a small stack, in a forked
//!    or vforked child, and in a thread that is being cancelled.
//! 4. errno after a hook is errno after the real call.
//! 5. Hooks nest (a signal handler's `sem_post` during a record), and hold nothing across the real call.
//! 6. A forked child has files of its own and never writes to its parent's slots.
//! 7. What the host points to is read where the real call reads it, or after the kernel has.
//! 8. There is one thread-local variable, a pointer, in the initial-exec model.
//!
//! No frame has anything to drop while the real function runs: it may unwind.

#![cfg_attr(not(test), no_std)]
#![cfg_attr(test, allow(dead_code, reason = "without their exported names nothing calls the hooks"))]
#![allow(clippy::missing_safety_doc, reason = "hooks have the contract of the C function whose name they bear")]

#[path = "storage/trbuf.rs"]
mod buffers;
mod clock;
mod config;
#[path = "trace_dir/directory.rs"]
mod directory;
#[path = "sys/elf.rs"]
mod elf;
#[path = "lifecycle/final_flush.rs"]
mod ending;
#[path = "storage/record_file.rs"]
mod file;
#[path = "glibc/unwind_guard.rs"]
mod guard;
mod hooks;
#[path = "trace_dir/identity.rs"]
mod identity;
#[path = "storage/quota.rs"]
mod limits;
#[path = "trace_dir/executable_maps.rs"]
mod maps;
#[path = "storage/flush_point.rs"]
mod mark;
#[path = "glibc/object_words.rs"]
mod measure;
#[path = "recorder/nesting.rs"]
mod nesting;
#[path = "sys/pool.rs"]
mod pool;
#[path = "process_state.rs"]
mod process;
#[path = "glibc/next_functions.rs"]
mod real;
#[path = "recorder/record.rs"]
mod record;
#[path = "storage/ring.rs"]
mod ring;
#[path = "sys/diagnostics.rs"]
mod say;
#[path = "storage/slot.rs"]
mod slot;
#[path = "sys/once.rs"]
mod stage;
#[path = "lifecycle/thread_start.rs"]
mod start;
mod sys;
#[path = "recorder/thread_slot.rs"]
mod thread;
#[path = "trace_dir/info_file.rs"]
mod trinfo;

#[cfg(not(test))]
mod entry {
    use core::ffi::{c_int, c_void};

    use crate::{hooks, process};

    unsafe extern "C" {
        fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }

    /// The constructor. It runs before the program's own code, though not always before the first hook.
    extern "C" fn begin() {
        if process::is_recording() {
            // SAFETY: the handler stays mapped: the library is linked with -z nodelete.
            unsafe { on_exit(hooks::last, core::ptr::null_mut()) };
        }
    }

    // SAFETY: a function without arguments is what the linker expects in this section.
    #[unsafe(link_section = ".init_array")]
    #[used]
    static BEGIN: extern "C" fn() = begin;

    /// Nothing here panics; if it ever did, the host must not be told by an abort that it did something wrong.
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        loop {
            crate::sys::sleep(1_000_000_000);
        }
    }

    // Code compiled with the standard library's settings refers to a personality routine that nothing ever calls here.
    core::arch::global_asm!(".globl rust_eh_personality", ".hidden rust_eh_personality", "rust_eh_personality:", "ud2",);
}
