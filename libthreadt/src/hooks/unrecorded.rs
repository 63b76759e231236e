//! Calls that this library has to know of, though they are not recorded (but for a `prctl` that names the thread):
//! - `prctl` where it forbids the thread the processor's counter or system calls,
//! - `setrlimit`, `prlimit` and `ulimit`, which limit the size of files,
//! - `close`, `close_range`, `closefrom`, `dup2` and `dup3`, after which a descriptor's number stands for something else.
//!
//! `prctl` is variadic in C: its arguments are in registers whether they are there
//! or not. Where `syscall` makes one of these calls, `system_call` uses the functions below.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use spec::id;

use crate::clock;
use crate::first_use::records_nothing;
use crate::glibc::call_arguments::name_word;
use crate::glibc::next_functions;
use crate::lifecycle::{
    Restriction, change_file_size_limit, close_descriptor, close_descriptors_from, leave_descriptor_table,
    replace_descriptor, restrict,
};
use crate::recorder::{self, records};
use crate::sys::errno::errno;
use crate::sys::{self, user_dispatch};
use crate::trace_dir::command_line;

/// What `prctl(option, value, more, length, selector)` forbids.
pub fn restriction_by_prctl(option: c_int, [value, more, length, selector]: [u64; 4]) -> Option<Restriction> {
    const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
    const PR_SYS_DISPATCH_OFF: u64 = 0;
    // Not the calls from outside the range are handed over, but those from within it.
    const PR_SYS_DISPATCH_INCLUSIVE_ON: u64 = 2;
    let is_handed_over = || user_dispatch::has_library(more, length) == (value == PR_SYS_DISPATCH_INCLUSIVE_ON);
    match option {
        PR_SET_SYSCALL_USER_DISPATCH if value == PR_SYS_DISPATCH_OFF => Some(Restriction::NotDispatched),
        PR_SET_SYSCALL_USER_DISPATCH if is_handed_over() => {
            Some(Restriction::Dispatched(with_exposed_provenance_mut(selector as usize)))
        }
        libc::PR_SET_TSC if value as c_int == libc::PR_TSC_SIGSEGV => Some(Restriction::Counter),
        libc::PR_SET_SECCOMP if value == u64::from(libc::SECCOMP_MODE_STRICT) => Some(Restriction::SystemCalls),
        libc::PR_SET_SECCOMP if value == u64::from(libc::SECCOMP_MODE_FILTER) => Some(filtered(more, 0)),
        _ => None,
    }
}

/// A filter at this address, with the flags of `seccomp`.
pub fn filtered(address: u64, flags: u64) -> Restriction {
    let [synchronised, listener] = [libc::SECCOMP_FILTER_FLAG_TSYNC, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER];
    Restriction::Filtered {
        filter: with_exposed_provenance(address as usize),
        // A listener's descriptor is greater than 0, too, but with both flags no thread is named.
        may_name_thread: flags & (synchronised | listener) == synchronised,
    }
}

hook! {
    /// `int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);`
    fn prctl(option: c_int, a: u64, b: u64, c: u64, d: u64; _caller) -> c_int {
        match restriction_by_prctl(option, [a, b, c, d]) {
            None if [libc::PR_SET_NAME, libc::PR_SET_MM].contains(&option) => {
                // SAFETY: the next function with the host's arguments.
                let call_next = || unsafe { call_next!(prctl(option: c_int, a: u64, b: u64, c: u64, d: u64) -> c_int) };
                rename(option, || call_next().into()) as c_int
            }
            // SAFETY: as above.
            None => unsafe { jump_to_next!(prctl(option: c_int, a: u64, b: u64, c: u64, d: u64) -> c_int) },
            // SAFETY: as above.
            Some(restriction) => unsafe { restricting_prctl(restriction, option, a, b, c, d) },
        }
    }
}

