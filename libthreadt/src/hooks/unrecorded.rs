//! Calls that this library has to know of, though they are not recorded:
//! - `prctl` where it forbids the thread the processor's counter or system calls,
//! - `setrlimit`, `prlimit` and `ulimit`, which limit the size of files,
//! - `close`, `close_range`, `closefrom`, `dup2` and `dup3`, after which a descriptor's number stands for something else,
//! - `syscall` where it makes one of these calls, `seccomp`, one that changes the user (`user`) or one that goes into a sandbox
//!   (`sandbox`).
//!
//! `prctl` is recorded where it names the thread.
//!
//! `prctl` and `syscall` are variadic in C. Their arguments are in registers whether they are there or not, and the
//! seventh of `syscall` is on the stack.

use core::arch::naked_asm;
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use spec::id;

use crate::clock;
use crate::first_use::records;
use crate::glibc::call_arguments::name_word;
use crate::glibc::next_functions::{self, NextFunction};
use crate::hooks::result::errno;
use crate::hooks::sandbox::{
    MOVES_FILES, SYS_LANDLOCK_RESTRICT_SELF, enter_namespace, prepare_for_clone, prepare_for_system_call,
};
use crate::hooks::user::new_user_by_system_call;
use crate::lifecycle::{
    Restriction, change_file_size_limit, change_user, close_descriptor, close_descriptors_from, replace_descriptor,
    restrict,
};
use crate::recorder;
use crate::sys::{self, host_numbers, user_dispatch};

/// What `prctl(option, value, more, length, selector)` forbids.
fn restriction_by_prctl(option: c_int, [value, more, length, selector]: [u64; 4]) -> Option<Restriction> {
    const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
    const PR_SYS_DISPATCH_OFF: u64 = 0;
    match option {
        PR_SET_SYSCALL_USER_DISPATCH if value == PR_SYS_DISPATCH_OFF => Some(Restriction::NotDispatched),
        PR_SET_SYSCALL_USER_DISPATCH if !user_dispatch::is_exempt(more, length) => {
            Some(Restriction::Dispatched(with_exposed_provenance_mut(selector as usize)))
        }
        libc::PR_SET_TSC if value as c_int == libc::PR_TSC_SIGSEGV => Some(Restriction::Counter),
        libc::PR_SET_SECCOMP if value == u64::from(libc::SECCOMP_MODE_STRICT) => Some(Restriction::SystemCalls),
        libc::PR_SET_SECCOMP if value == u64::from(libc::SECCOMP_MODE_FILTER) => Some(filtered(more, 0)),
        _ => None,
    }
}

/// A filter at this address, with the flags of `seccomp`.
fn filtered(address: u64, flags: u64) -> Restriction {
    let [synchronised, listener] = [libc::SECCOMP_FILTER_FLAG_TSYNC, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER];
    Restriction::Filtered {
        filter: with_exposed_provenance(address as usize),
        // A listener's descriptor is greater than 0, too, but with both flags no thread is named.
        may_name_thread: flags & (synchronised | listener) == synchronised,
    }
}

/// `int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn prctl(option: c_int, a: u64, b: u64, c: u64, d: u64) -> c_int {
    match restriction_by_prctl(option, [a, b, c, d]) {
        None if option == libc::PR_SET_NAME => {
            // SAFETY: the next function with the host's arguments.
            let call_next = || unsafe { call_next!(prctl(option: c_int, a: u64, b: u64, c: u64, d: u64) -> c_int) };
            record_name(|| call_next().into()) as c_int
        }
        // SAFETY: as above.
        None => unsafe { jump_to_next!(prctl(option: c_int, a: u64, b: u64, c: u64, d: u64) -> c_int) },
        // SAFETY: as above.
        Some(restriction) => unsafe { restricting_prctl(restriction, option, a, b, c, d) },
    }
}

/// Gives the calling thread a name by `call`, and records that as `pthread_setname_np` is recorded.
#[cold]
fn record_name(call: impl FnOnce() -> c_long) -> c_long {
    let result = call();
    // In a libc without _Fork, before glibc 2.34, libpthread's pthread_setname_np comes here, too, and is recorded already.
    if next_functions::_Fork.is_known()
        && records(id::THR_SETNAME)
        && result == 0
        && let Ok(name) = sys::thread_name()
    {
        let name = (&raw const name).cast_mut().cast();
        // SAFETY: the kernel has ended it with a NUL.
        let [first, second] = [0, 1].map(|half| unsafe { name_word(name, half) });
        recorder::put(&id::THR_SETNAME_0, clock::now_fenced(), [recorder::pthread_self(), first, second, 0, 0]);
    }
    result
}

/// `prctl` where it restricts the thread.
#[cold]
#[inline(never)]
unsafe fn restricting_prctl(restriction: Restriction, option: c_int, a: u64, b: u64, c: u64, d: u64) -> c_int {
    // SAFETY: the next function with the host's arguments.
    let call_next = || unsafe { call_next!(prctl(option: c_int, a: u64, b: u64, c: u64, d: u64) -> c_int) };
    restrict(restriction, || call_next().into()) as c_int
}

