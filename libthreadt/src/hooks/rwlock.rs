//! `pthread_rwlock_rdlock` and `_wrlock`, with their timed kin.
//!
//! The untimed ones are tried first, as mutexes are, where that is harmless: in glibc 2.25 to 2.29 a try could leave
//! readers asleep (bug 23844). The timed ones check their arguments even when the lock is free, so that a try would
//! hide an error; there the lock's word, read before the call, tells whether it had to wait.

use core::ffi::c_int;

use spec::{EventId, RecordKind, id};

use super::Outcome;
use crate::config::{detail, is_detailed};
use crate::measure::{self, Ptr, limit_ns};
use crate::real::Real;
use crate::{clock, process, real, record};

/// One way to lock.
struct Lock {
    event: EventId,
    forms: [&'static RecordKind; 2],
    /// Whether the lock as it is keeps the caller out.
    excludes: unsafe fn(Ptr) -> bool,
    is_read: bool,
}

static READ: Lock = Lock {
    event: id::RW_RDLOCK,
    forms: [&id::RW_RDLOCK_1, &id::RW_RDLOCK_2],
    excludes: measure::rwlock_excludes_readers,
    is_read: true,
};

static WRITE: Lock = Lock {
    event: id::RW_WRLOCK,
    forms: [&id::RW_WRLOCK_1, &id::RW_WRLOCK_2],
    excludes: measure::rwlock_excludes_writers,
    is_read: false,
};

static TIMED_READ: Lock =
    Lock { event: id::RW_TIMEDRDLOCK, forms: [&id::RW_TIMEDRDLOCK_1, &id::RW_TIMEDRDLOCK_2], ..READ };

static TIMED_WRITE: Lock =
    Lock { event: id::RW_TIMEDWRLOCK, forms: [&id::RW_TIMEDWRLOCK_1, &id::RW_TIMEDWRLOCK_2], ..WRITE };

/// Locks `rwlock` by `really`, and before that by `try_lock` if that may be.
///
/// # Safety
/// `rwlock` is what the host passed; `try_lock` and `really` are the real functions for it.
#[inline(always)]
unsafe fn lock(
    lock: &'static Lock,
    rwlock: Ptr,
    caller: u64,
    try_lock: Option<&Real>,
    limit: impl Fn() -> [u64; 2],
    really: impl Fn() -> c_int,
) -> c_int {
    let switch = process::switch(lock.event);
    if !switch.is_on() {
        return really();
    }
    let [clock_id, limit] = limit();
    let first = |owner: u64| [rwlock as u64, clock_id, limit, owner, detail(caller)];
    let second = |result: c_int, block: bool| {
        // SAFETY: after success the caller is one of its holders.
        let readers = if lock.is_read && result == 0 { unsafe { measure::rwlock_readers(rwlock) } } else { 0 };
        [result.rval(), u64::from(block), readers, 0, 0]
    };
    // The clock functions came with the release that follows the repair of the tries.
    let tries_are_right = real::pthread_rwlock_clockrdlock.found().is_some();
    let held = match try_lock.filter(|real| tries_are_right && real.is_libc()) {
        Some(real) => {
            // SAFETY: the real try.
            let result = unsafe {
                let try_lock: unsafe extern "C" fn(Ptr) -> c_int = core::mem::transmute(real.address());
                try_lock(rwlock)
            };
            if result == 0 {
                if !switch.selects() {
                    record::put_pair(lock.forms, clock::now(), first(0), second(0, false));
                }
                return 0;
            }
            result == libc::EBUSY
        }
        // SAFETY: the real call reads the lock.
        None => unsafe {
            let held = (lock.excludes)(rwlock);
            if !held && switch.selects() && measure::knows_rwlocks() {
                return really();
            }
            held
        },
    };
    let time = clock::early();
    // SAFETY: the real call reads the lock.
    let owner = if is_detailed() { unsafe { measure::rwlock_writer(rwlock) } } else { 0 };
    record::put(lock.forms[0], time, first(owner));
    let result = really();
    let time = clock::now();
    record::put(lock.forms[1], time, second(result, held && result == 0 || result == libc::ETIMEDOUT));
    result
}

type LockFunction = unsafe extern "C" fn(Ptr) -> c_int;
type TimedFunction = unsafe extern "C" fn(Ptr, Ptr) -> c_int;
type ClockFunction = unsafe extern "C" fn(Ptr, c_int, Ptr) -> c_int;

hook! {
    /// `int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock);`
    fn pthread_rwlock_rdlock, __pthread_rwlock_rdlock(rwlock: Ptr; caller) -> c_int {
        // SAFETY: the real functions with the host's arguments.
        unsafe {
            let real: LockFunction = core::mem::transmute(real::pthread_rwlock_rdlock.address());
            lock(&READ, rwlock, caller, Some(&real::pthread_rwlock_tryrdlock), || [0, 0], || real(rwlock))
        }
    }
}

hook! {
    /// `int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock);`
    fn pthread_rwlock_wrlock, __pthread_rwlock_wrlock(rwlock: Ptr; caller) -> c_int {
        // SAFETY: the real functions with the host's arguments.
        unsafe {
            let real: LockFunction = core::mem::transmute(real::pthread_rwlock_wrlock.address());
            lock(&WRITE, rwlock, caller, Some(&real::pthread_rwlock_trywrlock), || [0, 0], || real(rwlock))
        }
    }
}

/// A call with a time limit on the wall clock.
unsafe fn timed(lock_kind: &'static Lock, real: &Real, rwlock: Ptr, limit: Ptr, caller: u64) -> c_int {
    // SAFETY: the caller's: the real function with the host's arguments.
    unsafe {
        let real: TimedFunction = core::mem::transmute(real.address());
        lock(lock_kind, rwlock, caller, None, || [0, limit_ns(limit, 0)], || real(rwlock, limit))
    }
}

/// A call with a time limit on a clock of its own.
unsafe fn clocked(lock_kind: &'static Lock, real: &Real, rwlock: Ptr, clock: c_int, limit: Ptr, caller: u64) -> c_int {
    // SAFETY: the caller's: the real function with the host's arguments.
    unsafe {
        let real: ClockFunction = core::mem::transmute(real.address());
        let columns = || [i64::from(clock) as u64, limit_ns(limit, clock)];
        lock(lock_kind, rwlock, caller, None, columns, || real(rwlock, clock, limit))
    }
}

hook! {
    /// `int pthread_rwlock_timedrdlock(pthread_rwlock_t *rwlock, const struct timespec *limit);`
    fn pthread_rwlock_timedrdlock(rwlock: Ptr, limit: Ptr; caller) -> c_int {
        // SAFETY: the host's arguments.
        unsafe { timed(&TIMED_READ, &real::pthread_rwlock_timedrdlock, rwlock, limit, caller) }
    }
}

hook! {
    /// `int pthread_rwlock_timedwrlock(pthread_rwlock_t *rwlock, const struct timespec *limit);`
    fn pthread_rwlock_timedwrlock(rwlock: Ptr, limit: Ptr; caller) -> c_int {
        // SAFETY: the host's arguments.
        unsafe { timed(&TIMED_WRITE, &real::pthread_rwlock_timedwrlock, rwlock, limit, caller) }
    }
}

hook! {
    /// `int pthread_rwlock_clockrdlock(pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *limit);`
    fn pthread_rwlock_clockrdlock(rwlock: Ptr, clock: c_int, limit: Ptr; caller) -> c_int {
        // SAFETY: the host's arguments.
        unsafe { clocked(&TIMED_READ, &real::pthread_rwlock_clockrdlock, rwlock, clock, limit, caller) }
    }
}

hook! {
    /// `int pthread_rwlock_clockwrlock(pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *limit);`
    fn pthread_rwlock_clockwrlock(rwlock: Ptr, clock: c_int, limit: Ptr; caller) -> c_int {
        // SAFETY: the host's arguments.
        unsafe { clocked(&TIMED_WRITE, &real::pthread_rwlock_clockwrlock, rwlock, clock, limit, caller) }
    }
}