/// Gives the calling thread a name, or the process another place for its command line, by `call`: `prctl` with one of these options.
pub fn rename(option: c_int, call: impl FnOnce() -> c_long) -> c_long {
    if option == libc::PR_SET_NAME {
        return record_name(call);
    }
    let result = call();
    command_line::forget_place();
    result
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
pub fn is_busy(result: &c_long) -> bool {
    *result == -1 && errno() == libc::EBUSY
}

hook! {
    /// `int dup2(int old, int new);`
    fn dup2(old: c_int, new: c_int; _caller) -> c_int {
        // SAFETY: the next function with the host's arguments.
        let call_next = || unsafe { call_next!(dup2(old: c_int, new: c_int) -> c_int) };
        replace_descriptor(new, || call_next().into(), is_busy) as c_int
    }
}

hook! {
    /// `int dup3(int old, int new, int flags);`
    fn dup3(old: c_int, new: c_int, flags: c_int; _caller) -> c_int {
        // SAFETY: as above.
        let call_next = || unsafe { call_next!(dup3(old: c_int, new: c_int, flags: c_int) -> c_int) };
        replace_descriptor(new, || call_next().into(), is_busy) as c_int
    }
}

hook! {
    /// `int close(int fd);`
    fn close(fd: c_int; _caller) -> c_int {
        if records_nothing() {
            // SAFETY: the next function with the host's arguments.
            return unsafe { jump_to_next!(close(fd: c_int) -> c_int) };
        }
        // SAFETY: as above.
        close_descriptor(fd, || unsafe { call_next!(close(fd: c_int) -> c_int) }.into()) as c_int
    }
}

hook! {
    /// `int close_range(unsigned int first, unsigned int last, int flags);`
    fn close_range(first: c_uint, last: c_uint, flags: c_int; _caller) -> c_int {
        // SAFETY: as above.
        let call_next = || unsafe { call_next!(close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int) };
        close_in_range(first, flags, || call_next().into()) as c_int
    }
}

hook! {
    /// `void closefrom(int least);`
    fn closefrom(least: c_int; _caller) -> () {
        close_descriptors_from(least, || {
            // SAFETY: as above.
            unsafe { call_next!(closefrom(least: c_int) -> ()) };
            0
        });
    }
}

/// `close_range` by `call_next`. With one flag it does not close anything, but marks what an exec closes; with another one it
/// does that in a table of the thread's own.
pub fn close_in_range(first: c_uint, flags: c_int, call_next: impl Fn() -> c_long) -> c_long {
    match c_int::try_from(first) {
        least if flags as c_uint & libc::CLOSE_RANGE_UNSHARE != 0 => leave_descriptor_table(least.ok(), call_next),
        Ok(first) if flags as c_uint & libc::CLOSE_RANGE_CLOEXEC == 0 => close_descriptors_from(first, call_next),
        _ => call_next(),
    }
}

/// The limit that is set on the size of files when this resource gets the limits at `new`, as far as they can be read;
/// `None` if nothing is set.
pub fn new_file_size_limit(resource: c_int, new: *const c_void) -> Option<u64> {
    let sets = resource as u32 == libc::RLIMIT_FSIZE && !new.is_null();
    sets.then(|| sys::read_pair(new).map_or(u64::MAX, |[soft, _]| soft))
}

hook! {
    /// `int setrlimit(int resource, const struct rlimit *limits);`
    fn setrlimit(resource: c_int, new: *const c_void; _caller) -> c_int {
        // SAFETY: the next function with the host's arguments.
        let call_next = || unsafe { call_next!(setrlimit(resource: c_int, new: *const c_void) -> c_int) };
        with_limit(new_file_size_limit(resource, new), || call_next().into()) as c_int
    }
}

hook! {
    /// `int setrlimit64(int resource, const struct rlimit64 *limits);`
    fn setrlimit64(resource: c_int, new: *const c_void; _caller) -> c_int {
        // SAFETY: as above.
        let call_next = || unsafe { call_next!(setrlimit64(resource: c_int, new: *const c_void) -> c_int) };
        with_limit(new_file_size_limit(resource, new), || call_next().into()) as c_int
    }
}

hook! {
    /// `int prlimit(pid_t pid, int resource, const struct rlimit *new, struct rlimit *old);` Also the calling process may be
    /// named by its ID.
    fn prlimit(pid: c_int, resource: c_int, new: *const c_void, old: *mut c_void; _caller) -> c_int {
        // SAFETY: as above.
        let call_next =
            || unsafe { call_next!(prlimit(pid: c_int, resource: c_int, new: *const c_void, old: *mut c_void) -> c_int) };
        with_limit(new_file_size_limit(resource, new), || call_next().into()) as c_int
    }
}

hook! {
    /// `int prlimit64(pid_t pid, int resource, const struct rlimit64 *new, struct rlimit64 *old);`
    fn prlimit64(pid: c_int, resource: c_int, new: *const c_void, old: *mut c_void; _caller) -> c_int {
        // SAFETY: as above.
        let call_next =
            || unsafe { call_next!(prlimit64(pid: c_int, resource: c_int, new: *const c_void, old: *mut c_void) -> c_int) };
        with_limit(new_file_size_limit(resource, new), || call_next().into()) as c_int
    }
}

hook! {
    /// `long ulimit(int command, long limit);` It calls `setrlimit` within libc. The limit is in units of 512 bytes.
    fn ulimit(command: c_int, limit: c_long; _caller) -> c_long {
        const UL_SETFSIZE: c_int = 2;
        // SAFETY: as above.
        let call_next = || unsafe { call_next!(ulimit(command: c_int, limit: c_long) -> c_long) };
        with_limit((command == UL_SETFSIZE).then_some((limit as u64).saturating_mul(512)), call_next)
    }
}

/// Makes a call that sets this limit on the size of files, or none.
pub fn with_limit(limit: Option<u64>, call_next: impl FnOnce() -> c_long) -> c_long {
    match limit {
        None => call_next(),
        Some(limit) => change_file_size_limit(limit, call_next),
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
