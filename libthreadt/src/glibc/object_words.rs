//! What glibc's own words tell about an object: waiters, readers, depth, type.
//!
//! These layouts are no ABI (glibc 2.41 moved a condition variable's `__wrefs`). So each is tried at start on private
//! objects made by the real functions, and where it is not as expected the column is 0 and `trinfo` says so.
//!
//! Every pointer here is one that the real call is about to read itself, or has read. Words are read before the call
//! that gives an object away, never after an unlock: by then it may be freed memory.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed},
};

use crate::{real, sys};

mod calibration;

pub use calibration::calibrate;

/// An object of the host's.
pub type Ptr = *mut c_void;

/// The layouts that were found to be as expected: a bit for each.
static KNOWN: AtomicU32 = AtomicU32::new(0);
/// Where a condition variable's `__wrefs` is, in bytes.
static WREFS_AT: AtomicU32 = AtomicU32::new(0);

const MUTEX: u32 = 1;
const COND: u32 = 2;
const RWLOCK: u32 = 4;
const SEM: u32 = 8;
const BARRIER: u32 = 16;
/// All of them, by the names that `trinfo` uses.
pub const LAYOUTS: [(u32, &[u8]); 5] =
    [(MUTEX, b"mutex"), (COND, b"cond"), (RWLOCK, b"rwlock"), (SEM, b"sem"), (BARRIER, b"barrier")];

/// Whether a layout (one of [`LAYOUTS`]) is known.
#[inline]
pub fn knows(layout: u32) -> bool {
    KNOWN.load(Acquire) & layout != 0
}

/// Whether a rwlock's words can be read.
pub fn knows_rwlocks() -> bool {
    knows(RWLOCK)
}

/// The 32-bit word `at` bytes into an object.
///
/// # Safety
/// The object must be readable there.
#[inline]
unsafe fn word(object: Ptr, at: usize) -> u32 {
    // SAFETY: the caller's; other threads change such words atomically.
    unsafe { AtomicU32::from_ptr(object.cast::<u8>().add(at).cast()) }.load(Relaxed)
}

// pthread_mutex_t
const MUTEX_LOCK: usize = 0;
const MUTEX_COUNT: usize = 4;
const MUTEX_OWNER: usize = 8;
const MUTEX_KIND: usize = 16;
const KIND_TYPE: u32 = 3;
const KIND_RECURSIVE: u32 = 1;
/// `PTHREAD_MUTEX_ROBUST_NORMAL_NP`.
const KIND_ROBUST: u32 = 16;
/// Robust mutexes, and `PTHREAD_MUTEX_PRIO_INHERIT_NP`: the word holds the owner.
const KIND_OWNER_IN_WORD: u32 = KIND_ROBUST | 32;
/// `PTHREAD_MUTEX_PRIO_PROTECT_NP`.
const KIND_PRIO_PROTECT: u32 = 64;

/// What kind of mutex it is: its `__kind`, or [`Kind::UNKNOWN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(u32);

impl Kind {
    /// glibc uses the lower bits only.
    const UNKNOWN: Kind = Kind(1 << 31);

    /// Whether it is recursive.
    #[inline(always)]
    pub fn is_recursive(self) -> bool {
        self.0 & KIND_TYPE == KIND_RECURSIVE
    }

    /// Whether a try followed by a lock is the same as a lock. It is not where taking it changes the thread's priority,
    /// nor for robust mutexes: glibc's try of one that is not recoverable leaves it locked.
    #[inline(always)]
    pub fn may_be_tried(self) -> bool {
        self.0 & (KIND_PRIO_PROTECT | KIND_ROBUST | Kind::UNKNOWN.0) == 0
    }
}

/// What kind of mutex it is.
///
/// # Safety
/// `mutex` must be readable, here and in the functions below.
#[inline(always)]
pub unsafe fn kind(mutex: Ptr) -> Kind {
    // SAFETY: the caller's.
    if knows(MUTEX) { Kind(unsafe { word(mutex, MUTEX_KIND) }) } else { Kind::UNKNOWN }
}

/// Whether a mutex is recursive.
#[inline(always)]
pub unsafe fn is_recursive(mutex: Ptr) -> bool {
    // SAFETY: the caller's.
    unsafe { kind(mutex) }.is_recursive()
}

/// 0 normal, 1 recursive, 2 error-checking, 3 adaptive.
pub unsafe fn mutex_type(mutex: Ptr) -> u64 {
    // SAFETY: the caller's.
    unsafe { u64::from(kind(mutex).0 & KIND_TYPE) }
}

