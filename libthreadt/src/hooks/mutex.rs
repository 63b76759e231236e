//! `pthread_mutex_lock` and its timed and C11 kin.
//!
//! A free mutex is taken by the real try: then one clock reading, after it, serves both records, and `block?` is exact.
//! If the try fails, the first record is written before the real lock is called.

use core::ffi::c_int;

use spec::{EventId, RecordKind, id};

use super::{Outcome, ThrdStatus};
use crate::config::{detail, is_detailed};
use crate::measure::{self, Ptr, given_limit_ns};
use crate::real::Real;
use crate::{clock, process, real, record};

/// A lock event and its records, for mutexes that are not recursive and for those that are.
struct Lock {
    event: EventId,
    plain: [&'static RecordKind; 2],
    recursive: [&'static RecordKind; 2],
}

static LOCK: Lock = Lock {
    event: id::MUTEX_LOCK,
    plain: [&id::MUTEX_LOCK_1, &id::MUTEX_LOCK_2],
    recursive: [&id::RMUTEX_LOCK_1, &id::RMUTEX_LOCK_2],
};

static TIMED: Lock = Lock {
    event: id::MUTEX_TIMEDLOCK,
    plain: [&id::MUTEX_TIMEDLOCK_1, &id::MUTEX_TIMEDLOCK_2],
    recursive: [&id::RMUTEX_TIMEDLOCK_1, &id::RMUTEX_TIMEDLOCK_2],
};

/// Locks `mutex` by `really`, and before that by `try_lock` if that may be.
///
/// # Safety
/// `mutex` is what the host passed; `try_lock` and `really` are the real functions for it.
#[inline(always)]
unsafe fn lock<R: Outcome>(
    lock: &'static Lock,
    mutex: Ptr,
    caller: u64,
    try_lock: Option<&Real>,
    limit: impl Fn() -> [u64; 2],
    really: impl Fn() -> R,
) -> R {
    let switch = process::switch(lock.event);
    if !switch.is_on() {
        return really();
    }
    // SAFETY: the real call reads the mutex.
    let kind = unsafe { measure::kind(mutex) };
    let recursive = kind.is_recursive();
    if !switch.is_on_for(recursive) {
        return really();
    }
    let forms = if recursive { lock.recursive } else { lock.plain };
    let first = |owner: u64| {
        let [clock, limit] = limit();
        [mutex as u64, clock, limit, owner, detail(caller)]
    };
    let second = |rval: u64, block: bool| {
        // SAFETY: after success the mutex is the caller's.
        let depth = if recursive && is_taken(rval) { unsafe { measure::recursion_depth(mutex) } } else { 0 };
        [rval, u64::from(block), depth, 0, 0]
    };
    let held = match try_lock.filter(|real| kind.may_be_tried() && real.is_libc()) {
        Some(real) => {
            // SAFETY: the real try of this kind of mutex.
            let result = unsafe {
                let try_lock: unsafe extern "C" fn(Ptr) -> R = core::mem::transmute(real.address());
                try_lock(mutex)
            };
            if is_taken(result.rval()) {
                if switch.selects() {
                    return result;
                }
                let time = clock::now();
                let second = second(result.rval(), false);
                // It was free, or its owner, the caller, has locked it once more.
                // SAFETY: the mutex is the caller's.
                let owner = if second[2] > 1 && is_detailed() { unsafe { measure::mutex_owner(mutex) } } else { 0 };
                record::put_pair(forms, time, first(owner), second);
                return result;
            }
            result.rval() == libc::EBUSY as u64
        }
        // SAFETY: the real call reads the mutex.
        None => unsafe {
            if switch.selects() && measure::mutex_is_free(mutex) {
                return really();
            }
            measure::mutex_is_held(mutex)
        },
    };
    let time = clock::early();
    // SAFETY: the real call reads the mutex.
    let owner = if is_detailed() { unsafe { measure::mutex_owner(mutex) } } else { 0 };
    record::put(forms[0], time, first(owner));
    let result = really();
    let time = clock::now();
    let rval = result.rval();
    record::put(forms[1], time, second(rval, held && is_taken(rval) || rval == libc::ETIMEDOUT as u64));
    result
}

/// Whether a lock call that returned `rval` has got the mutex.
fn is_taken(rval: u64) -> bool {
    rval == 0 || rval == libc::EOWNERDEAD as u64
}

/// The time limit of a call that takes no clock.
fn wall_limit(limit: Ptr) -> [u64; 2] {
    [libc::CLOCK_REALTIME as u64, given_limit_ns(limit)]
}

type LockFunction<R> = unsafe extern "C" fn(Ptr) -> R;
type TimedFunction<R> = unsafe extern "C" fn(Ptr, Ptr) -> R;
type ClockFunction = unsafe extern "C" fn(Ptr, c_int, Ptr) -> c_int;

hook! {
    /// `int pthread_mutex_lock(pthread_mutex_t *mutex);`
    fn pthread_mutex_lock, __pthread_mutex_lock(mutex: Ptr; caller) -> c_int {
        // SAFETY: the real functions with the host's arguments.
        unsafe {
            lock(&LOCK, mutex, caller, Some(&real::pthread_mutex_trylock), || [0, 0], || {
                let real: LockFunction<c_int> = core::mem::transmute(real::pthread_mutex_lock.address());
                real(mutex)
            })
        }
    }
}

hook! {
    /// `int mtx_lock(mtx_t *mutex);`
    fn mtx_lock(mutex: Ptr; caller) -> ThrdStatus {
        // SAFETY: the real functions with the host's arguments.
        unsafe {
            lock(&LOCK, mutex, caller, Some(&real::mtx_trylock), || [0, 0], || {
                let real: LockFunction<ThrdStatus> = core::mem::transmute(real::mtx_lock.address());
                real(mutex)
            })
        }
    }
}

hook! {
    /// `int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *limit);`
    fn pthread_mutex_timedlock(mutex: Ptr, limit: Ptr; caller) -> c_int {
        // SAFETY: the real functions with the host's arguments.
        unsafe {
            let try_lock = Some(&real::pthread_mutex_trylock);
            lock(&TIMED, mutex, caller, try_lock, || wall_limit(limit), || {
                let real: TimedFunction<c_int> = core::mem::transmute(real::pthread_mutex_timedlock.address());
                real(mutex, limit)
            })
        }
    }
}

hook! {
    /// `int mtx_timedlock(mtx_t *mutex, const struct timespec *limit);`
    fn mtx_timedlock(mutex: Ptr, limit: Ptr; caller) -> ThrdStatus {
        // SAFETY: the real functions with the host's arguments.
        unsafe {
            lock(&TIMED, mutex, caller, Some(&real::mtx_trylock), || wall_limit(limit), || {
                let real: TimedFunction<ThrdStatus> = core::mem::transmute(real::mtx_timedlock.address());
                real(mutex, limit)
            })
        }
    }
}

hook! {
    /// `int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *limit);`
    fn pthread_mutex_clocklock(mutex: Ptr, clock: c_int, limit: Ptr; caller) -> c_int {
        // A clock that it does not know makes it fail even if the mutex is free.
        let known = clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC;
        // SAFETY: the real functions with the host's arguments.
        unsafe {
            let try_lock = known.then_some(&real::pthread_mutex_trylock);
            let columns = || [i64::from(clock) as u64, given_limit_ns(limit)];
            lock(&TIMED, mutex, caller, try_lock, columns, || {
                let real: ClockFunction = core::mem::transmute(real::pthread_mutex_clocklock.address());
                real(mutex, clock, limit)
            })
        }
    }
}
