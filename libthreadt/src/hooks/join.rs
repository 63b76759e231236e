//! The joins: their second record tells the exit status, also where the caller did not ask for it.

use core::ffi::{c_int, c_void};
use core::ptr;

use spec::{EventId, RecordKind, id};

use super::{Outcome, ThrdStatus};
use crate::config::detail;
use crate::guard::Guard;
use crate::measure::{Ptr, given_limit_ns};
use crate::{clock, process, real, record};

/// A join that may wait: two records around `function(thread, &status, third, fourth)`.
///
/// # Safety
/// `function` is the real function that takes these arguments; `exit_status` is the host's.
unsafe fn join(
    event: EventId,
    forms: [&'static RecordKind; 2],
    first: [u64; 5],
    function: *const (),
    exit_status: *mut *mut c_void,
    further: [u64; 2],
) -> c_int {
    let thread = first[0];
    // SAFETY: the caller's.
    unsafe {
        if !process::records(event) {
            let function: unsafe extern "C" fn(u64, *mut *mut c_void, u64, u64) -> c_int =
                core::mem::transmute(function);
            return function(thread, exit_status, further[0], further[1]);
        }
        record::put(forms[0], clock::now(), first);
        let mut status = ptr::null_mut::<c_void>();
        let guard = Guard::record(forms[1], [thread, 0, libc::ECANCELED as u64, 0, 0]);
        let result = guard.call(function, thread, &raw mut status as u64, further[0], further[1]) as c_int;
        let time = clock::now();
        if result == 0 && !exit_status.is_null() {
            exit_status.write(status);
        }
        let told = if result == 0 { status as u64 } else { 0 };
        record::put(forms[1], time, [thread, told, result.rval(), 0, 0]);
        result
    }
}

const TIMED: [&RecordKind; 2] = [&id::THR_TIMEDJOIN_1, &id::THR_TIMEDJOIN_2];

hook! {
    /// `int pthread_join(pthread_t thread, void **exit_status);`
    fn pthread_join(thread: u64, exit_status: *mut *mut c_void; caller) -> c_int {
        let forms = [&id::THR_JOIN_1, &id::THR_JOIN_2];
        let first = [thread, 0, 0, 0, detail(caller)];
        // SAFETY: the real function with the host's arguments; it ignores those it does not take.
        unsafe { join(id::THR_JOIN, forms, first, real::pthread_join.address(), exit_status, [0, 0]) }
    }
}

hook! {
    /// `int pthread_timedjoin_np(pthread_t thread, void **exit_status, const struct timespec *limit);`
    fn pthread_timedjoin_np(thread: u64, exit_status: *mut *mut c_void, limit: Ptr; caller) -> c_int {
        let first = if process::records(id::THR_TIMEDJOIN) { given_limit_ns(limit) } else { 0 };
        let first = [thread, libc::CLOCK_REALTIME as u64, first, 0, detail(caller)];
        let function = real::pthread_timedjoin_np.address();
        // SAFETY: as above.
        unsafe { join(id::THR_TIMEDJOIN, TIMED, first, function, exit_status, [limit as u64, 0]) }
    }
}

hook! {
    /// `int pthread_clockjoin_np(pthread_t thread, void **exit_status, clockid_t clock, const struct timespec *limit);`
    fn pthread_clockjoin_np(thread: u64, exit_status: *mut *mut c_void, clock: c_int, limit: Ptr; caller) -> c_int {
        let clock = i64::from(clock) as u64;
        let first = if process::records(id::THR_TIMEDJOIN) { given_limit_ns(limit) } else { 0 };
        let function = real::pthread_clockjoin_np.address();
        let first = [thread, clock, first, 0, detail(caller)];
        // SAFETY: as above.
        unsafe { join(id::THR_TIMEDJOIN, TIMED, first, function, exit_status, [clock, limit as u64]) }
    }
}

hook! {
    /// `int pthread_tryjoin_np(pthread_t thread, void **exit_status);`
    fn pthread_tryjoin_np(thread: u64, exit_status: *mut *mut c_void; caller) -> c_int {
        type Function = unsafe extern "C" fn(u64, *mut *mut c_void) -> c_int;
        // SAFETY: the real function with the host's arguments.
        unsafe {
            let real: Function = core::mem::transmute(real::pthread_tryjoin_np.address());
            let switch = process::switch(id::THR_TRYJOIN);
            if !switch.is_on() {
                return real(thread, exit_status);
            }
            let mut status = ptr::null_mut::<c_void>();
            let result = real(thread, &mut status);
            let time = clock::now();
            if result == 0 && !exit_status.is_null() {
                exit_status.write(status);
            }
            let told = if result == 0 { status as u64 } else { 0 };
            if result != 0 || !switch.selects() {
                record::put(&id::THR_TRYJOIN_0, time, [thread, told, result.rval(), 0, detail(caller)]);
            }
            result
        }
    }
}

hook! {
    /// `int thrd_join(thrd_t thread, int *exit_status);`
    fn thrd_join(thread: u64, exit_status: *mut c_int; caller) -> ThrdStatus {
        type Function = unsafe extern "C" fn(u64, *mut c_int) -> ThrdStatus;
        // SAFETY: the real function with the host's arguments.
        unsafe {
            let function = real::thrd_join.address();
            if !process::records(id::THR_JOIN) {
                let real: Function = core::mem::transmute(function);
                return real(thread, exit_status);
            }
            record::put(&id::THR_JOIN_1, clock::now(), [thread, 0, 0, 0, detail(caller)]);
            let mut status: c_int = 0;
            let guard = Guard::record(&id::THR_JOIN_2, [thread, 0, libc::ECANCELED as u64, 0, 0]);
            let result = ThrdStatus::from_bits(guard.call(function, thread, &raw mut status as u64, 0, 0));
            let time = clock::now();
            if result.rval() == 0 && !exit_status.is_null() {
                exit_status.write(status);
            }
            let told = if result.rval() == 0 { i64::from(status) as u64 } else { 0 };
            record::put(&id::THR_JOIN_2, time, [thread, told, result.rval(), 0, 0]);
            result
        }
    }
}
