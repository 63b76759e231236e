//! Sleeping, waiting for another thread, reading a clock or a time limit.

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicU32;

use super::call::{Errno, Result, call, filled_by};
use super::seccomp::has_filter;

const FUTEX_WAIT_PRIVATE: usize = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;

/// Lets other threads run for about that long.
pub fn sleep(nanoseconds: i64) {
    #[cfg(test)]
    if super::interleaving::is_actor() {
        return super::interleaving::waiting_step();
    }
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    // SAFETY: the struct is readable.
    let _ = unsafe { call(libc::SYS_nanosleep, [&raw const time as usize]) };
}

/// Waits until another thread has changed `*word` from `value` and called [`wake_all`], for `nanoseconds` at most (less
/// than a second).
pub fn wait(word: &AtomicU32, value: u32, nanoseconds: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let arguments = [word.as_ptr() as usize, FUTEX_WAIT_PRIVATE, value as usize, &raw const time as usize];
    // SAFETY: word and time are readable.
    let _ = unsafe { call(libc::SYS_futex, arguments) };
}

/// Wakes all threads that [`wait`] for the word.
pub fn wake_all(word: &AtomicU32) {
    const FUTEX_WAKE_PRIVATE: usize = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the word is only an address here.
    let _ = unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, FUTEX_WAKE_PRIVATE, i32::MAX as usize]) };
}

/// The processor time that the thread `lwp` of this process has used, in nanoseconds.
pub fn time_used_by(lwp: u32) -> Result<u64> {
    // A thread's own clock; the number is the kernel's convention (MAKE_THREAD_CPUCLOCK in linux/posix-timers.h).
    const CPUCLOCK_SCHED: u32 = 2;
    const CPUCLOCK_PERTHREAD: u32 = 4;
    read_clock((!lwp << 3 | CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED) as c_int)
}

/// The time since some moment before the process began, nanoseconds; 0 where the kernel must not be asked.
pub fn monotonic() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

fn read_clock(clock: c_int) -> Result<u64> {
    // SAFETY: the kernel fills the struct when it returns 0.
    let time: libc::timespec = unsafe { filled_by(|time| call(libc::SYS_clock_gettime, [clock as usize, time])) }?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// What the kernel knows of the wall clock's error, as the host's NTP daemon has told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClockError {
    pub is_synchronized: bool,
    /// The most by which the clock may be wrong, nanoseconds.
    pub bound: u64,
    /// What the kernel is going to add to the clock, nanoseconds.
    pub pending: i64,
}

/// Why the error of the wall clock is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownClockError {
    /// A seccomp filter is in force, which may kill for the question: services that may not set clocks have such filters.
    NotAsked,
    /// The kernel has not answered.
    Refused,
}

/// Asks the kernel for the error of the wall clock, and changes nothing.
pub fn wall_clock_error() -> core::result::Result<WallClockError, UnknownClockError> {
    if has_filter() {
        return Err(UnknownClockError::NotAsked);
    }
    // SAFETY: zeros are valid. With no modes, the kernel only reads.
    let mut state: libc::timex = unsafe { core::mem::zeroed() };
    // SAFETY: the struct is writable, and the kernel fills it.
    let answer = unsafe { call(libc::SYS_adjtimex, [&raw mut state as usize]) };
    answer.map(|_| in_nanoseconds(&state)).map_err(|_| UnknownClockError::Refused)
}

fn in_nanoseconds(state: &libc::timex) -> WallClockError {
    let unit = if state.status & libc::STA_NANO == 0 { 1_000 } else { 1 };
    WallClockError {
        is_synchronized: state.status & libc::STA_UNSYNC == 0,
        // In microseconds, whatever the unit of the offset.
        bound: u64::try_from(state.maxerror).unwrap_or(0).saturating_mul(1_000),
        pending: state.offset.saturating_mul(unit),
    }
}

/// The clock's time, for systems whose vDSO has no such function.
pub extern "C" fn clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    // SAFETY: as for the vDSO's function of that name, in whose place this one is called.
    match unsafe { call(libc::SYS_clock_gettime, [clock as usize, time as usize]) } {
        Ok(_) => 0,
        Err(Errno(errno)) => -errno,
    }
}

/// Reads a `timespec` of the host that the next function may not read; `None` if the address is not readable.
///
/// The kernel tries first: it reads the time limit of a futex wait before it compares the word.
pub fn read_timespec(time: *const c_void) -> Option<libc::timespec> {
    read_pair(time).map(|[tv_sec, tv_nsec]| libc::timespec { tv_sec: tv_sec as i64, tv_nsec: tv_nsec as i64 })
}

/// As [`read_timespec`], for any two words.
pub fn read_pair(words: *const c_void) -> Option<[u64; 2]> {
    if words.is_null() {
        return None;
    }
    let word = AtomicU32::new(0);
    let arguments = [word.as_ptr() as usize, FUTEX_WAIT_PRIVATE, 1, words as usize];
    // SAFETY: the word is readable and does not hold 1, so that the call does not wait.
    match unsafe { call(libc::SYS_futex, arguments) } {
        // SAFETY: the kernel has just read them.
        Err(Errno(libc::EAGAIN | libc::EINVAL)) => Some(unsafe { words.cast::<[u64; 2]>().read_unaligned() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_of_the_kernels_answer_are_nanoseconds() {
        // SAFETY: zeros are valid.
        let mut state: libc::timex = unsafe { core::mem::zeroed() };
        (state.offset, state.maxerror, state.status) = (-7, 16_000_000, libc::STA_UNSYNC);
        let expected = WallClockError { is_synchronized: false, bound: 16_000_000_000, pending: -7_000 };
        assert_eq!(in_nanoseconds(&state), expected);
        (state.maxerror, state.status) = (500, libc::STA_NANO | libc::STA_PLL);
        let expected = WallClockError { is_synchronized: true, bound: 500_000, pending: -7 };
        assert_eq!(in_nanoseconds(&state), expected);
    }

    #[test]
    fn wild_time_limits_are_not_read() {
        let time = libc::timespec { tv_sec: 5, tv_nsec: 7 };
        let read = read_timespec((&raw const time).cast()).unwrap();
        assert_eq!((read.tv_sec, read.tv_nsec), (5, 7));
        let invalid = libc::timespec { tv_sec: -1, tv_nsec: -1 };
        assert_eq!(read_timespec((&raw const invalid).cast()).unwrap().tv_nsec, -1);
        assert!(read_timespec(core::ptr::without_provenance(1)).is_none());
        assert!(read_timespec(core::ptr::null()).is_none());
    }
}
