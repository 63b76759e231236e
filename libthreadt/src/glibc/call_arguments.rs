//! Values that hooks read from what the host's pointers point to.
//!
//! Such a value is read only where the next function has read it or is about to, or after the kernel has.

use core::ffi::{c_char, c_int};

use super::object_words::Ptr;
use crate::sys;

/// The seconds of a time limit; 0 for NULL.
pub unsafe fn timespec_sec(limit: Ptr) -> u64 {
    // SAFETY: the caller's: the next function reads it.
    unsafe { limit.cast::<libc::timespec>().as_ref() }.map_or(0, |limit| limit.tv_sec as u64)
}

/// The nanoseconds of a time limit; 0 for NULL.
pub unsafe fn timespec_nsec(limit: Ptr) -> u64 {
    // SAFETY: the caller's: the next function reads it.
    unsafe { limit.cast::<libc::timespec>().as_ref() }.map_or(0, |limit| limit.tv_nsec as u64)
}

/// A time limit in nanoseconds, saturating.
fn nanoseconds(limit: &libc::timespec) -> u64 {
    limit.tv_sec.saturating_mul(1_000_000_000).saturating_add(limit.tv_nsec) as u64
}

/// A time limit in nanoseconds, for functions that read it if they know the clock; 0 for NULL.
pub unsafe fn limit_ns(limit: Ptr, clock: c_int) -> u64 {
    if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_MONOTONIC {
        return given_limit_ns(limit);
    }
    // SAFETY: the caller's: the next function reads it.
    unsafe { limit.cast::<libc::timespec>().as_ref() }.map_or(0, nanoseconds)
}

/// A time limit in nanoseconds, for functions that may not read it; 0 if it is not readable.
pub fn given_limit_ns(limit: Ptr) -> u64 {
    sys::read_timespec(limit).as_ref().map_or(0, nanoseconds)
}

/// Whether the kernel has read the memory that it was given in the call that returned `result`.
fn was_read(result: c_int) -> bool {
    result != libc::EFAULT && result != libc::ESRCH
}

/// The int at `pointer`, of a call in which the kernel reads it.
pub unsafe fn given_int(pointer: Ptr, result: c_int) -> u64 {
    if pointer.is_null() || !was_read(result) {
        return 0;
    }
    // SAFETY: the kernel has read it.
    unsafe { pointer.cast::<c_int>().read_unaligned() as i64 as u64 }
}

/// The first 64 bits of a CPU set of `size` bytes, of a call in which the kernel reads it.
pub unsafe fn cpu_word(cpus: Ptr, size: usize, result: c_int) -> u64 {
    if cpus.is_null() || !was_read(result) {
        return 0;
    }
    // SAFETY: the kernel has read `size` bytes, or as many as it has CPUs for, which is at least 64.
    (0..size.min(8)).rev().fold(0, |bits, at| bits << 8 | u64::from(unsafe { cpus.cast::<u8>().add(at).read() }))
}

/// Eight bytes of a name, the first in the most significant byte; `half` 0 is bytes 0-7, 1 is bytes 8-15.
pub unsafe fn name_word(name: Ptr, half: u32) -> u64 {
    let mut words = [0u64; 2];
    for at in 0..16 {
        // SAFETY: the next function has read the name up to its NUL, and this does not read further.
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