/// Whether another thread has the mutex, for where it may not be tried.
pub unsafe fn mutex_is_held(mutex: Ptr) -> bool {
    if !knows(MUTEX) {
        return false;
    }
    // SAFETY: the caller's.
    let (lock, owner) = unsafe { (word(mutex, MUTEX_LOCK) & lock_bits(kind(mutex).0), word(mutex, MUTEX_OWNER)) };
    lock != 0 && owner != sys::thread_id()
}

/// Whether the caller gets the mutex without waiting, for where it may not be tried; `false` if that cannot be told. Who has
/// it already and locks it once more waits for ever or is told of an error, unless it is recursive.
pub unsafe fn mutex_is_free(mutex: Ptr) -> bool {
    if !knows(MUTEX) {
        return false;
    }
    // SAFETY: the caller's.
    let (lock, owner) = unsafe { (word(mutex, MUTEX_LOCK) & lock_bits(kind(mutex).0), word(mutex, MUTEX_OWNER)) };
    // SAFETY: the caller's.
    lock == 0 || owner == sys::thread_id() && unsafe { is_recursive(mutex) }
}

/// The bits of a mutex's word that are 0 when it is free.
fn lock_bits(kind: u32) -> u32 {
    match kind {
        _ if kind & KIND_OWNER_IN_WORD != 0 => libc::FUTEX_TID_MASK,
        // The rest of the word is the priority ceiling.
        _ if kind & KIND_PRIO_PROTECT != 0 => 0x7_ffff,
        _ => u32::MAX,
    }
}

/// 1 if there may be waiters.
pub unsafe fn mutex_waiters(mutex: Ptr) -> u64 {
    if !knows(MUTEX) {
        return 0;
    }
    // SAFETY: the caller's.
    let (kind, lock) = unsafe { (word(mutex, MUTEX_KIND), word(mutex, MUTEX_LOCK)) };
    let waiters =
        if kind & KIND_OWNER_IN_WORD != 0 { lock & libc::FUTEX_WAITERS != 0 } else { lock & lock_bits(kind) > 1 };
    u64::from(waiters)
}

/// Whether nobody waits for the mutex; `false` if that cannot be told.
pub unsafe fn mutex_has_no_waiters(mutex: Ptr) -> bool {
    // SAFETY: the caller's.
    knows(MUTEX) && unsafe { mutex_waiters(mutex) } == 0
}

/// The LWP that has the mutex; 0 if it is free or that cannot be told.
pub unsafe fn mutex_owner(mutex: Ptr) -> u64 {
    // SAFETY: the caller's.
    if knows(MUTEX) { u64::from(unsafe { word(mutex, MUTEX_OWNER) }) } else { 0 }
}

/// How often its owner, the caller, has locked a recursive mutex.
pub unsafe fn recursion_depth(mutex: Ptr) -> u64 {
    // SAFETY: the caller's.
    if knows(MUTEX) { u64::from(unsafe { word(mutex, MUTEX_COUNT) }) } else { 0 }
}

/// 1 if threads wait on the condition variable.
pub unsafe fn cond_waiters(cond: Ptr) -> u64 {
    if !knows(COND) {
        return 0;
    }
    // SAFETY: the caller's. The three low bits are flags.
    u64::from(unsafe { word(cond, WREFS_AT.load(Relaxed) as usize) } >> 3 != 0)
}

/// Whether nobody waits on the condition variable; `false` if that cannot be told.
pub unsafe fn cond_has_no_waiters(cond: Ptr) -> bool {
    // SAFETY: the caller's.
    knows(COND) && unsafe { cond_waiters(cond) } == 0
}

/// The clock that a condition variable made with this attribute uses.
pub unsafe fn cond_clock(attribute: Ptr) -> u64 {
    let mut clock: c_int = libc::CLOCK_REALTIME;
    if !attribute.is_null()
        && let Some(get) = real::pthread_condattr_getclock.found()
    {
        // SAFETY: the real function, with an attribute that pthread_cond_init has just accepted.
        unsafe {
            let get: unsafe extern "C" fn(Ptr, *mut c_int) -> c_int = core::mem::transmute(get);
            get(attribute, &mut clock);
        }
    }
    clock as i64 as u64
}

// pthread_rwlock_t
const RW_WRITE_PHASE: u32 = 1;
const RW_WRITE_LOCKED: u32 = 2;
const RW_READERS_WAIT: u32 = 4;
const RW_READERS_SHIFT: u32 = 3;
const RW_WRITERS: usize = 4;
const RW_WRITERS_FUTEX: usize = 12;
const RW_FUTEX_USED: u32 = 2;
const RW_WRITER: usize = 24;
const RW_FLAGS: usize = 48;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
const RW_PREFERS_WRITERS: u32 = 2;

