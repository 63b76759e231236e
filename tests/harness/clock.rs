//! The kernel's clocks.

/// A reading of a clock, nanoseconds.
fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is writable.
    assert_eq!(unsafe { libc::clock_gettime(clock, &mut time) }, 0);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Nanoseconds from `CLOCK_MONOTONIC` to the Epoch: the best of many measurements, since this thread may wait for a processor
/// between two readings.
pub fn realtime_offset() -> i64 {
    let measurements = (0..64).map(|_| {
        let (before, wall, after) =
            (read(libc::CLOCK_MONOTONIC), read(libc::CLOCK_REALTIME), read(libc::CLOCK_MONOTONIC));
        (after - before, wall - before)
    });
    measurements.min().unwrap().1
}
