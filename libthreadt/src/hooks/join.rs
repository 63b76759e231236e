//! The joins: their return record has the exit status, also where the caller did not ask for it.

use core::ffi::{c_int, c_void};
use core::ptr;

use spec::{EventId, RecordKind, id};

use super::result::{CallResult, ThrdStatus};
use crate::clock;
use crate::config::detail;
use crate::first_use::{records, switch};
use crate::glibc::call_arguments::given_limit_ns;
use crate::glibc::next_functions;
use crate::glibc::object_words::Ptr;
use crate::recorder::{self, ReturnRecord};

/// A join that may wait: two records around `function(thread, &status, further[0], further[1])`.
///
/// # Safety
/// `function` is the next function that takes these arguments; `exit_status` is the host's.
unsafe fn join(
    event: EventId,
    kinds: [&'static RecordKind; 2],
    entry: [u64; 5],
    function: *const (),
    exit_status: *mut *mut c_void,
    further: [u64; 2],
) -> c_int {
    let thread = entry[0];
    // SAFETY: the caller's.
    unsafe {
        if !records(event) {
            let function: unsafe extern "C-unwind" fn(u64, *mut *mut c_void, u64, u64) -> c_int =
                core::mem::transmute(function);
            return function(thread, exit_status, further[0], further[1]);
        }
        recorder::put(kinds[0], clock::now_fenced(), entry);
        let mut status = ptr::null_mut::<c_void>();
        let unwound = ReturnRecord::new(kinds[1], [thread, 0, libc::ECANCELED as u64, 0, 0]);
        let result = unwound.call(function, [thread, &raw mut status as u64, further[0], further[1]]) as c_int;
        let time = clock::now_fenced();
        if result == 0 && !exit_status.is_null() {
            exit_status.write(status);
        }
        let reported = if result == 0 { status as u64 } else { 0 };
        recorder::put(kinds[1], time, [thread, reported, result.rval(), 0, 0]);
        result
    }
}

const TIMED: [&RecordKind; 2] = [&id::THR_TIMEDJOIN_1, &id::THR_TIMEDJOIN_2];

hook! {
    /// `int pthread_join(pthread_t thread, void **exit_status);`
    fn pthread_join(thread: u64, exit_status: *mut *mut c_void; caller) -> c_int {
        let kinds = [&id::THR_JOIN_1, &id::THR_JOIN_2];
        let entry = [thread, 0, 0, 0, detail(caller)];
        // SAFETY: the next function with the host's arguments; it ignores those it does not take.
        unsafe { join(id::THR_JOIN, kinds, entry, next_functions::pthread_join.address(), exit_status, [0, 0]) }
    }
}

hook! {
    /// `int pthread_timedjoin_np(pthread_t thread, void **exit_status, const struct timespec *limit);`
    fn pthread_timedjoin_np(thread: u64, exit_status: *mut *mut c_void, limit: Ptr; caller) -> c_int {
        let limit_ns = if records(id::THR_TIMEDJOIN) { given_limit_ns(limit) } else { 0 };
        let entry = [thread, libc::CLOCK_REALTIME as u64, limit_ns, 0, detail(caller)];
        let function = next_functions::pthread_timedjoin_np.address();
        // SAFETY: as above.
        unsafe { join(id::THR_TIMEDJOIN, TIMED, entry, function, exit_status, [limit as u64, 0]) }
    }
}

hook! {
    /// `int pthread_clockjoin_np(pthread_t thread, void **exit_status, clockid_t clock, const struct timespec *limit);`
    fn pthread_clockjoin_np(thread: u64, exit_status: *mut *mut c_void, clock: c_int, limit: Ptr; caller) -> c_int {
        let clock = i64::from(clock) as u64;
        let limit_ns = if records(id::THR_TIMEDJOIN) { given_limit_ns(limit) } else { 0 };
        let function = next_functions::pthread_clockjoin_np.address();
        let entry = [thread, clock, limit_ns, 0, detail(caller)];
        // SAFETY: as above.
        unsafe { join(id::THR_TIMEDJOIN, TIMED, entry, function, exit_status, [clock, limit as u64]) }
    }
}

hook! {
    /// `int pthread_tryjoin_np(pthread_t thread, void **exit_status);`
    fn pthread_tryjoin_np(thread: u64, exit_status: *mut *mut c_void; caller) -> c_int {
        type Function = unsafe extern "C-unwind" fn(u64, *mut *mut c_void) -> c_int;
        // SAFETY: the next function with the host's arguments.
        unsafe {
            let next: Function = core::mem::transmute(next_functions::pthread_tryjoin_np.address());
            let switch = switch(id::THR_TRYJOIN);
            if !switch.is_on() {
                return next(thread, exit_status);
            }
            let mut status = ptr::null_mut::<c_void>();
            let result = next(thread, &mut status);
            let time = clock::now_fenced();
            if result == 0 && !exit_status.is_null() {
                exit_status.write(status);
            }
            let reported = if result == 0 { status as u64 } else { 0 };
            if result != 0 || !switch.is_selective() {
                recorder::put(&id::THR_TRYJOIN_0, time, [thread, reported, result.rval(), 0, detail(caller)]);
            }
            result
        }
    }
}

hook! {
    /// `int thrd_join(thrd_t thread, int *exit_status);`
    fn thrd_join(thread: u64, exit_status: *mut c_int; caller) -> ThrdStatus {
        type Function = unsafe extern "C-unwind" fn(u64, *mut c_int) -> ThrdStatus;
        // SAFETY: the next function with the host's arguments.
        unsafe {
            let function = next_functions::thrd_join.address();
            if !records(id::THR_JOIN) {
                let next: Function = core::mem::transmute(function);
                return next(thread, exit_status);
            }
            recorder::put(&id::THR_JOIN_1, clock::now_fenced(), [thread, 0, 0, 0, detail(caller)]);
            let mut status: c_int = 0;
            let unwound = ReturnRecord::new(&id::THR_JOIN_2, [thread, 0, libc::ECANCELED as u64, 0, 0]);
            let result = ThrdStatus::from_bits(unwound.call(function, [thread, &raw mut status as u64, 0, 0]));
            let time = clock::now_fenced();
            if result.rval() == 0 && !exit_status.is_null() {
                exit_status.write(status);
            }
            let reported = if result.rval() == 0 { i64::from(status) as u64 } else { 0 };
            recorder::put(&id::THR_JOIN_2, time, [thread, reported, result.rval(), 0, 0]);
            result
        }
    }
}
