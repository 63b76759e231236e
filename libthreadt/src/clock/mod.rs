//! The time of a record: `CLOCK_MONOTONIC` by the vDSO, plus an offset that all processes of a trace directory share.
//!
//! Hooks read the clock. The offset is added when a record is written: the process learns it at its first record.
//!
//! The vDSO's function is called directly: libc's may be interposed (libfaketime), and needs its PLT. Where the vDSO
//! only converts the processor's counter, [`counter`] does the same conversion in its place.
//!
//! A program may forbid its threads to read the counter, which the vDSO does as well. Then the kernel is asked for each
//! time ([`avoid_counter`]).

use core::ffi::c_int;
use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};

use crate::sys::{clock_gettime, counter_is_forbidden, elf};

mod counter;

type GetTime = unsafe extern "C" fn(c_int, *mut libc::timespec) -> c_int;

/// The vDSO's `clock_gettime`; until it is found, or if there is none, the system call.
static GET_TIME: AtomicPtr<()> = AtomicPtr::new(clock_gettime as *mut ());

/// Nanoseconds from this process's `CLOCK_MONOTONIC` to the Epoch.
#[unsafe(link_section = "inherited")]
static OFFSET: AtomicI64 = AtomicI64::new(0);
/// By how many nanoseconds this process's `CLOCK_MONOTONIC` is ahead of the initial time namespace's.
#[unsafe(link_section = "inherited")]
static NAMESPACE_SHIFT: AtomicI64 = AtomicI64::new(0);

fn read(clock: c_int) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: GET_TIME holds a function of this type, which writes a timespec.
    unsafe {
        // ORDERING: Relaxed, as either function is right at any time.
        let get_time: GetTime = core::mem::transmute(GET_TIME.load(Relaxed));
        get_time(clock, &mut time);
    }
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Nanoseconds of `CLOCK_MONOTONIC`, read after all earlier instructions of the thread have completed: the time of a
/// record that acquires something.
#[inline(always)]
pub fn now_fenced() -> u64 {
    now::<true>()
}

/// As [`now_fenced`], but possibly read while earlier instructions of the thread are still being executed: the time of
/// a record that releases something, which may be early but not late. It is never less than an earlier [`now_fenced`]
/// of the thread.
#[inline(always)]
pub fn now_unfenced() -> u64 {
    now::<false>()
}

#[inline(always)]
fn now<const FENCED: bool>() -> u64 {
    match counter::read::<FENCED>() {
        Some(time) => time,
        None => by_vdso(),
    }
}

#[inline(never)]
fn by_vdso() -> u64 {
    read(libc::CLOCK_MONOTONIC) as u64
}

/// Nanoseconds since the system was booted, with the time for which it slept: the clock of when processes begin.
pub fn since_boot() -> u64 {
    read(libc::CLOCK_BOOTTIME) as u64
}

/// Checks that the counter still gives the kernel's times; to be called from time to time, and when the process may be in
/// another time namespace. `false` if it does not any more: then the vDSO is asked from now on, and this process's
/// `CLOCK_MONOTONIC` may be another one than before.
pub fn check() -> bool {
    counter::check(by_vdso)
}

/// Whether the process is known to be in the initial time namespace: the kernel gives others another page for the clock.
pub fn is_in_initial_namespace() -> bool {
    check() && counter::is_of_initial_namespace()
}

/// What times are read from, for `trinfo`: the processor's counter, the vDSO, or the system call.
pub fn source() -> &'static [u8] {
    if counter::is_used() {
        b"tsc"
    } else if GET_TIME.load(Relaxed) != clock_gettime as *mut () {
        b"vdso"
    } else {
        b"system_call"
    }
}

/// From now on times are read by the system call, because a thread is about to be forbidden to read the processor's
/// counter. That holds for all threads of the process: threads inherit it from the one that makes them.
pub fn avoid_counter() {
    // ORDERING: Relaxed; the calling thread sees its own stores, and the others may still read the counter.
    GET_TIME.store(clock_gettime as *mut (), Relaxed);
    counter::stop();
}

/// A reading of [`now_fenced`] as nanoseconds since the Epoch.
#[inline]
pub fn since_epoch(reading: u64) -> u64 {
    // ORDERING: Relaxed; the offset is set before the process's first slot is given out. Later only a process that has a
    // single thread changes it.
    reading.wrapping_add(OFFSET.load(Relaxed) as u64)
}

