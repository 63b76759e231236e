//! `pthread_rwlock_rdlock` and `_wrlock`, with their timed variants.
//!
//! The untimed ones are tried first, as mutexes are, where that is harmless: in glibc 2.25 to 2.29 a try could leave
//! readers asleep (bug 23844). The timed ones check their arguments even when the lock is free, so that a try would
//! hide an error; there the lock's word, read before the call, shows whether it had to wait.

use core::ffi::c_int;

use spec::{RecordKind, id};

use super::result::CallResult;
use crate::config::{detail, is_detailed};
use crate::glibc::call_arguments::limit_ns;
use crate::glibc::next_functions::{self, NextFunction};
use crate::glibc::object_words::{self, Ptr};
use crate::process_state::Switch;
use crate::{clock, recorder};

struct RwLock {
    kinds: [&'static RecordKind; 2],
    is_read: bool,
}

static READ: RwLock = RwLock { kinds: [&id::RW_RDLOCK_1, &id::RW_RDLOCK_2], is_read: true };

static WRITE: RwLock = RwLock { kinds: [&id::RW_WRLOCK_1, &id::RW_WRLOCK_2], is_read: false };

static TIMED_READ: RwLock = RwLock { kinds: [&id::RW_TIMEDRDLOCK_1, &id::RW_TIMEDRDLOCK_2], ..READ };

static TIMED_WRITE: RwLock = RwLock { kinds: [&id::RW_TIMEDWRLOCK_1, &id::RW_TIMEDWRLOCK_2], ..WRITE };

/// Locks `rwlock` by `call_next`. Calls `try_lock` first if there is one and it is libc's.
///
/// # Safety
/// `rwlock` is what the host passed; `try_lock` and `call_next` are the next functions for it.
#[inline(always)]
unsafe fn lock(
    lock: &'static RwLock,
    switch: Switch,
    rwlock: Ptr,
    caller: u64,
    try_lock: Option<&NextFunction>,
    limit: impl Fn() -> [u64; 2],
    call_next: impl Fn() -> c_int,
) -> c_int {
    let [clock_id, limit] = limit();
    let entry = |owner: u64| [rwlock as u64, clock_id, limit, owner, detail(caller)];
    let returned = |result: c_int, block: bool| {
        // SAFETY: after success the caller is one of its holders.
        let readers = if lock.is_read && result == 0 { unsafe { object_words::rwlock_readers(rwlock) } } else { 0 };
        [result.rval(), u64::from(block), readers, 0, 0]
    };
    // glibc repaired the tries in the release before the one that added the clock functions.
    let tries_are_right = next_functions::pthread_rwlock_clockrdlock.is_known();
    let held = match try_lock.filter(|next| tries_are_right && next.is_libc()) {
        Some(next) => {
            // SAFETY: the next try.
            let result = unsafe {
                let try_lock: unsafe extern "C-unwind" fn(Ptr) -> c_int = core::mem::transmute(next.address());
                try_lock(rwlock)
            };
            if result == 0 {
                if !switch.is_selective() {
                    recorder::put_pair(lock.kinds, clock::now_fenced(), entry(0), returned(0, false));
                }
                return 0;
            }
            result == libc::EBUSY
        }
        // SAFETY: the next function reads the lock.
        None => unsafe {
            let held = object_words::rwlock_makes_wait(rwlock, lock.is_read);
            if !held && switch.is_selective() && object_words::knows(object_words::RWLOCK) {
                return call_next();
            }
            held
        },
    };
    let time = clock::now_unfenced();
    // SAFETY: the next function reads the lock.
    let owner = if is_detailed() { unsafe { object_words::rwlock_writer(rwlock) } } else { 0 };
    recorder::put(lock.kinds[0], time, entry(owner));
    let may_wait = held || !object_words::knows(object_words::RWLOCK);
    if may_wait {
        recorder::put_stack(time);
    }
    let result = call_next();
    let time = clock::now_fenced();
    let columns = returned(result, held && result == 0 || result == libc::ETIMEDOUT);
    recorder::put_result(lock.kinds[1], time, columns, !may_wait && result.is_error());
    result
}

/// # Safety
/// As for [`lock`], here and below.
#[inline(always)]
pub unsafe fn rw_rdlock(switch: Switch, rwlock: Ptr, caller: u64, call_next: impl Fn() -> c_int) -> c_int {
    let try_lock = Some(&next_functions::pthread_rwlock_tryrdlock);
    // SAFETY: the caller's.
    unsafe { lock(&READ, switch, rwlock, caller, try_lock, || [0, 0], call_next) }
}

#[inline(always)]
pub unsafe fn rw_wrlock(switch: Switch, rwlock: Ptr, caller: u64, call_next: impl Fn() -> c_int) -> c_int {
    let try_lock = Some(&next_functions::pthread_rwlock_trywrlock);
    // SAFETY: the caller's.
    unsafe { lock(&WRITE, switch, rwlock, caller, try_lock, || [0, 0], call_next) }
}

#[inline(always)]
pub unsafe fn rw_timedrdlock(
    switch: Switch,
    rwlock: Ptr,
    clock: c_int,
    limit: Ptr,
    caller: u64,
    call_next: impl Fn() -> c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { lock(&TIMED_READ, switch, rwlock, caller, None, || [clock as u64, limit_ns(limit, clock)], call_next) }
}

#[inline(always)]
pub unsafe fn rw_timedwrlock(
    switch: Switch,
    rwlock: Ptr,
    clock: c_int,
    limit: Ptr,
    caller: u64,
    call_next: impl Fn() -> c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { lock(&TIMED_WRITE, switch, rwlock, caller, None, || [clock as u64, limit_ns(limit, clock)], call_next) }
}
