//! The words of glibc's objects: waiters, readers, depth, owner, type.
//!
//! These layouts are no ABI (glibc 2.41 moved a condition variable's `__wrefs`). So `calibrate` tries each at
//! start on private objects; where a layout is not as expected, the column is 0 and `trinfo` has a note.
//!
//! Every pointer here is one that the next function is about to read itself, or has read. Words are read before the
//! call that releases an object, never after an unlock: by then it may be freed memory.

#![expect(unsafe_op_in_unsafe_fn, reason = "all functions have one contract, that of `word`, and pass it on")]

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::next_functions;
use crate::sys;

/// A pointer that the host passes.
pub type Ptr = *mut c_void;

/// A bit for each layout that is as expected.
static KNOWN_LAYOUTS: AtomicU32 = AtomicU32::new(0);
/// Where a condition variable's `__wrefs` is, in bytes.
static COND_WREFS: AtomicU32 = AtomicU32::new(0);

pub const MUTEX: u32 = 1;
pub const COND: u32 = 2;
pub const RWLOCK: u32 = 4;
pub const SEM: u32 = 8;
pub(super) const BARRIER: u32 = 16;
pub(super) const ONCE: u32 = 32;
pub(super) const THREAD: u32 = 64;
/// All of them, by the names that `trinfo` uses.
pub const LAYOUTS: [(u32, &[u8]); 7] = [
    (MUTEX, b"mutex"),
    (COND, b"cond"),
    (RWLOCK, b"rwlock"),
    (SEM, b"sem"),
    (BARRIER, b"barrier"),
    (ONCE, b"once"),
    (THREAD, b"thread"),
];

/// Sets which layouts are known, and where `__wrefs` is.
pub(super) fn set_known(layouts: u32, cond_wrefs: usize) {
    COND_WREFS.store(cond_wrefs as u32, Relaxed);
    KNOWN_LAYOUTS.store(layouts, Release);
}

/// Whether a layout (one of [`LAYOUTS`]) is known.
#[inline]
pub fn knows(layout: u32) -> bool {
    KNOWN_LAYOUTS.load(Acquire) & layout != 0
}

/// The 32-bit word `at` bytes into an object.
///
/// # Safety
/// The object must be readable there.
#[inline]
pub(super) unsafe fn word(object: Ptr, at: usize) -> u32 {
    // Other threads change such words atomically.
    AtomicU32::from_ptr(object.cast::<u8>().add(at).cast()).load(Relaxed)
}

/// As [`word`], where the layout is known; else 0.
///
/// # Safety
/// The object must be readable there, here and in the functions below.
#[inline]
unsafe fn word_if_known(layout: u32, object: Ptr, at: usize) -> u64 {
    if knows(layout) { u64::from(word(object, at)) } else { 0 }
}

// pthread_mutex_t
pub(super) const MUTEX_LOCK: usize = 0;
pub(super) const MUTEX_COUNT: usize = 4;
pub(super) const MUTEX_OWNER: usize = 8;
pub(super) const MUTEX_KIND: usize = 16;
pub(super) const KIND_TYPE: u32 = 3;
pub(super) const KIND_RECURSIVE: u32 = 1;
/// `PTHREAD_MUTEX_ROBUST_NORMAL_NP`.
const KIND_ROBUST: u32 = 16;
/// Robust mutexes, and `PTHREAD_MUTEX_PRIO_INHERIT_NP`: the word holds the owner.
const KIND_OWNER_IN_WORD: u32 = KIND_ROBUST | 32;
/// `PTHREAD_MUTEX_PRIO_PROTECT_NP`.
const KIND_PRIO_PROTECT: u32 = 64;

/// The kind of a mutex: its `__kind`, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutexKind(u32);

impl MutexKind {
    /// glibc uses the lower bits only.
    const UNKNOWN: MutexKind = MutexKind(1 << 31);

    #[inline(always)]
    pub fn is_recursive(self) -> bool {
        self.0 & KIND_TYPE == KIND_RECURSIVE
    }

    /// Whether a try followed by a lock has the effect of a lock. That is false where locking changes the thread's
    /// priority, and for robust mutexes: glibc's try of one that is not recoverable leaves it locked.
    #[inline(always)]
    pub fn may_be_tried(self) -> bool {
        self.0 & (KIND_PRIO_PROTECT | KIND_ROBUST | MutexKind::UNKNOWN.0) == 0
    }
}

#[inline(always)]
pub unsafe fn mutex_kind(mutex: Ptr) -> MutexKind {
    if knows(MUTEX) { MutexKind(word(mutex, MUTEX_KIND)) } else { MutexKind::UNKNOWN }
}

