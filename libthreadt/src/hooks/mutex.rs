//! `pthread_mutex_lock` and its timed and C11 variants.
//!
//! The next try function is called first. If it takes the mutex, one clock reading, after it, serves both records, and `block?`
//! is exact. If it fails, the entry record is written, and then the next lock function is called.

use core::ffi::c_int;

use spec::{RecordKind, id};

use super::result::CallResult;
use crate::config::{detail, is_detailed};
use crate::glibc::call_arguments::given_limit_ns;
use crate::glibc::next_functions::NextFunction;
use crate::glibc::object_words::{self, Ptr};
use crate::process_state::Switch;
use crate::{clock, recorder};

/// The records of a lock event, for mutexes that are not recursive and for those that are.
struct MutexLock {
    plain: [&'static RecordKind; 2],
    recursive: [&'static RecordKind; 2],
}

static LOCK: MutexLock =
    MutexLock { plain: [&id::MUTEX_LOCK_1, &id::MUTEX_LOCK_2], recursive: [&id::RMUTEX_LOCK_1, &id::RMUTEX_LOCK_2] };

static TIMED: MutexLock = MutexLock {
    plain: [&id::MUTEX_TIMEDLOCK_1, &id::MUTEX_TIMEDLOCK_2],
    recursive: [&id::RMUTEX_TIMEDLOCK_1, &id::RMUTEX_TIMEDLOCK_2],
};

/// Locks `mutex` by `call_next`. Calls `try_lock` first if that changes nothing for the host.
///
/// # Safety
/// `mutex` is what the host passed; `try_lock` and `call_next` are the next functions for it.
#[inline(always)]
unsafe fn lock<R: CallResult>(
    lock: &'static MutexLock,
    switch: Switch,
    mutex: Ptr,
    caller: u64,
    try_lock: Option<&NextFunction>,
    limit: impl Fn() -> [u64; 2],
    call_next: impl Fn() -> R,
) -> R {
    // SAFETY: the next function reads the mutex.
    let kind = unsafe { object_words::mutex_kind(mutex) };
    let recursive = kind.is_recursive();
    if !switch.is_on_for(recursive) {
        return call_next();
    }
    let kinds = if recursive { lock.recursive } else { lock.plain };
    let entry = |owner: u64| {
        let [clock, limit] = limit();
        [mutex as u64, clock, limit, owner, detail(caller)]
    };
    let returned = |rval: u64, block: bool| {
        // SAFETY: after success the mutex is the caller's.
        let depth = if recursive && is_taken(rval) { unsafe { object_words::recursion_depth(mutex) } } else { 0 };
        [rval, u64::from(block), depth, 0, 0]
    };
    let may_wait;
    let held = match try_lock.filter(|next| kind.may_be_tried() && next.is_libc()) {
        Some(next) => {
            // SAFETY: the next try of this kind of mutex.
            let result = unsafe {
                let try_lock: unsafe extern "C-unwind" fn(Ptr) -> R = core::mem::transmute(next.address());
                try_lock(mutex)
            };
            if is_taken(result.rval()) {
                if switch.is_selective() {
                    return result;
                }
                let time = clock::now_fenced();
                let returned = returned(result.rval(), false);
                // It was free, or its owner, the caller, has locked it once more.
                let had_owner = returned[2] > 1 && is_detailed();
                // SAFETY: the mutex is the caller's.
                let owner = if had_owner { unsafe { object_words::mutex_owner(mutex) } } else { 0 };
                recorder::put_pair(kinds, time, entry(owner), returned);
                return result;
            }
            may_wait = result.rval() == libc::EBUSY as u64;
            may_wait
        }
        // SAFETY: the next function reads the mutex.
        None => unsafe {
            may_wait = !object_words::mutex_is_free(mutex);
            if switch.is_selective() && !may_wait {
                return call_next();
            }
            object_words::mutex_is_held(mutex)
        },
    };
    let time = clock::now_unfenced();
    // SAFETY: the next function reads the mutex.
    let owner = if is_detailed() { unsafe { object_words::mutex_owner(mutex) } } else { 0 };
    recorder::put(kinds[0], time, entry(owner));
    if may_wait {
        recorder::put_stack(time);
    }
    let result = call_next();
    let time = clock::now_fenced();
    let rval = result.rval();
    let columns = returned(rval, held && is_taken(rval) || rval == libc::ETIMEDOUT as u64);
    recorder::put_result(kinds[1], time, columns, !may_wait && result.is_error());
    result
}

fn is_taken(rval: u64) -> bool {
    rval == 0 || rval == libc::EOWNERDEAD as u64
}

/// # Safety
/// As for [`lock`], here and below.
#[inline(always)]
pub unsafe fn mutex_lock<R: CallResult>(
    switch: Switch,
    mutex: Ptr,
    try_lock: &NextFunction,
    caller: u64,
    call_next: impl Fn() -> R,
) -> R {
    // SAFETY: the caller's.
    unsafe { lock(&LOCK, switch, mutex, caller, Some(try_lock), || [0, 0], call_next) }
}

#[inline(always)]
pub unsafe fn mutex_timedlock<R: CallResult>(
    switch: Switch,
    mutex: Ptr,
    clock: c_int,
    limit: Ptr,
    try_lock: &NextFunction,
    caller: u64,
    call_next: impl Fn() -> R,
) -> R {
    // With an unknown clock the next function fails even if the mutex is free, so it is not tried first.
    let known = clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC;
    let columns = || [i64::from(clock) as u64, given_limit_ns(limit)];
    // SAFETY: the caller's.
    unsafe { lock(&TIMED, switch, mutex, caller, known.then_some(try_lock), columns, call_next) }
}
