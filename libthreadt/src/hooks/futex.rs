//! futex(2) through `syscall`: what locks that are not pthreads wait and wake by.
//!
//! Only the kernel reads the futex word: its address may be wrong, and whether a call waits is known when it returns. So a wait is
//! recorded also where the word has changed meanwhile (EAGAIN).

use core::ffi::{c_int, c_long, c_void};
use core::ptr::with_exposed_provenance;

use spec::{EventId, RecordKind, id};

use crate::config::detail;
use crate::glibc::call_arguments::given_limit_ns;
use crate::process_state::Switch;
use crate::recorder::switch;
use crate::sys::errno::errno;
use crate::sys::read_pair;
use crate::{clock, recorder};

// Older versions of the crate libc do not name these.
pub const SYS_FUTEX_WAITV: c_long = 449;
pub const SYS_FUTEX_WAKE: c_long = 454;
pub const SYS_FUTEX_WAIT: c_long = 455;
pub const SYS_FUTEX_REQUEUE: c_long = 456;

/// Options of an operation, which stand beside its number.
const OPTIONS: c_int = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;

/// What a call of futex(2) is recorded as.
fn event(number: c_long, operation: c_int) -> EventId {
    match (number, operation & !OPTIONS) {
        (SYS_FUTEX_WAITV | SYS_FUTEX_WAIT, _) => id::FUTEX_WAIT,
        (SYS_FUTEX_WAKE, _) => id::FUTEX_WAKE,
        (SYS_FUTEX_REQUEUE, _) => id::FUTEX_OP,
        (_, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) => id::FUTEX_WAIT,
        (_, libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET) => id::FUTEX_WAKE,
        _ => id::FUTEX_OP,
    }
}

/// Whether the operation locks the word, and waits where that is necessary. Programs lock a free one without a system call.
fn locks(number: c_long, operation: c_int) -> bool {
    let operation = operation & !OPTIONS;
    number == libc::SYS_futex
        && matches!(operation, libc::FUTEX_LOCK_PI | libc::FUTEX_LOCK_PI2 | libc::FUTEX_WAIT_REQUEUE_PI)
}

/// The first four columns of the call's first record, by its number and the arguments behind that.
fn columns(number: c_long, [a, b, c, d, e]: [u64; 5]) -> [u64; 4] {
    let limit = |at: u64| given_limit_ns(with_exposed_provenance::<c_void>(at as usize).cast_mut());
    let int = |argument: u64| u64::from(argument as u32);
    // Calls of their own have no operation. They take a limit only where they wait.
    match number {
        SYS_FUTEX_WAITV => [address_of_waiter(a), number as u64, int(b), limit(d)],
        SYS_FUTEX_WAKE => [a, number as u64, int(c), 0],
        SYS_FUTEX_WAIT => [a, number as u64, b, limit(e)],
        SYS_FUTEX_REQUEUE => {
            let [from, to] = [a, a.wrapping_add(SIZE_OF_WAITER)].map(address_of_waiter);
            [from, number as u64, int(c), to]
        }
        _ => {
            let fourth = match b as c_int & !OPTIONS {
                libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => limit(d),
                libc::FUTEX_REQUEUE
                | libc::FUTEX_CMP_REQUEUE
                | libc::FUTEX_WAKE_OP
                | libc::FUTEX_WAIT_REQUEUE_PI
                | libc::FUTEX_CMP_REQUEUE_PI => e,
                // The register has what the caller has left there.
                _ => 0,
            };
            [a, int(b), int(c), fourth]
        }
    }
}

/// `sizeof(struct futex_waitv)`.
const SIZE_OF_WAITER: u64 = 24;

/// The address in the `struct futex_waitv` that is at `at`; 0 if it cannot be read.
fn address_of_waiter(at: u64) -> u64 {
    // A value and an address come first.
    read_pair(with_exposed_provenance::<c_void>(at as usize)).map_or(0, |[_, address]| address)
}