#[inline(always)]
pub unsafe fn is_recursive(mutex: Ptr) -> bool {
    mutex_kind(mutex).is_recursive()
}

/// 0 normal, 1 recursive, 2 error-checking, 3 adaptive.
pub unsafe fn mutex_type(mutex: Ptr) -> u64 {
    u64::from(mutex_kind(mutex).0 & KIND_TYPE)
}

/// Whether the mutex is locked, and whether the caller owns it; for mutexes that may not be tried.
unsafe fn is_locked_and_owned(mutex: Ptr) -> (bool, bool) {
    let (kind, lock, owner) = (mutex_kind(mutex), word(mutex, MUTEX_LOCK), word(mutex, MUTEX_OWNER));
    (lock & lock_bits(kind.0) != 0, owner == sys::thread_id())
}

/// Whether another thread owns the mutex, for mutexes that may not be tried; `false` if that is unknown.
pub unsafe fn mutex_is_held(mutex: Ptr) -> bool {
    knows(MUTEX) && is_locked_and_owned(mutex) == (true, false)
}

/// Whether the caller gets the mutex without waiting, for mutexes that may not be tried; `false` if that is unknown. An
/// owner that locks its mutex once more waits for ever or gets an error, unless the mutex is recursive.
pub unsafe fn mutex_is_free(mutex: Ptr) -> bool {
    knows(MUTEX)
        && match is_locked_and_owned(mutex) {
            (true, true) => is_recursive(mutex),
            (is_locked, _) => !is_locked,
        }
}

/// The bits of a mutex's word that are 0 when it is free.
fn lock_bits(kind: u32) -> u32 {
    match kind {
        _ if kind & KIND_OWNER_IN_WORD != 0 => libc::FUTEX_TID_MASK,
        // The other bits are the priority ceiling.
        _ if kind & KIND_PRIO_PROTECT != 0 => 0x7_ffff,
        _ => u32::MAX,
    }
}

/// 1 if there may be waiters.
pub unsafe fn mutex_waiters(mutex: Ptr) -> u64 {
    if !knows(MUTEX) {
        return 0;
    }
    let (kind, lock) = (word(mutex, MUTEX_KIND), word(mutex, MUTEX_LOCK));
    let waiters =
        if kind & KIND_OWNER_IN_WORD != 0 { lock & libc::FUTEX_WAITERS != 0 } else { lock & lock_bits(kind) > 1 };
    u64::from(waiters)
}

/// The LWP that owns the mutex; 0 if it is free or that is unknown.
pub unsafe fn mutex_owner(mutex: Ptr) -> u64 {
    word_if_known(MUTEX, mutex, MUTEX_OWNER)
}

/// How often its owner, the caller, has locked a recursive mutex.
pub unsafe fn recursion_depth(mutex: Ptr) -> u64 {
    word_if_known(MUTEX, mutex, MUTEX_COUNT)
}

/// 1 if threads wait on the condition variable.
pub unsafe fn cond_waiters(cond: Ptr) -> u64 {
    // The three low bits are flags.
    u64::from(word_if_known(COND, cond, COND_WREFS.load(Relaxed) as usize) >> 3 != 0)
}

/// The clock that a condition variable made with this attribute uses.
pub unsafe fn cond_clock(attribute: Ptr) -> u64 {
    let mut clock: c_int = libc::CLOCK_REALTIME;
    if !attribute.is_null()
        && let Some(get) = next_functions::pthread_condattr_getclock.address_if_any()
    {
        // SAFETY: the next function, with an attribute that pthread_cond_init has just accepted.
        let get: unsafe extern "C" fn(Ptr, *mut c_int) -> c_int = core::mem::transmute(get);
        get(attribute, &mut clock);
    }
    clock as i64 as u64
}

// pthread_rwlock_t
pub(super) const RW_WRITE_PHASE: u32 = 1;
pub(super) const RW_WRITE_LOCKED: u32 = 2;
const RW_READERS_WAIT: u32 = 4;
pub(super) const RW_READERS_SHIFT: u32 = 3;
const RW_WRITERS: usize = 4;
const RW_WRITERS_FUTEX: usize = 12;
const RW_FUTEX_USED: u32 = 2;
pub(super) const RW_WRITER: usize = 24;
pub(super) const RW_FLAGS: usize = 48;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
pub(super) const RW_PREFERS_WRITERS: u32 = 2;