/// 1 if there may be waiters; the caller holds the lock.
pub unsafe fn rwlock_waiters(rwlock: Ptr) -> u64 {
    if !knows(RWLOCK) {
        return 0;
    }
    // SAFETY: the caller's.
    let (readers, writers) = unsafe { (word(rwlock, 0), word(rwlock, RW_WRITERS)) };
    // A writer that waits for another one only shows in the word it sleeps on.
    // SAFETY: the caller's.
    let writer_sleeps = unsafe { word(rwlock, RW_WRITERS_FUTEX) } & RW_FUTEX_USED != 0;
    // The top bit of the writers' word only hands the lock over. Under a write lock readers that are counted wait;
    // under a read lock a writer that has announced itself does.
    let waiters =
        if readers & RW_WRITE_PHASE != 0 { readers >> RW_READERS_SHIFT != 0 } else { readers & RW_WRITE_LOCKED != 0 };
    u64::from(waiters || writer_sleeps || readers & RW_READERS_WAIT != 0 || writers << 1 != 0)
}

/// Whether nobody waits for the lock, which the caller holds; `false` if that cannot be told.
pub unsafe fn rwlock_has_no_waiters(rwlock: Ptr) -> bool {
    // SAFETY: the caller's.
    knows(RWLOCK) && unsafe { rwlock_waiters(rwlock) } == 0
}

/// The LWP that has the lock for writing; 0 if none has or that cannot be told.
pub unsafe fn rwlock_writer(rwlock: Ptr) -> u64 {
    // SAFETY: the caller's.
    if knows(RWLOCK) { u64::from(unsafe { word(rwlock, RW_WRITER) }) } else { 0 }
}

/// 1 if the lock, which the caller holds, is locked for writing.
pub unsafe fn rwlock_is_write_locked(rwlock: Ptr) -> u64 {
    // SAFETY: the caller's.
    u64::from(unsafe { rwlock_writer(rwlock) } != 0)
}

/// How many readers have the lock; the caller is one of them.
pub unsafe fn rwlock_readers(rwlock: Ptr) -> u64 {
    // SAFETY: the caller's.
    if knows(RWLOCK) { u64::from(unsafe { word(rwlock, 0) } >> RW_READERS_SHIFT) } else { 0 }
}

/// Whether a read lock has to wait, for where the lock may not be tried.
pub unsafe fn rwlock_excludes_readers(rwlock: Ptr) -> bool {
    if !knows(RWLOCK) {
        return false;
    }
    // SAFETY: the caller's.
    let (readers, flags) = unsafe { (word(rwlock, 0), word(rwlock, RW_FLAGS)) };
    let is_read = readers & RW_WRITE_PHASE == 0 && readers >> RW_READERS_SHIFT != 0;
    readers & RW_WRITE_LOCKED != 0 && (readers & RW_WRITE_PHASE != 0 || is_read && flags == RW_PREFERS_WRITERS)
}

/// Whether a write lock has to wait, for where the lock may not be tried.
pub unsafe fn rwlock_excludes_writers(rwlock: Ptr) -> bool {
    if !knows(RWLOCK) {
        return false;
    }
    // SAFETY: the caller's.
    let readers = unsafe { word(rwlock, 0) };
    readers & RW_WRITE_LOCKED != 0 || (readers & RW_WRITE_PHASE == 0 && readers >> RW_READERS_SHIFT != 0)
}

/// The semaphore's value.
pub unsafe fn sem_count(sem: Ptr) -> u64 {
    // SAFETY: the caller's.
    if knows(SEM) { u64::from(unsafe { word(sem, 0) }) } else { 0 }
}

// sem_t, where 64-bit atomics are: the value, and the number of waiters
const SEM_WAITERS: usize = 4;

/// Whether a wait would not have to wait; `false` if that cannot be told.
pub unsafe fn sem_has_token(sem: Ptr) -> bool {
    // SAFETY: the caller's.
    unsafe { sem_count(sem) != 0 }
}

/// Whether nobody waits for the semaphore; `false` if that cannot be told.
pub unsafe fn sem_has_no_waiters(sem: Ptr) -> bool {
    // SAFETY: the caller's.
    knows(SEM) && unsafe { word(sem, SEM_WAITERS) } == 0
}

