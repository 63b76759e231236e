//! Functions that call futex(2) to take a lock: a wait there is contention, elsewhere it may be a thread without work.

/// A function of a library's, or all that begin with this name. Names are as compilers write them in full, without the angle
/// brackets around a type; a version in the path, as Abseil has one, is left out.
pub static FUTEX_LOCKS: [&str; 16] = [
    // Rust's standard library.
    "std::sys::sync::mutex::futex::Mutex::lock_contended",
    "std::sys::sync::rwlock::futex::RwLock::read_contended",
    "std::sys::sync::rwlock::futex::RwLock::write_contended",
    "std::sys::sync::once::futex::Once::call",
    "std::sys::sync::once::futex::Once::wait",
    // The same before Rust 1.78.
    "std::sys::unix::locks::futex_mutex::Mutex::lock_contended",
    "std::sys::unix::locks::futex_rwlock::RwLock::read_contended",
    "std::sys::unix::locks::futex_rwlock::RwLock::write_contended",
    "std::sys_common::once::futex::Once::call",
    // parking_lot.
    "parking_lot::raw_mutex::RawMutex::lock_slow",
    "parking_lot::raw_rwlock::RawRwLock::lock_",
    "parking_lot::raw_rwlock::RawRwLock::wait_for_readers",
    "parking_lot::once::Once::call_once_slow",
    // Abseil: the caller of the wait does not show which of its locks it is, but a stack does.
    "absl::Mutex::LockSlow",
    // Static variables of a function, in libstdc++ and libc++.
    "__cxa_guard_acquire",
    // oneTBB.
    "tbb::detail::d1::mutex::lock",
];

/// What the names of functions begin with that may be between one of these and the call: those of the same libraries.
pub static FUTEX_LIBRARIES: [&str; 8] =
    ["std::", "core::", "parking_lot", "lock_api::", "absl::", "AbslInternal", "tbb::", "__cxa_guard_acquire"];
