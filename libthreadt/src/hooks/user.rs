//! Calls by which the program becomes another user. These hooks record nothing.
//!
//! No other call needs one. Groups (`setgid`, `setgroups`, `initgroups`) and capabilities (`capset`, `PR_SET_KEEPCAPS`) do not
//! matter to files that their owner uses. `unshare` and `setns` change what user IDs are called, not whose the files are.
//! `setfsuid` concerns one thread, for a while: its text stays in the buffer meanwhile, but the process's files are made before.

use core::ffi::{c_int, c_long};

use crate::lifecycle::{NewUser, change_user, prepare_for_departure};
use crate::sys::{user_id, user_ids};

/// The ID that a call sets; `None` for -1, which leaves it as it is.
fn given(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

/// `setuid` sets all IDs of a thread that may become any user, else the effective one.
fn by_setuid(id: u32) -> NewUser {
    if user_id() == 0 { [given(id); 3] } else { [None, given(id), None] }
}

/// `setreuid` sets the saved ID to the new effective one, if it sets the real ID, or the effective one to another than the real ID was
/// (`__sys_setreuid` in kernel/sys.c).
fn by_setreuid(real: u32, effective: u32, [real_before, effective_before, _]: [u32; 3]) -> NewUser {
    let is_saved = given(real).is_some() || given(effective).is_some_and(|effective| effective != real_before);
    let saved = given(effective).unwrap_or(effective_before);
    [given(real), given(effective), is_saved.then_some(saved)]
}

/// What `setreuid` sets now.
fn by_setreuid_now(real: u32, effective: u32) -> NewUser {
    // If they are not known, nothing is prepared.
    by_setreuid(real, effective, user_ids().unwrap_or([u32::MAX; 3]))
}

/// What the system call `number` sets, by which only the calling thread becomes another user; `None` for any other call.
pub fn new_user_by_system_call(number: c_long, arguments: [u64; 3]) -> Option<NewUser> {
    let [a, b, c] = arguments.map(|argument| argument as u32);
    match number {
        libc::SYS_setuid => Some(by_setuid(a)),
        libc::SYS_setreuid => Some(by_setreuid_now(a, b)),
        libc::SYS_setresuid => Some([a, b, c].map(given)),
        _ => None,
    }
}

hook! {
    /// `int setuid(uid_t uid);`
    fn setuid(uid: u32; _caller) -> c_int {
        // SAFETY: the next function with the host's arguments.
        let call_next = || unsafe { call_next!(setuid(uid: u32) -> c_int) };
        change_user(by_setuid(uid), || call_next().into()) as c_int
    }
}

hook! {
    /// `int seteuid(uid_t uid);`
    fn seteuid(uid: u32; _caller) -> c_int {
        // SAFETY: as above.
        let call_next = || unsafe { call_next!(seteuid(uid: u32) -> c_int) };
        change_user([None, given(uid), None], || call_next().into()) as c_int
    }
}

hook! {
    /// `int setreuid(uid_t real, uid_t effective);`
    fn setreuid(real: u32, effective: u32; _caller) -> c_int {
        // SAFETY: as above.
        let call_next = || unsafe { call_next!(setreuid(real: u32, effective: u32) -> c_int) };
        change_user(by_setreuid_now(real, effective), || call_next().into()) as c_int
    }
}

hook! {
    /// `int setresuid(uid_t real, uid_t effective, uid_t saved);`
    fn setresuid(real: u32, effective: u32, saved: u32; _caller) -> c_int {
        // SAFETY: as above.
        let call_next = || unsafe { call_next!(setresuid(real: u32, effective: u32, saved: u32) -> c_int) };
        change_user([real, effective, saved].map(given), || call_next().into()) as c_int
    }
}

hook! {
    /// `int setfsuid(uid_t uid);`
    fn setfsuid(uid: u32; _caller) -> c_int {
        prepare_for_departure();
        // SAFETY: as above.
        unsafe { jump_to_next!(setfsuid(uid: u32) -> c_int) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_set_what_the_functions_set() {
        let set = |number, arguments| new_user_by_system_call(number, arguments);
        let all = u64::from(u32::MAX);
        assert_eq!(set(libc::SYS_setresuid, [1, all, 3]), Some([Some(1), None, Some(3)]));
        assert_eq!(set(libc::SYS_setreuid, [1, 2, 0]), Some([Some(1), Some(2), Some(2)]));
        assert_eq!(set(libc::SYS_getuid, [1, 2, 3]), None);
    }

    #[test]
    fn setreuid_saves_what_may_not_be_the_real_user() {
        let none = u32::MAX;
        let before = [500, 0, 0];
        assert_eq!(by_setreuid(none, 1000, before), [None, Some(1000), Some(1000)]);
        assert_eq!(by_setreuid(none, 500, before), [None, Some(500), None]);
        assert_eq!(by_setreuid(7, none, before), [Some(7), None, Some(0)]);
        assert_eq!(by_setreuid(7, 8, before), [Some(7), Some(8), Some(8)]);
        assert_eq!(by_setreuid(none, none, before), [None; 3]);
    }
}
