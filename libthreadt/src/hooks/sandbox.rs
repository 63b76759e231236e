//! Calls by which the program changes what paths lead to, or which of them it may follow. These hooks record nothing. Seccomp
//! filters are in `unrecorded`.

use core::ffi::{c_char, c_int, c_long};

use crate::lifecycle::{
    change_namespace, leave_descriptor_table, note_renumbering, note_time_namespace, prepare_for_departure,
    prepare_for_sandbox,
};

/// `landlock_restrict_self`, which older versions of the crate libc do not name.
pub const SYS_LANDLOCK_RESTRICT_SELF: c_long = 446;

/// The flags of the namespaces that decide which files a process finds by a path, and what it may do with them.
const MOVES_FILES: c_int = libc::CLONE_NEWNS | libc::CLONE_NEWUSER;

/// See unshare(2); older versions of the crate libc do not name it.
const CLONE_NEWTIME: c_int = 0x80;

/// Prepares for this process or its children moving to the namespaces of these flags.
pub fn prepare_for_namespaces(flags: c_int) {
    if flags & MOVES_FILES != 0 {
        prepare_for_sandbox();
    }
    if flags & libc::CLONE_NEWPID != 0 {
        note_renumbering();
    }
    if flags & CLONE_NEWTIME != 0 {
        note_time_namespace();
    }
}

hook! {
    /// `int chroot(const char *path);`
    fn chroot(path: *const c_char; _caller) -> c_int {
        prepare_for_sandbox();
        // SAFETY: the next function with the host's arguments.
        unsafe { call_next!(chroot(path: *const c_char) -> c_int) }
    }
}

hook! {
    /// `int unshare(int flags);`
    fn unshare(flags: c_int; _caller) -> c_int {
        // SAFETY: as above.
        let call_next = || unsafe { call_next!(unshare(flags: c_int) -> c_int) };
        leave_others(flags, || call_next().into()) as c_int
    }
}

/// `unshare` by `call_next`.
pub fn leave_others(flags: c_int, call_next: impl Fn() -> c_long) -> c_long {
    // With these the thread has a root of its own afterwards.
    if flags & (libc::CLONE_FS | libc::CLONE_NEWNS) != 0 {
        prepare_for_departure();
    }
    prepare_for_namespaces(flags);
    if flags & libc::CLONE_FILES != 0 { leave_descriptor_table(None, call_next) } else { call_next() }
}

hook! {
    /// `int setns(int fd, int nstype);`
    fn setns(fd: c_int, nstype: c_int; _caller) -> c_int {
        // SAFETY: as above.
        let call_next = || unsafe { call_next!(setns(fd: c_int, nstype: c_int) -> c_int) };
        enter_namespace(nstype, || call_next().into()) as c_int
    }
}

/// `setns` by `call_next`. Without a type it may be any namespace.
pub fn enter_namespace(nstype: c_int, call_next: impl FnOnce() -> c_long) -> c_long {
    prepare_for_namespaces(if nstype == 0 { MOVES_FILES | libc::CLONE_NEWPID } else { nstype });
    change_namespace(call_next)
}

/// Prepares for the system call `number` if it is one of these; `true` if it is.
pub fn prepare_for_system_call(number: c_long) -> bool {
    match number {
        libc::SYS_setfsuid => prepare_for_departure(),
        libc::SYS_chroot | libc::SYS_pivot_root | SYS_LANDLOCK_RESTRICT_SELF => prepare_for_sandbox(),
        _ => return false,
    }
    true
}