/// Whether a call that returned this found that another thread was just opening a file with the same number.
fn is_busy(result: &c_long) -> bool {
    *result == -1 && errno() == libc::EBUSY
}

/// `int dup2(int old, int new);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: the next function with the host's arguments.
    let call_next = || unsafe { call_next!(dup2(old: c_int, new: c_int) -> c_int) };
    replace_descriptor(new, || call_next().into(), is_busy) as c_int
}

/// `int dup3(int old, int new, int flags);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: as above.
    let call_next = || unsafe { call_next!(dup3(old: c_int, new: c_int, flags: c_int) -> c_int) };
    replace_descriptor(new, || call_next().into(), is_busy) as c_int
}

/// `int close(int fd);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if host_numbers::may_be_ours(fd) {
        // SAFETY: the next function with the host's arguments.
        close_descriptor(fd, || unsafe { call_next!(close(fd: c_int) -> c_int) }.into()) as c_int
    } else {
        // SAFETY: as above.
        unsafe { jump_to_next!(close(fd: c_int) -> c_int) }
    }
}

/// `int close_range(unsigned int first, unsigned int last, int flags);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: as above.
    let call_next = || unsafe { call_next!(close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int) };
    close_in_range(first, flags, || call_next().into()) as c_int
}

/// `void closefrom(int least);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn closefrom(least: c_int) {
    close_descriptors_from(least, || {
        // SAFETY: as above.
        unsafe { call_next!(closefrom(least: c_int) -> ()) };
        0
    });
}

/// `close_range` by `call_next`. With a flag it does not close anything, but marks what an exec closes.
fn close_in_range(first: c_uint, flags: c_int, call_next: impl Fn() -> c_long) -> c_long {
    match c_int::try_from(first) {
        Ok(first) if flags as c_uint & libc::CLOSE_RANGE_CLOEXEC == 0 => close_descriptors_from(first, call_next),
        _ => call_next(),
    }
}

/// The limit that is set on the size of files when this resource gets the limits at `new`, as far as they can be read;
/// `None` if nothing is set.
fn new_file_size_limit(resource: c_int, new: *const c_void) -> Option<u64> {
    let sets = resource as u32 == libc::RLIMIT_FSIZE && !new.is_null();
    sets.then(|| sys::read_pair(new).map_or(u64::MAX, |[soft, _]| soft))
}

/// `int setrlimit(int resource, const struct rlimit *limits);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn setrlimit(resource: c_int, new: *const c_void) -> c_int {
    // SAFETY: the next function with the host's arguments.
    let call_next = || unsafe { call_next!(setrlimit(resource: c_int, new: *const c_void) -> c_int) };
    with_limit(new_file_size_limit(resource, new), || call_next().into()) as c_int
}

/// `int setrlimit64(int resource, const struct rlimit64 *limits);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn setrlimit64(resource: c_int, new: *const c_void) -> c_int {
    // SAFETY: as above.
    let call_next = || unsafe { call_next!(setrlimit64(resource: c_int, new: *const c_void) -> c_int) };
    with_limit(new_file_size_limit(resource, new), || call_next().into()) as c_int
}

/// `int prlimit(pid_t pid, int resource, const struct rlimit *new, struct rlimit *old);` Also the calling process may be
/// named by its ID.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn prlimit(pid: c_int, resource: c_int, new: *const c_void, old: *mut c_void) -> c_int {
    // SAFETY: as above.
    let call_next =
        || unsafe { call_next!(prlimit(pid: c_int, resource: c_int, new: *const c_void, old: *mut c_void) -> c_int) };
    with_limit(new_file_size_limit(resource, new), || call_next().into()) as c_int
}

/// `int prlimit64(pid_t pid, int resource, const struct rlimit64 *new, struct rlimit64 *old);`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn prlimit64(pid: c_int, resource: c_int, new: *const c_void, old: *mut c_void) -> c_int {
    // SAFETY: as above.
    let call_next =
        || unsafe { call_next!(prlimit64(pid: c_int, resource: c_int, new: *const c_void, old: *mut c_void) -> c_int) };
    with_limit(new_file_size_limit(resource, new), || call_next().into()) as c_int
}

/// `long ulimit(int command, long limit);` It calls `setrlimit` within libc. The limit is in units of 512 bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ulimit(command: c_int, limit: c_long) -> c_long {
    const UL_SETFSIZE: c_int = 2;
    // SAFETY: as above.
    let call_next = || unsafe { call_next!(ulimit(command: c_int, limit: c_long) -> c_long) };
    with_limit((command == UL_SETFSIZE).then_some((limit as u64).saturating_mul(512)), call_next)
}

/// Makes a call that sets this limit on the size of files, or none.
fn with_limit(limit: Option<u64>, call_next: impl FnOnce() -> c_long) -> c_long {
    match limit {
        None => call_next(),
        Some(limit) => change_file_size_limit(limit, call_next),
    }
}

