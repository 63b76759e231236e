//! The joins: their return record has the exit status, also where the caller did not ask for it.

use core::ffi::c_int;

use spec::{EventId, RecordKind, id};

use super::result::{CallResult, ThrdStatus};
use crate::clock;
use crate::config::detail;
use crate::glibc::call_arguments::given_limit_ns;
use crate::glibc::next_functions::{self, NextFunction};
use crate::glibc::object_words::{self, Ptr};
use crate::recorder::{self, ReturnRecord, records, switch};

/// A kind of join that may wait, and its records.
struct Join {
    event: EventId,
    kinds: [&'static RecordKind; 2],
}

static JOIN: Join = Join { event: id::THR_JOIN, kinds: [&id::THR_JOIN_1, &id::THR_JOIN_2] };
static TIMED: Join = Join { event: id::THR_TIMEDJOIN, kinds: [&id::THR_TIMEDJOIN_1, &id::THR_TIMEDJOIN_2] };

/// Joins `thread` by `next`, whose arguments are the thread, where its exit status goes, and `further`. The time limit
/// is on `clock`; NULL if there is none.
///
/// # Safety
/// `next` is a function that takes these arguments, or the first of them, and has these results, of which zeros are a
/// valid one; `exit_status` is the host's.
unsafe fn join<R: CallResult, S: CallResult>(
    join: &'static Join,
    next: &NextFunction,
    thread: u64,
    exit_status: *mut S,
    (clock, limit): (c_int, Ptr),
    further: [u64; 2],
    caller: u64,
) -> R {
    // SAFETY: the caller's.
    unsafe {
        if !records(join.event) {
            let next: unsafe extern "C-unwind" fn(u64, *mut S, u64, u64) -> R = core::mem::transmute(next.address());
            return next(thread, exit_status, further[0], further[1]);
        }
        let entry = [thread, clock as u64, given_limit_ns(limit), 0, detail(caller)];
        let time = clock::now_fenced();
        recorder::put(join.kinds[0], time, entry);
        // The next function reads the thread's words, too.
        let waits = !object_words::thread_has_ended(thread);
        if waits {
            recorder::put_stack(time);
        }
        let mut status = core::mem::zeroed::<S>();
        let unwound = ReturnRecord::new(join.kinds[1], [thread, 0, libc::ECANCELED as u64, 0, 0]);
        let arguments = [thread, &raw mut status as u64, further[0], further[1]];
        let result: R = unwound.call(next.address(), arguments);
        let time = clock::now_fenced();
        let columns = joined(thread, result, status, exit_status);
        recorder::put_result(join.kinds[1], time, columns, !waits && result.is_error());
        result
    }
}

/// The columns of a join's return record. If it has succeeded, stores the status where the host wants it.
///
/// # Safety
/// `exit_status` is the host's.
unsafe fn joined<S: CallResult>(thread: u64, result: impl CallResult, status: S, exit_status: *mut S) -> [u64; 5] {
    if result.rval() != 0 {
        return [thread, 0, result.rval(), 0, 0];
    }
    if !exit_status.is_null() {
        // SAFETY: the caller's.
        unsafe { exit_status.write(status) };
    }
    [thread, status.rval(), 0, 0, 0]
}

hook! {
    /// `int pthread_join(pthread_t thread, void **exit_status);`
    fn pthread_join(thread: u64, exit_status: *mut Ptr; caller) -> c_int {
        let no_limit = (0, core::ptr::null_mut());
        // SAFETY: the next function with the host's arguments; it ignores those it does not take.
        unsafe { join(&JOIN, &next_functions::pthread_join, thread, exit_status, no_limit, [0, 0], caller) }
    }
}

hook! {
    /// `int thrd_join(thrd_t thread, int *exit_status);`
    fn thrd_join(thread: u64, exit_status: *mut c_int; caller) -> ThrdStatus {
        let no_limit = (0, core::ptr::null_mut());
        // SAFETY: as above.
        unsafe { join(&JOIN, &next_functions::thrd_join, thread, exit_status, no_limit, [0, 0], caller) }
    }
}

hook! {
    /// `int pthread_timedjoin_np(pthread_t thread, void **exit_status, const struct timespec *limit);`
    fn pthread_timedjoin_np(thread: u64, exit_status: *mut Ptr, limit: Ptr; caller) -> c_int {
        let (next, further) = (&next_functions::pthread_timedjoin_np, [limit as u64, 0]);
        // SAFETY: as above.
        unsafe { join(&TIMED, next, thread, exit_status, (libc::CLOCK_REALTIME, limit), further, caller) }
    }
}

hook! {
    /// `int pthread_clockjoin_np(pthread_t thread, void **exit_status, clockid_t clock, const struct timespec *limit);`
    fn pthread_clockjoin_np(thread: u64, exit_status: *mut Ptr, clock: c_int, limit: Ptr; caller) -> c_int {
        let (next, further) = (&next_functions::pthread_clockjoin_np, [clock as u64, limit as u64]);
        // SAFETY: as above.
        unsafe { join(&TIMED, next, thread, exit_status, (clock, limit), further, caller) }
    }
}

hook! {
    /// `int pthread_tryjoin_np(pthread_t thread, void **exit_status);`
    fn pthread_tryjoin_np(thread: u64, exit_status: *mut Ptr; caller) -> c_int {
        let switch = switch(id::THR_TRYJOIN);
        let mut status = core::ptr::null_mut();
        let target = if switch.is_on() { &raw mut status } else { exit_status };
        // SAFETY: the next function with the host's arguments, or with a place of this frame.
        unsafe {
            let result = call_next!(pthread_tryjoin_np(thread: u64, target: *mut Ptr) -> c_int);
            if switch.is_on() {
                let time = clock::now_fenced();
                let [thread, status, rval, ..] = joined(thread, result, status, exit_status);
                if rval != 0 || !switch.is_selective() {
                    let columns = [thread, status, rval, 0, detail(caller)];
                    recorder::put_result(&id::THR_TRYJOIN_0, time, columns, result.is_error());
                }
            }
            result
        }
    }
}