/// `syscall` with the number of a call of futex(2), of which some are recorded. `_aligned` and `caller` are what the stub and its
/// caller have pushed.
#[allow(clippy::too_many_arguments, reason = "they are in the places of the arguments of `syscall`")]
pub unsafe extern "C-unwind" fn futex_system_call(
    number: c_long,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    _aligned: u64,
    caller: u64,
    f: u64,
) -> c_long {
    // SAFETY: the next function with the host's arguments.
    let call_next =
        || unsafe { call_next!(syscall(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> c_long) };
    let event = event(number, b as c_int);
    let switch = switch(event);
    if !switch.is_on() {
        return call_next();
    }
    let columns = columns(number, [a, b, c, d, e]);
    match event {
        id::FUTEX_WAIT => put_two([&id::FUTEX_WAIT_1, &id::FUTEX_WAIT_2], true, columns, caller, call_next),
        id::FUTEX_WAKE => put_wake(switch, columns, call_next),
        _ => put_two([&id::FUTEX_OP_1, &id::FUTEX_OP_2], locks(number, b as c_int), columns, caller, call_next),
    }
}

/// What the call returned, and the reason if it failed.
fn outcome(result: c_long) -> [u64; 2] {
    [result as u64, if result == -1 { errno() as u64 } else { 0 }]
}

/// Records the call in two records; the stack before the call if it `waits`, and else behind it if it fails.
#[inline(always)]
fn put_two(
    kinds: [&'static RecordKind; 2],
    waits: bool,
    [address, operation, value, fourth]: [u64; 4],
    caller: u64,
    call_next: impl FnOnce() -> c_long,
) -> c_long {
    let time = clock::now_unfenced();
    recorder::put(kinds[0], time, [address, operation, value, fourth, detail(caller)]);
    if waits {
        recorder::put_stack(time);
    }
    let result = call_next();
    let [returned, error] = outcome(result);
    recorder::put_result(kinds[1], clock::now_fenced(), [returned, error, 0, 0, 0], !waits && error != 0);
    result
}

#[inline(always)]
fn put_wake(switch: Switch, [address, operation, count, _]: [u64; 4], call_next: impl FnOnce() -> c_long) -> c_long {
    let time = clock::now_unfenced();
    let noted = recorder::note_release(id::FUTEX_WAKE, address, time);
    let result = call_next();
    if !switch.is_selective() || result > 0 {
        let [woken, error] = outcome(result);
        recorder::put_result(&id::FUTEX_WAKE_0, time, [address, operation, count, woken, error], error != 0);
    }
    recorder::release_is_recorded(noted);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: c_long, arguments: [u64; 5]) -> (&'static str, [u64; 4]) {
        (event(number, arguments[1] as c_int).event().name, columns(number, arguments))
    }

    #[test]
    fn the_operation_decides_the_event_and_its_columns() {
        let limit = libc::timespec { tv_sec: 3, tv_nsec: 5 };
        let limit = (&raw const limit) as u64;
        let wake_bitset = (libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG) as u64;
        let of = |operation, value| call(libc::SYS_futex, [16, operation, value, limit, 32]);
        assert_eq!(of(0, 9 << 32 | 9), ("futex_wait", [16, 0, 9, 3_000_000_005]));
        assert_eq!(of(0x189, 9), ("futex_wait", [16, 0x189, 9, 3_000_000_005]));
        assert_eq!(of(1, 9), ("futex_wake", [16, 1, 9, 0]));
        assert_eq!(of(wake_bitset, 9), ("futex_wake", [16, 0x8a, 9, 0]));
        assert_eq!(of(4, 9), ("futex_op", [16, 4, 9, 32]));
        assert_eq!(of(6, 9), ("futex_op", [16, 6, 9, 0]));
        assert_eq!(of(99, 9), ("futex_op", [16, 99, 9, 0]));
    }

    #[test]
    fn calls_of_linux_6_7_have_their_numbers_as_operations() {
        let limit = libc::timespec { tv_sec: 3, tv_nsec: 5 };
        let limit = (&raw const limit) as u64;
        let waiters = [[7u64, 16, 2], [0, 32, 2]];
        let waiters = (&raw const waiters) as u64;
        assert_eq!(call(449, [waiters, 2, 0, limit, 1]), ("futex_wait", [16, 449, 2, 3_000_000_005]));
        assert_eq!(call(455, [16, 1 << 33, 99, 2, limit]), ("futex_wait", [16, 455, 1 << 33, 3_000_000_005]));
        assert_eq!(call(454, [16, 99, 3, 2, 99]), ("futex_wake", [16, 454, 3, 0]));
        assert_eq!(call(456, [waiters, 0, 1, 5, 99]), ("futex_op", [16, 456, 1, 32]));
        // What cannot be read stays unread.
        assert_eq!(call(449, [8, 2, 0, 8, 1]), ("futex_wait", [0, 449, 2, 0]));
    }
}