/// `long syscall(long number, ...);`
///
/// Every other call finds registers and stack as the caller left them: it may be a `vfork`, which returns
/// twice, or a `clone` on another stack.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn syscall() {
    naked_asm!(
        ".cfi_startproc",
        "cmp rdi, {prctl}",
        "je {known}",
        "cmp rdi, {seccomp}",
        "je {known}",
        "cmp rdi, {setns}",
        "je {known}",
        "cmp rdi, {setrlimit}",
        "je {known}",
        "cmp rdi, {prlimit}",
        "je {known}",
        "cmp rdi, {dup2}",
        "je {known}",
        "cmp rdi, {dup3}",
        "je {known}",
        "cmp rdi, {close}",
        "je {known}",
        "cmp rdi, {close_range}",
        "je {known}",
        "cmp rdi, {setuid}",
        "je {known}",
        "cmp rdi, {setreuid}",
        "je {known}",
        "cmp rdi, {setresuid}",
        "je {known}",
        "cmp rdi, {chroot}",
        "je {known}",
        "cmp rdi, {pivot_root}",
        "je {known}",
        "cmp rdi, {unshare}",
        "je {known}",
        "cmp rdi, {landlock}",
        "je {known}",
        // A child that begins in other namespaces.
        "cmp rdi, {clone}",
        "jne 3f",
        "test rsi, {moves_files}",
        "jz 3f",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        ".cfi_adjust_cfa_offset 56",
        "call {prepare}",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        ".cfi_adjust_cfa_offset -56",
        "3:",
        jump_to_next_with_registers!(),
        ".cfi_endproc",
        prctl = const libc::SYS_prctl,
        seccomp = const libc::SYS_seccomp,
        setns = const libc::SYS_setns,
        setrlimit = const libc::SYS_setrlimit,
        prlimit = const libc::SYS_prlimit64,
        dup2 = const libc::SYS_dup2,
        dup3 = const libc::SYS_dup3,
        close = const libc::SYS_close,
        close_range = const libc::SYS_close_range,
        setuid = const libc::SYS_setuid,
        setreuid = const libc::SYS_setreuid,
        setresuid = const libc::SYS_setresuid,
        chroot = const libc::SYS_chroot,
        pivot_root = const libc::SYS_pivot_root,
        unshare = const libc::SYS_unshare,
        landlock = const SYS_LANDLOCK_RESTRICT_SELF,
        clone = const libc::SYS_clone,
        moves_files = const MOVES_FILES,
        prepare = sym prepare_for_clone,
        known = sym known_syscall,
        next = sym next_functions::syscall,
        address = const NextFunction::ADDRESS_OFFSET,
        look_up = sym look_up_syscall,
    )
}

extern "C" fn look_up_syscall() -> *const () {
    next_functions::syscall.address()
}

/// `syscall` with one of the numbers that the hook knows.
unsafe extern "C-unwind" fn known_syscall(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> c_long {
    // SAFETY: the next function with the host's arguments.
    let call_next =
        || unsafe { call_next!(syscall(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> c_long) };
    if let Some(new) = new_user_by_system_call(number, [a, b, c]) {
        return change_user(new, call_next);
    }
    if prepare_for_system_call(number, a) {
        return call_next();
    }
    let restriction = match number {
        libc::SYS_setns => return enter_namespace(b as c_int, call_next),
        libc::SYS_dup2 | libc::SYS_dup3 => return replace_descriptor(b as c_int, call_next, is_busy),
        libc::SYS_close => return close_descriptor(a as c_int, call_next),
        libc::SYS_close_range => return close_in_range(a as c_uint, c as c_int, call_next),
        libc::SYS_setrlimit => {
            return with_limit(new_file_size_limit(a as c_int, with_exposed_provenance(b as usize)), call_next);
        }
        libc::SYS_prlimit64 => {
            return with_limit(new_file_size_limit(b as c_int, with_exposed_provenance(c as usize)), call_next);
        }
        libc::SYS_prctl if a as c_int == libc::PR_SET_NAME => return record_name(call_next),
        libc::SYS_prctl => restriction_by_prctl(a as c_int, [b, c, d, e]),
        _ if a as u32 == libc::SECCOMP_SET_MODE_STRICT => Some(Restriction::SystemCalls),
        _ if a as u32 == libc::SECCOMP_SET_MODE_FILTER => Some(filtered(c, b)),
        _ => None,
    };
    match restriction {
        None => call_next(),
        Some(restriction) => restrict(restriction, call_next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_forbid_something_restrict() {
        let forbids = |option, value| restriction_by_prctl(option, [value, 0x7fff_0000, 0, 0]);
        assert_eq!(forbids(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV as u64), Some(Restriction::Counter));
        assert_eq!(forbids(libc::PR_SET_TSC, libc::PR_TSC_ENABLE as u64), None);
        assert_eq!(forbids(libc::PR_SET_SECCOMP, 1), Some(Restriction::SystemCalls));
        assert_eq!(forbids(libc::PR_SET_SECCOMP, 2), Some(filtered(0x7fff_0000, 0)));
        assert_eq!(forbids(libc::PR_GET_TSC, 0x7fff_0000), None);
    }
}