/// How many threads the barrier still misses, the caller included.
pub unsafe fn barrier_missing(barrier: Ptr) -> u64 {
    if !knows(BARRIER) {
        return 0;
    }
    // SAFETY: the caller's. `in`, `current_round` and `count`.
    let (inside, round, count) = unsafe { (word(barrier, 0), word(barrier, 4), word(barrier, 8)) };
    // Threads of the next round may be counted in before the last one of this round has left.
    u64::from(count - inside.wrapping_sub(round).checked_rem(count).unwrap_or(0))
}

/// The seconds of a time limit; 0 for NULL.
pub unsafe fn timespec_sec(limit: Ptr) -> u64 {
    // SAFETY: the caller's: the real call reads it.
    unsafe { limit.cast::<libc::timespec>().as_ref() }.map_or(0, |limit| limit.tv_sec as u64)
}

/// The nanoseconds of a time limit; 0 for NULL.
pub unsafe fn timespec_nsec(limit: Ptr) -> u64 {
    // SAFETY: the caller's: the real call reads it.
    unsafe { limit.cast::<libc::timespec>().as_ref() }.map_or(0, |limit| limit.tv_nsec as u64)
}

/// A time limit in nanoseconds, saturating.
fn nanoseconds(limit: &libc::timespec) -> u64 {
    limit.tv_sec.saturating_mul(1_000_000_000).saturating_add(limit.tv_nsec) as u64
}

/// A time limit in nanoseconds, for calls that read it whenever they know the clock; 0 for NULL.
pub unsafe fn limit_ns(limit: Ptr, clock: c_int) -> u64 {
    if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_MONOTONIC {
        return given_limit_ns(limit);
    }
    // SAFETY: the caller's: the real call reads it.
    unsafe { limit.cast::<libc::timespec>().as_ref() }.map_or(0, nanoseconds)
}

/// A time limit in nanoseconds, for calls that may not read it; 0 if it is not there.
pub fn given_limit_ns(limit: Ptr) -> u64 {
    sys::read_timespec(limit).as_ref().map_or(0, nanoseconds)
}

/// Whether the kernel, asked by the call that returned `result`, has read the memory it was given.
fn was_read(result: c_int) -> bool {
    result != libc::EFAULT && result != libc::ESRCH
}

/// The int at `pointer`, of a call that has the kernel read it.
pub unsafe fn given_int(pointer: Ptr, result: c_int) -> u64 {
    if pointer.is_null() || !was_read(result) {
        return 0;
    }
    // SAFETY: the kernel has read it.
    unsafe { pointer.cast::<c_int>().read_unaligned() as i64 as u64 }
}

/// The first 64 bits of a CPU set of `size` bytes, of a call that has the kernel read it.
pub unsafe fn cpu_word(cpus: Ptr, size: usize, result: c_int) -> u64 {
    if cpus.is_null() || !was_read(result) {
        return 0;
    }
    // SAFETY: the kernel has read `size` bytes, or as many as it knows CPUs for, which is at least 64.
    (0..size.min(8)).rev().fold(0, |bits, at| bits << 8 | u64::from(unsafe { cpus.cast::<u8>().add(at).read() }))
}

/// Eight bytes of a name, the first in the most significant byte; `half` 0 is bytes 0-7, 1 is bytes 8-15.
pub unsafe fn name_word(name: Ptr, half: u32) -> u64 {
    let mut words = [0u64; 2];
    for at in 0..16 {
        // SAFETY: the real call has read the name to its NUL, and so do we at most.
        let byte = unsafe { name.cast::<c_char>().add(at).read() } as u8;
        if byte == 0 {
            break;
        }
        words[at / 8] |= u64::from(byte) << (56 - 8 * (at % 8));
    }
    words[(half & 1) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_libcs_layouts_are_known() {
        calibrate();
        for (layout, name) in LAYOUTS {
            assert!(knows(layout), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn names_are_left_justified() {
        // SAFETY: the text is NUL-terminated.
        let word = |text: &std::ffi::CStr, half| unsafe { name_word(text.as_ptr().cast_mut().cast(), half) };
        assert_eq!(word(c"ab", 0), 0x6162_0000_0000_0000);
        assert_eq!(word(c"ab", 1), 0);
        assert_eq!(word(c"abcdefghijklmno", 1), 0x696a_6b6c_6d6e_6f00);
    }

    #[test]
    fn time_limits_saturate() {
        let limit = |tv_sec, tv_nsec| nanoseconds(&libc::timespec { tv_sec, tv_nsec }) as i64;
        assert_eq!(limit(3, 5), 3_000_000_005);
        assert_eq!(limit(i64::MAX, 1), i64::MAX);
        assert_eq!(limit(-1, 0), -1_000_000_000);
    }
}
