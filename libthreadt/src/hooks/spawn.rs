//! The functions that run a program in a new process: `posix_spawn` and its kin, `system`, `popen`. libc makes the process
//! in this process's memory, where no hook sees it. The program's first record is its `proc_begin`.

use core::ffi::c_int;

use spec::id;

use super::fork::{put_entry_record, put_return_record};
use crate::glibc::next_functions;
use crate::glibc::object_words::Ptr;
use crate::recorder::{self, ReturnRecord, records};
use crate::{clock, sys};

/// The columns `kind` of these functions.
const SYSTEM: u64 = 4;
const POPEN: u64 = 5;

hook! {
    /// `int system(const char *command);`
    fn system(command: Ptr; caller) -> c_int {
        put_entry_record(SYSTEM, caller);
        let unwound = ReturnRecord::new(&id::PROC_FORK_2, [0, libc::ECANCELED as u64, SYSTEM, 0, 0]);
        // SAFETY: the next function with the host's argument. It is a cancellation point.
        let status: c_int = unsafe {
            if records(id::PROC_FORK) {
                unwound.call(next_functions::system.address(), [command as u64, 0, 0, 0])
            } else {
                call_next!(system(command: Ptr) -> c_int)
            }
        };
        put_return_record(SYSTEM, if status == -1 { -1 } else { 0 });
        status
    }
}

hook! {
    /// `FILE *popen(const char *command, const char *type);`
    fn popen(command: Ptr, mode: Ptr; caller) -> Ptr {
        put_entry_record(POPEN, caller);
        // SAFETY: the next function with the host's arguments.
        let stream = unsafe { call_next!(popen(command: Ptr, mode: Ptr) -> Ptr) };
        put_return_record(POPEN, if stream.is_null() { -1 } else { 0 });
        stream
    }
}

/// Defines the functions that spawn a process, each with its column `kind` and what finds the PID in the variable that the
/// function has filled.
macro_rules! spawn_functions {
    ($($(#[$doc:meta])* $name:ident $(= $($export:literal)+)? => $kind:literal $child:path;)+) => {$(
        hook! {
            $(#[$doc])*
            fn $name $(= $($export)+)? (variable: *mut c_int, path: Ptr, actions: Ptr, attributes: Ptr, argv: Ptr,
                envp: Ptr; caller) -> c_int {
                let recorded = records(id::PROC_FORK);
                let mut own = 0;
                let variable = if variable.is_null() && recorded { &raw mut own } else { variable };
                put_entry_record($kind, caller);
                // SAFETY: the next function with the host's arguments, or with a place of this frame for the PID.
                let result = unsafe {
                    call_next!($name(variable: *mut c_int, path: Ptr, actions: Ptr, attributes: Ptr, argv: Ptr,
                        envp: Ptr) -> c_int)
                };
                if recorded {
                    let time = clock::now_fenced();
                    // SAFETY: a function that succeeds has filled the variable.
                    let child = if result == 0 { $child(unsafe { *variable }) } else { 0 };
                    let columns = [child.into(), result as u64, $kind, 0, 0];
                    recorder::put_result(&id::PROC_FORK_2, time, columns, result != 0);
                }
                result
            }
        }
    )+};
}

spawn_functions! {
    // The old versions also run a file that the kernel refuses to execute, as a script of the shell.
    /// `int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
    /// const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]);`
    posix_spawn = "posix_spawn@@GLIBC_2.15" => 2 pid_itself;
    /// `posix_spawn`, which gives a file of no known format to the shell.
    posix_spawn_2_2_5 = "posix_spawn@GLIBC_2.2.5" "posix_spawn@THREADT_UNVERSIONED" => 2 pid_itself;
    /// `int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
    /// const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]);`
    posix_spawnp = "posix_spawnp@@GLIBC_2.15" => 3 pid_itself;
    /// `posix_spawnp`, which gives a file of no known format to the shell.
    posix_spawnp_2_2_5 = "posix_spawnp@GLIBC_2.2.5" "posix_spawnp@THREADT_UNVERSIONED" => 3 pid_itself;
    /// `int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
    /// const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]);`
    pidfd_spawn => 9 sys::pid_of_pidfd;
    /// `int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
    /// const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]);`
    pidfd_spawnp => 10 sys::pid_of_pidfd;
}

fn pid_itself(pid: c_int) -> u32 {
    pid as u32
}
