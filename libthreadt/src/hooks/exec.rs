//! The exec family.
//!
//! A vfork child calls these hooks in its parent's memory; its calls are only passed on.

use core::arch::naked_asm;
use core::ffi::c_int;

use spec::id;

use super::result::errno;
use crate::config::detail;
use crate::first_use::{is_recording, records};
use crate::glibc::object_words::Ptr;
use crate::process_state::is_vfork_child;
use crate::{clock, lifecycle, recorder};

/// Runs another program by `call_next`, which only returns if it fails.
fn exec(caller: u64, call_next: impl Fn() -> c_int) -> c_int {
    if !is_recording() || is_vfork_child() {
        return call_next();
    }
    let recorded = records(id::PROC_EXEC);
    if recorded {
        recorder::put(&id::PROC_EXEC_1, clock::now_fenced(), [0, 0, 0, 0, detail(caller)]);
    }
    let alone = lifecycle::before_exec();
    let result = call_next();
    lifecycle::after_failed_exec(alone);
    if recorded {
        recorder::put(&id::PROC_EXEC_2, clock::now_fenced(), [errno() as u64, 0, 0, 0, 0]);
    }
    result
}

/// Defines exec functions that have the parameters of the next functions.
macro_rules! exec_functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(hook! {
            $(#[$doc])*
            fn $name($($argument: $kind),*; caller) -> c_int {
                // SAFETY: the next function with the host's arguments.
                unsafe { exec(caller, || call_next!($name($($argument: $kind),*) -> c_int)) }
            }
        })*
    };
}

exec_functions! {
    /// `int execve(const char *path, char *const argv[], char *const envp[]);`
    execve(path: Ptr, argv: Ptr, envp: Ptr);
    /// `int execv(const char *path, char *const argv[]);`
    execv(path: Ptr, argv: Ptr);
    /// `int execvp(const char *file, char *const argv[]);`
    execvp(file: Ptr, argv: Ptr);
    /// `int execvpe(const char *file, char *const argv[], char *const envp[]);`
    execvpe(file: Ptr, argv: Ptr, envp: Ptr);
    /// `int fexecve(int fd, char *const argv[], char *const envp[]);`
    fexecve(fd: c_int, argv: Ptr, envp: Ptr);
    /// `int execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags);`
    execveat(dirfd: c_int, path: Ptr, argv: Ptr, envp: Ptr, flags: c_int);
}

/// Defines a variadic exec function: lays the arguments out as an array, as `argv` is, and calls `$gathered` with the
/// path, that array and the return address.
///
/// The arguments in registers are pushed right below those on the stack, in the place of the return address, which is
/// kept below them during the call.
macro_rules! variadic {
    ($(#[$doc:meta])* $name:ident, $gathered:ident) => {
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
                "call {gathered}",
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
    };
}

variadic! {
    /// `int execl(const char *path, const char *arg, ...);`
    execl, gathered_execl
}
variadic! {
    /// `int execlp(const char *file, const char *arg, ...);`
    execlp, gathered_execlp
}
variadic! {
    /// `int execle(const char *path, const char *arg, ...);`
    execle, gathered_execle
}

unsafe extern "C-unwind" fn gathered_execl(path: Ptr, argv: Ptr, caller: u64) -> c_int {
    // SAFETY: the next function with the host's arguments.
    unsafe { exec(caller, || call_next!(execv(path: Ptr, argv: Ptr) -> c_int)) }
}

unsafe extern "C-unwind" fn gathered_execlp(file: Ptr, argv: Ptr, caller: u64) -> c_int {
    // SAFETY: the next function with the host's arguments.
    unsafe { exec(caller, || call_next!(execvp(file: Ptr, argv: Ptr) -> c_int)) }
}

unsafe extern "C-unwind" fn gathered_execle(path: Ptr, argv: Ptr, caller: u64) -> c_int {
    let mut end: *mut Ptr = argv.cast();
    // SAFETY: the next function with the host's arguments, which end with a NULL; behind it is the environment.
    unsafe {
        while !(*end).is_null() {
            end = end.add(1);
        }
        let environment = *end.add(1);
        exec(caller, || call_next!(execve(path: Ptr, argv: Ptr, environment: Ptr) -> c_int))
    }
}
