//! Functions that call futex(2) to take a lock: a wait there is contention, elsewhere it may be a thread without work.

/// A lock that is known by the functions that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutexLock {
    /// A function of a library's, or all that begin with this name. Names are as compilers write them in full, without the angle
    /// brackets around a type (`a::B<true>::c` is `a::Btrue::c`); a version in the path, as Abseil has one, is left out.
    pub function: &'static str,
    /// What the lock is called.
    pub name: &'static str,
    /// What its waiters wait for.
    pub word: WaitedWord,
}

impl FutexLock {
    /// Whether both are functions of one kind of lock that wait for the same word of it.
    pub fn is_same_lock(&self, other: &FutexLock) -> bool {
        (self.name, self.word) == (other.name, other.word)
    }
}

/// What the word that a thread waits for is to the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedWord {
    /// A part of the lock, so many bytes behind its beginning.
    OfLock(u64),
    /// The thread's own, whichever lock it waits for: the lock keeps a queue of its waiters elsewhere. Or one that several locks may share.
    OfThread,
}

/// Where words that threads wait for can be, in bytes behind the beginning of a lock.
pub const LOCK_WORDS: [u64; 2] = [0, 4];

const fn lock(function: &'static str, name: &'static str) -> FutexLock {
    FutexLock { function, name, word: WaitedWord::OfLock(0) }
}

/// For who waits for a word that is not the lock's first.
const fn at(offset: u64, lock: FutexLock) -> FutexLock {
    FutexLock { word: WaitedWord::OfLock(offset), ..lock }
}

/// For who waits for a word of its own.
const fn queued(function: &'static str, name: &'static str) -> FutexLock {
    FutexLock { word: WaitedWord::OfThread, ..lock(function, name) }
}

/// The known locks.
#[rustfmt::skip]
pub static FUTEX_LOCKS: [FutexLock; 28] = [
    // Rust's standard library. Who waits to write waits for the second word of the lock.
    lock("std::sys::sync::mutex::futex::Mutex::lock_contended", "std Mutex"),
    lock("std::sys::sync::rwlock::futex::RwLock::read_contended", "std RwLock"),
    at(4, lock("std::sys::sync::rwlock::futex::RwLock::write_contended", "std RwLock")),
    lock("std::sys::sync::once::futex::Once::call", "std Once"),
    lock("std::sys::sync::once::futex::Once::wait", "std Once"),
    // The same before Rust 1.78.
    lock("std::sys::pal::unix::locks::futex_mutex::Mutex::lock_contended", "std Mutex"),
    lock("std::sys::pal::unix::locks::futex_rwlock::RwLock::read_contended", "std RwLock"),
    at(4, lock("std::sys::pal::unix::locks::futex_rwlock::RwLock::write_contended", "std RwLock")),
    lock("std::sys::unix::locks::futex_mutex::Mutex::lock_contended", "std Mutex"),
    lock("std::sys::unix::locks::futex_rwlock::RwLock::read_contended", "std RwLock"),
    at(4, lock("std::sys::unix::locks::futex_rwlock::RwLock::write_contended", "std RwLock")),
    lock("std::sys_common::once::futex::Once::call", "std Once"),
    // parking_lot.
    queued("parking_lot::raw_mutex::RawMutex::lock_slow", "parking_lot Mutex"),
    queued("parking_lot::raw_rwlock::RawRwLock::lock_", "parking_lot RwLock"),
    queued("parking_lot::raw_rwlock::RawRwLock::wait_for_readers", "parking_lot RwLock"),
    queued("parking_lot::once::Once::call_once_slow", "parking_lot Once"),
    // Since 0.13.
    queued("parking_lot::once::Once::wait_slow", "parking_lot Once"),
    // Abseil: the caller of the wait does not show which of its locks it is, but a stack does.
    queued("absl::Mutex::LockSlow", "absl Mutex"),
    // Static variables of a function, in libstdc++ and libc++.
    lock("__cxa_guard_acquire", "static variable's guard"),
    // oneTBB, in the headers; its other mutexes spin.
    queued("tbb::detail::d1::mutex::lock", "tbb mutex"),
    queued("tbb::detail::d1::rw_mutex::lock", "tbb rw_mutex"),
    queued("tbb::detail::d1::rw_mutex::upgrade", "tbb rw_mutex"),
    // InnoDB, in MariaDB (storage/innobase/sync/srw_lock.cc, include/srw_lock.h): a srw_mutex_impl<bool> is one word. An
    // ssux_lock_impl<bool> begins with such a mutex, which writers have; behind it is `readers`, for which the writer that has the mutex
    // waits until the last reader has left.
    lock("srw_mutex_impltrue::wait_and_lock", "InnoDB latch"),
    lock("srw_mutex_implfalse::wait_and_lock", "InnoDB latch"),
    at(4, lock("ssux_lock_impltrue::wr_wait", "InnoDB latch")),
    at(4, lock("ssux_lock_implfalse::wr_wait", "InnoDB latch")),
    // Who waits to read waits for the mutex, too: in older versions by locking it, in newer ones for its word. It wakes all others as
    // soon as it may read: such a wake-up is no release, but comes right behind one.
    lock("ssux_lock_impltrue::rd_wait", "InnoDB latch"),
    lock("ssux_lock_implfalse::rd_wait", "InnoDB latch"),
];

/// A word that is locked with FUTEX_LOCK_PI, by whatever function.
pub static PRIORITY_INHERITANCE_LOCK: FutexLock = lock("", "PI futex");

/// A lock of C++20's atomics: a function that waits for an atomic and is called `lock` or `lock_shared`, as that of each class must be
/// which the standard library can lock (BasicLockable). libstdc++ has sixteen words for all atomics that are not as large as an int.
pub static LOCK_OF_ATOMICS: FutexLock = queued("", "lock of atomics");

/// The names of the functions of such a lock, without their class.
pub static LOCKING_FUNCTIONS: [&str; 2] = ["lock", "lock_shared"];

/// Functions whose calls wait for a condition of the program's, by the functions of a lock.
pub static FUTEX_CONDITIONS: [&str; 3] =
    ["absl::Mutex::LockWhen", "absl::Mutex::ReaderLockWhen", "absl::Mutex::AwaitCommon"];

/// What the names of functions begin with that may be between one of these and the call: those of the same libraries, and their
/// modules where functions have no names.
#[rustfmt::skip]
pub static FUTEX_LIBRARIES: [&str; 13] = [
    "std::", "core::", "parking_lot::", "parking_lot_core::", "lock_api::", "absl::", "AbslInternal", "libabsl_", "tbb::",
    "libtbb.so", "__cxa_guard_acquire", "srw_mutex_impl", "ssux_lock_impl",
];
