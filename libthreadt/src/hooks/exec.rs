//! The exec family.
//!
//! A vfork child calls these hooks in its parent's memory; its calls are only passed on.

use core::arch::naked_asm;
use core::ffi::c_int;

use spec::id;

use crate::config::detail;
use crate::first_use::is_recording;
use crate::glibc::object_words::Ptr;
use crate::process_state::is_vfork_child;
use crate::recorder::records;
use crate::sys::errno::errno;
use crate::sys::stack_alignment::call_aligned;
use crate::{clock, lifecycle, recorder};

/// Runs another program by `call_next`, which only returns if it fails.
pub fn proc_exec(caller: u64, call_next: impl Fn() -> c_int) -> c_int {
    lifecycle::initialise_interrupted();
    if !is_recording() || is_vfork_child() {
        return call_next();
    }
    let recorded = records(id::PROC_EXEC);
    if recorded {
        recorder::put(&id::PROC_EXEC_1, clock::now_fenced(), [0, 0, 0, 0, detail(caller)]);
    }
    let result = lifecycle::exec(call_next);
    if recorded {
        recorder::put_result(&id::PROC_EXEC_2, clock::now_fenced(), [errno() as u64, 0, 0, 0, 0], true);
    }
    result
}

/// Defines variadic exec functions. Each lays its arguments out as an array, as `argv` is, and calls `$gathered` with
/// the path, that array and the return address.
///
/// The arguments in registers are pushed right below those on the stack, in the place of the return address, which is
/// kept below them during the call.
macro_rules! variadic {
    ($($(#[$doc:meta])* $name:ident, $gathered:ident;)+) => {$(
        $(#[$doc])*
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "pop r10",
                ".cfi_def_cfa_offset 0",
                ".cfi_register rip, r10",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                ".cfi_def_cfa_offset 40",
                "mov rsi, rsp",
                "mov rdx, r10",
                "push r10",
                ".cfi_def_cfa_offset 48",
                ".cfi_offset rip, -48",
                call_aligned!("{gathered}"),
                "pop r10",
                ".cfi_register rip, r10",
                "add rsp, 40",
                ".cfi_def_cfa_offset 0",
                "push r10",
                ".cfi_def_cfa_offset 8",
                ".cfi_offset rip, -8",
                "ret",
                ".cfi_endproc",
                gathered = sym $gathered,
            )
        }
    )+};
}

variadic! {
    /// `int execl(const char *path, const char *arg, ...);`
    execl, gathered_execl;
    /// `int execlp(const char *file, const char *arg, ...);`
    execlp, gathered_execlp;
    /// `int execle(const char *path, const char *arg, ...);`
    execle, gathered_execle;
}

unsafe extern "C-unwind" fn gathered_execl(path: Ptr, argv: Ptr, caller: u64) -> c_int {
    // SAFETY: the next function with the host's arguments.
    unsafe { proc_exec(caller, || call_next!(execv(path: Ptr, argv: Ptr) -> c_int)) }
}

unsafe extern "C-unwind" fn gathered_execlp(file: Ptr, argv: Ptr, caller: u64) -> c_int {
    // SAFETY: the next function with the host's arguments.
    unsafe { proc_exec(caller, || call_next!(execvp(file: Ptr, argv: Ptr) -> c_int)) }
}

unsafe extern "C-unwind" fn gathered_execle(path: Ptr, argv: Ptr, caller: u64) -> c_int {
    let mut end: *mut Ptr = argv.cast();
    // SAFETY: the next function with the host's arguments, which end with a NULL; behind it is the environment.
    unsafe {
        while !(*end).is_null() {
            end = end.add(1);
        }
        let environment = *end.add(1);
        proc_exec(caller, || call_next!(execve(path: Ptr, argv: Ptr, environment: Ptr) -> c_int))
    }
}