/// Looks up the vDSO's function and the words that it reads, if this program may read the processor's counter.
pub fn find() {
    if counter_is_forbidden() {
        return;
    }
    if let Some(found) = elf::any_definition(c"__vdso_clock_gettime", None) {
        GET_TIME.store(found.address.cast_mut(), Relaxed);
        // SAFETY: getauxval only reads what the kernel gave to the process.
        counter::find(unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize, by_vdso);
    }
}

/// Nanoseconds from this process's `CLOCK_MONOTONIC` to the Epoch.
pub fn offset() -> i64 {
    OFFSET.load(Relaxed)
}

/// Nanoseconds from the initial time namespace's `CLOCK_MONOTONIC` to the Epoch: what processes share.
pub fn shared_offset() -> i64 {
    OFFSET.load(Relaxed) + NAMESPACE_SHIFT.load(Relaxed)
}

/// Sets the offset that processes share.
pub fn set_shared_offset(offset: i64) {
    OFFSET.store(offset - NAMESPACE_SHIFT.load(Relaxed), Relaxed);
}

/// Sets by how many nanoseconds this process's `CLOCK_MONOTONIC` is ahead of the initial time namespace's. The offset that
/// processes share stays. Only a process with a single thread may set another value than before.
pub fn set_namespace_shift(shift: i64) {
    let offset = shared_offset();
    NAMESPACE_SHIFT.store(shift, Relaxed);
    set_shared_offset(offset);
}

/// Measures the offset if this process has none, because it has no files.
pub fn learn_offset() {
    if offset() == 0 {
        set_shared_offset(measure_offset());
    }
}

/// By how many nanoseconds the wall clock is ahead of the times of records: what it was set by since the offset was measured.
pub fn wall_clock_lead() -> i64 {
    // Enough to meet no interruption in one of them.
    measure_offset_by(8) - shared_offset()
}

/// Measures the offset that processes share: of many readings of both clocks, the one that took the least time counts.
pub fn measure_offset() -> i64 {
    measure_offset_by(64)
}

fn measure_offset_by(readings: u32) -> i64 {
    let mut best = (i64::MAX, 0);
    for _ in 0..readings {
        let before = read(libc::CLOCK_MONOTONIC);
        let wall = read(libc::CLOCK_REALTIME);
        let after = read(libc::CLOCK_MONOTONIC);
        if after - before < best.0 {
            best = (after - before, wall - before - (after - before) / 2);
        }
    }
    best.1 + NAMESPACE_SHIFT.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_gives_the_vdsos_times_or_is_left_alone() {
        find();
        if !counter::is_used() {
            eprintln!("this machine's clock is not the processor's counter: nothing to compare");
            return;
        }
        let (mut last, mut compared) = (0, 0);
        for _ in 0..100_000 {
            let (before, unfenced, time, after) =
                (by_vdso(), counter::read::<false>(), counter::read::<true>(), by_vdso());
            // While the kernel forbids the counter, the vDSO is asked.
            let (Some(unfenced), Some(time)) = (unfenced, time) else { continue };
            assert!(before <= time && time <= after, "{before} {time} {after}");
            assert!(last <= unfenced && unfenced <= time, "{last} {unfenced} {time}");
            (last, compared) = (time, compared + 1);
        }
        assert!(compared > 90_000);
        assert!(check() && counter::is_used());
        // A counter that differs from the vDSO is not used any more.
        assert!(!counter::check(|| by_vdso() + 1_000_000_000));
        assert!(check() && !counter::is_used());
        let (before, time, after) = (by_vdso(), now_fenced(), by_vdso());
        assert!(before <= time && time <= after);
    }

    #[test]
    fn a_shift_of_the_namespace_leaves_the_shared_offset() {
        set_shared_offset(1_000);
        set_namespace_shift(70);
        assert_eq!((offset(), shared_offset(), since_epoch(100)), (930, 1_000, 1_030));
        set_namespace_shift(-5);
        set_shared_offset(2_000);
        assert_eq!((offset(), shared_offset()), (2_005, 2_000));
        set_namespace_shift(0);
    }

    #[test]
    fn the_measured_offset_leads_to_the_wall_clock() {
        find();
        let before = read(libc::CLOCK_REALTIME);
        let ours = read(libc::CLOCK_MONOTONIC) + measure_offset();
        let after = read(libc::CLOCK_REALTIME);
        let tolerance = 1_000_000_000;
        assert!((before - tolerance..after + tolerance).contains(&ours), "{before} {ours} {after}");
    }
}