/// 1 if there may be waiters; the caller holds the lock.
pub unsafe fn rwlock_waiters(rwlock: Ptr) -> u64 {
    if !knows(RWLOCK) {
        return 0;
    }
    let (readers, writers) = (word(rwlock, 0), word(rwlock, RW_WRITERS));
    // A writer that waits for another one only shows in the word it sleeps on.
    let writer_sleeps = word(rwlock, RW_WRITERS_FUTEX) & RW_FUTEX_USED != 0;
    // The top bit of the writers' word only passes the lock on. Under a write lock the counted readers wait; under a
    // read lock a writer that has announced itself does.
    let waiters =
        if readers & RW_WRITE_PHASE != 0 { readers >> RW_READERS_SHIFT != 0 } else { readers & RW_WRITE_LOCKED != 0 };
    u64::from(waiters || writer_sleeps || readers & RW_READERS_WAIT != 0 || writers << 1 != 0)
}

/// The LWP that holds the lock for writing; 0 if none does or that is unknown.
pub unsafe fn rwlock_writer(rwlock: Ptr) -> u64 {
    word_if_known(RWLOCK, rwlock, RW_WRITER)
}

/// 1 if the lock, which the caller holds, is locked for writing.
pub unsafe fn rwlock_is_write_locked(rwlock: Ptr) -> u64 {
    u64::from(rwlock_writer(rwlock) != 0)
}

/// How many readers hold the lock; the caller is one of them.
pub unsafe fn rwlock_readers(rwlock: Ptr) -> u64 {
    word_if_known(RWLOCK, rwlock, 0) >> RW_READERS_SHIFT
}

/// Whether locking for reading or writing has to wait; for locks that may not be tried.
pub unsafe fn rwlock_makes_wait(rwlock: Ptr, for_reading: bool) -> bool {
    if !knows(RWLOCK) {
        return false;
    }
    let (readers, flags) = (word(rwlock, 0), word(rwlock, RW_FLAGS));
    let is_write_locked = readers & RW_WRITE_LOCKED != 0;
    let is_read_locked = readers & RW_WRITE_PHASE == 0 && readers >> RW_READERS_SHIFT != 0;
    if for_reading {
        is_write_locked && (readers & RW_WRITE_PHASE != 0 || is_read_locked && flags == RW_PREFERS_WRITERS)
    } else {
        is_write_locked || is_read_locked
    }
}

// sem_t, where 64-bit atomics are: the value, and the number of waiters
pub(super) const SEM_WAITERS: usize = 4;

/// The semaphore's value.
pub unsafe fn sem_count(sem: Ptr) -> u64 {
    word_if_known(SEM, sem, 0)
}

/// How many threads wait for the semaphore.
pub unsafe fn sem_waiters(sem: Ptr) -> u64 {
    word_if_known(SEM, sem, SEM_WAITERS)
}

/// How many threads the barrier still waits for, the caller included.
pub unsafe fn barrier_missing(barrier: Ptr) -> u64 {
    if !knows(BARRIER) {
        return 0;
    }
    // `in`, `current_round` and `count`.
    let (inside, round, count) = (word(barrier, 0), word(barrier, 4), word(barrier, 8));
    // Threads of the next round may be counted in before the last one of this round has left.
    u64::from(count - inside.wrapping_sub(round).checked_rem(count).unwrap_or(0))
}

// pthread_once_t
pub(super) const ONCE_DONE: u32 = 2;
const ONCE_RUNNING: u32 = 1;

/// Whether the routine is known to have ended, so that a call does nothing.
pub unsafe fn once_is_done(once_control: Ptr) -> bool {
    knows(ONCE) && word(once_control, 0) == ONCE_DONE
}

/// Whether another thread is known to run the routine, so that a call waits.
pub unsafe fn once_is_running(once_control: Ptr) -> bool {
    // The other bits count forks.
    knows(ONCE) && word(once_control, 0) & 3 == ONCE_RUNNING
}

// struct pthread
pub(super) const THREAD_LWP: usize = 720;

/// Whether a thread that is to be joined is known to have ended: the kernel has cleared its LWP.
pub unsafe fn thread_has_ended(thread: u64) -> bool {
    knows(THREAD) && word(core::ptr::with_exposed_provenance_mut(thread as usize), THREAD_LWP) == 0
}

/// The LWP of this thread, as libc knows it; in a vfork child that of the thread that waits for it. `None` if that is not known.
pub unsafe fn thread_lwp(thread: u64) -> Option<u32> {
    knows(THREAD).then(|| word(core::ptr::with_exposed_provenance_mut(thread as usize), THREAD_LWP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_libcs_layouts_are_known() {
        crate::glibc::calibrate();
        for (layout, name) in LAYOUTS {
            assert!(knows(layout), "{}", String::from_utf8_lossy(name));
        }
    }
}
